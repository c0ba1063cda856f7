"""Items of the datastore."""

from svc.api import full_scope

from st2client.models.core import Resource, ResourceManager

__all__ = ["KeyValuePair", "KeyValuePairManager"]


class KeyValuePair(Resource):
    """An item: `name`, `value` (text), `scope`, `user`, `secret`, `ttl` (seconds). Its id is its name."""

    _alias = "Key"
    _plural = "Keys"
    _repr_attributes = ["name", "scope"]
    _taken = ("name", "value", "description", "secret", "encrypted", "scope", "ttl", "user")

    def serialize(self):
        body = {name: value for name, value in vars(self).items() if name in self._taken and value is not None}
        if "scope" in body:
            body["scope"] = full_scope(body["scope"])
        # The API asks for it where it is another's only; an item of the scope of the system has none.
        if not body.get("user"):
            body.pop("user", None)
        return body

    @property
    def id(self):
        return self.name

    @id.setter
    def id(self, value):
        # The API has another one, which no method takes.
        pass


class KeyValuePairManager(ResourceManager):
    def get_by_name(self, name, **kwargs):
        """Returns an item, None if there is none.

        :param scope: `system` (default) or `user`
        :param decrypt: return a secret in plain text
        """
        return self.get_by_id(name, **kwargs)

    def delete(self, instance, **kwargs):
        scope = getattr(instance, "scope", None)
        if scope and "scope" not in kwargs and "scope" not in (kwargs.get("params") or {}):
            kwargs["scope"] = scope
        return ResourceManager.delete(self, instance, **kwargs)

    def _key_of(self, instance):
        return instance.name
