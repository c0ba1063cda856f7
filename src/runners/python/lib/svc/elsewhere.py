"""Names that packs import and that cannot work here: they say what to use instead."""


class Unavailable(RuntimeError):
    """What the name does at StackStorm is done in another way here."""


def unavailable(name, instead):
    """Returns a function that raises `Unavailable` when it is called."""

    def refuse(*_, **__):
        raise Unavailable("{} is unavailable in svc. Use {}.".format(name, instead))

    refuse.__name__ = refuse.__qualname__ = name.rsplit(".", 1)[-1]
    return refuse


class _Store(type):
    """Raises when an attribute is used that every class lacks."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unavailable(
            "{}.{} reads the database of StackStorm, which svc does not have. Use {}.".format(
                vars(cls)["_name"], name, vars(cls)["_instead"]
            )
        )


def store(name, instead):
    """Returns a class whose methods raise `Unavailable`."""
    return _Store(name.rsplit(".", 1)[-1], (), {"_name": name, "_instead": instead, "__doc__": "See `svc.elsewhere`."})
