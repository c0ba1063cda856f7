"""The configuration of a pack, for its actions and sensors."""


class MissingValue(KeyError, ValueError):
    """The configuration lacks a key that was read. Callers catch it as the one or as the other."""

    # The message of a KeyError is its argument in quotation marks.
    __str__ = Exception.__str__


class PackConfigDict(dict):
    """A dictionary that says where to set the keys it lacks."""

    def __init__(self, pack, values):
        super().__init__(values or {})
        self._pack = pack

    def __missing__(self, key):
        raise MissingValue(
            'The configuration of the pack "{0}" has no "{1}": set it with `svc pack config {0}`.'.format(self._pack, key)
        )

    def __reduce__(self):
        return type(self), (self._pack, dict(self))
