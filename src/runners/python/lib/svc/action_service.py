"""What an action can ask the server for, through its API, in the name of the user of the execution."""

import json
import os

from svc import log

#: Seconds for one answer.
TIMEOUT = 60
#: Bytes of one answer; the values of a whole page of keys may be long.
MAX_ANSWER_BYTES = 256 * 1024 * 1024


class ServiceError(Exception):
    """The server refused, or could not be asked.

    `status` is the HTTP status of its answer, None without one.
    """

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class ActionService:
    """Keys are those of the pack's action: `local` puts `<pack>.<Class>:` before the name."""

    def __init__(self, pack, class_name, page_size=100):
        self._namespace = "{}.{}:".format(pack, class_name)
        self._page_size = page_size

    def get_logger(self, name):
        """A logger like the one of the action, by another name."""
        return log.get_logger(name)

    def get_user_info(self):
        """Who the execution acts for, as GET /user tells: `username`, `authentication`, `rbac`."""
        return request("GET", "/user")

    def list_values(self, local=True, prefix=None, limit=None, offset=0):
        """The key-value pairs of the system whose names begin with `prefix`.

        :param local: only those of this action; their names are without its namespace then
        :param limit: how many at most; None: `api.max_page_size` of the server
        :param offset: how many to pass over
        :rtype: list of `KeyValuePair`
        """
        start = (self._namespace if local else "") + (prefix or "")
        query = {"limit": self._page_size if limit is None else limit, "offset": offset}
        if start:
            query["prefix"] = start
        cut = len(self._namespace) if local else 0
        return [KeyValuePair(row, row["name"][cut:]) for row in request("GET", "/keys", query)]

    def get_value(self, name, local=True, scope="system", decrypt=False):
        """The value of a key, None when there is no such key.

        :param scope: `system`, or `user` for the keys of the user
        :param decrypt: a secret in plain text
        """
        query = {"scope": scope}
        if decrypt:
            query["decrypt"] = "true"
        try:
            return request("GET", self._path(name, local), query)["value"]
        except ServiceError as error:
            if error.status == 404:
                return None
            raise

    def set_value(self, name, value, ttl=None, local=True, scope="system", encrypt=False):
        """Sets a key, whether it exists or not. Answers True.

        :param value: stored as its text
        :param ttl: seconds until the key disappears; None: never
        :param encrypt: keep it as a secret
        """
        body = {"name": self._full_name(name, local), "value": str(value), "scope": scope}
        if ttl is not None:
            body["ttl"] = ttl
        if encrypt:
            body["secret"] = True
        request("PUT", self._path(name, local), body=body)
        return True

    def delete_value(self, name, local=True, scope="system"):
        """Deletes a key. Answers whether there was one."""
        try:
            request("DELETE", self._path(name, local), {"scope": scope})
        except ServiceError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _full_name(self, name, local):
        if not isinstance(name, str) or name == "":
            raise ValueError("The name of a key is a text, and not an empty one.")
        return self._namespace + name if local else name

    def _path(self, name, local):
        from urllib.parse import quote

        return "/keys/" + quote(self._full_name(name, local), safe="")


class KeyValuePair:
    """One key with its value; `name` is the one to ask for it by."""

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


def request(method, path, query=None, body=None, headers=None):
    """Asks the API of the server as the execution may; answers what it said, decoded.

    :param path: below the version: `/keys`
    :param query: a dictionary
    :param body: what JSON can hold
    :raises ServiceError: with the reason
    """
    from http.client import HTTPException
    from urllib import error, parse
    from urllib import request as http

    class NoRedirects(http.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    base = os.environ.get("SVC_ACTION_API_URL")
    if not base:
        raise ServiceError("The server cannot be asked: SVC_ACTION_API_URL is not set.")
    url = base + path + ("?" + parse.urlencode(query) if query else "")
    sent = dict(headers or {})
    token = os.environ.get("SVC_ACTION_AUTH_TOKEN")
    if token:
        sent["X-Auth-Token"] = token
    data = None
    if body is not None:
        data = json.dumps(body).encode("ascii")
        sent["Content-Type"] = "application/json"
    what = "{} {}".format(method, path)
    # The server is not behind the proxy that an action may need for others, and nobody else is to see the token.
    opener = http.build_opener(http.ProxyHandler({}), NoRedirects())
    try:
        with opener.open(http.Request(url, data=data, headers=sent, method=method), timeout=TIMEOUT) as answer:
            text = answer.read(MAX_ANSWER_BYTES + 1)
    except error.HTTPError as refusal:
        raise ServiceError(
            "{} was answered with {}: {}".format(what, refusal.code, _reason(refusal)), refusal.code
        ) from None
    except (error.URLError, OSError, HTTPException) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise ServiceError("{}: the server could not be asked: {}".format(what, reason)) from None
    if len(text) > MAX_ANSWER_BYTES:
        raise ServiceError("{}: the answer is larger than {} bytes.".format(what, MAX_ANSWER_BYTES))
    try:
        return json.loads(text) if text else None
    except ValueError:
        raise ServiceError("{}: the answer is no JSON.".format(what)) from None


def _reason(refusal):
    from http.client import HTTPException

    try:
        return json.loads(refusal.read(64 * 1024))["faultstring"]
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return refusal.reason
