"""Access to the server's API for actions, with the permissions of the execution's user."""

from svc import log
from svc.api import ServiceError, full_scope, request

__all__ = ["ActionService", "KeyValuePair", "ServiceError", "request"]


class ActionService:
    """Datastore keys and user information. `local` prefixes names with the action's namespace `<pack>.<Class>:`."""

    def __init__(self, pack, class_name, page_size=100):
        self._namespace = "{}.{}:".format(pack, class_name)
        self._page_size = page_size
        # Packs ask the wrapper of their action for its pack, which they do not get elsewhere.
        self._action_wrapper = self
        self._pack = pack
        self._class_name = class_name

    @property
    def datastore_service(self):
        """The methods for keys, which this object has itself."""
        return self

    def get_api_client(self):
        """Returns a `st2client.client.Client` of this server."""
        from st2client.client import Client

        return Client()

    _get_api_client = get_api_client

    def get_logger(self, name):
        """Returns a logger like that of the action, with another name."""
        return log.get_logger(name)

    def get_user_info(self):
        """Returns the user of the execution, as GET /user does: `username`, `authentication`, `rbac`."""
        return request("GET", "/user")

    def list_values(self, local=True, prefix=None, limit=None, offset=0):
        """Returns the key-value pairs of scope `system` whose names begin with `prefix`.

        :param local: only keys of this action; their names come without its namespace
        :param limit: maximum number of pairs; None: `api.max_page_size` of the server
        :param offset: number of pairs to skip
        :rtype: list of `KeyValuePair`
        """
        start = (self._namespace if local else "") + (prefix or "")
        query = {"limit": self._page_size if limit is None else limit, "offset": offset}
        if start:
            query["prefix"] = start
        cut = len(self._namespace) if local else 0
        return [KeyValuePair(row, row["name"][cut:]) for row in request("GET", "/keys", query)]

    def get_value(self, name, local=True, scope="system", decrypt=False):
        """Returns the value of a key, None when the key does not exist.

        :param scope: `system`, or `user` for the keys of the user
        :param decrypt: return a secret in plain text
        """
        query = {"scope": full_scope(scope)}
        if decrypt:
            query["decrypt"] = "true"
        try:
            return request("GET", self._path(name, local), query)["value"]
        except ServiceError as error:
            if error.status == 404:
                return None
            raise

    def set_value(self, name, value, ttl=None, local=True, scope="system", encrypt=False):
        """Creates or replaces a key. Returns True.

        :param value: stored as its text
        :param ttl: seconds until the key disappears; None: never
        :param encrypt: store the value encrypted
        """
        body = {"name": self._full_name(name, local), "value": str(value), "scope": full_scope(scope)}
        if ttl is not None:
            body["ttl"] = ttl
        if encrypt:
            body["secret"] = True
        request("PUT", self._path(name, local), body=body)
        return True

    def delete_value(self, name, local=True, scope="system"):
        """Deletes a key. Returns whether it existed."""
        try:
            request("DELETE", self._path(name, local), {"scope": full_scope(scope)})
        except ServiceError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _full_name(self, name, local):
        if not isinstance(name, str) or name == "":
            raise ValueError("The name of a key must be a string that is not empty.")
        return self._namespace + name if local else name

    def _path(self, name, local):
        from urllib.parse import quote

        return "/keys/" + quote(self._full_name(name, local), safe="")


class KeyValuePair:
    """One key with its value; `name` is the name for `get_value`."""

    def __init__(self, row, name):
        self.id = row.get("id")
        self.name = name
        self.value = row.get("value")
        self.description = row.get("description")
        self.scope = row.get("scope")
        self.user = row.get("user")
        self.secret = row.get("secret", False)
        self.encrypted = row.get("encrypted", False)
        self.expire_timestamp = row.get("expire_timestamp")

    def __repr__(self):
        # Without the value, which may be a secret.
        return "<KeyValuePair name={!r} scope={!r}>".format(self.name, self.scope)
