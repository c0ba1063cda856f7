"""HTTP for managers: `Client().managers["…"].client`."""

from urllib.parse import quote

from svc import api


def add_auth_token_to_headers(func):
    """Kept for callers that decorate with it: `HTTPClient` sends the token by itself."""
    return func


class HTTPClient(object):
    """Requests below one address. Each returns an `svc.api.Answer`, whatever its status.

    Keyword arguments: `params` (query), `headers`, `token` and `api_key` (instead of those of the client), `auth`.
    """

    def __init__(self, root, cacert=None, debug=False, token=None, api_key=None, auth=None):
        self.root = root.rstrip("/")
        self.cert = self.cacert = cacert
        self.debug = debug
        self.token = token
        self.api_key = api_key
        self.auth = auth

    def get(self, url, **kwargs):
        return self._send("GET", url, None, kwargs)

    def post(self, url, data, **kwargs):
        return self._send("POST", url, data, kwargs)

    def put(self, url, data, **kwargs):
        return self._send("PUT", url, data, kwargs)

    def patch(self, url, data, **kwargs):
        return self._send("PATCH", url, data, kwargs)

    def delete(self, url, **kwargs):
        return self._send("DELETE", url, None, kwargs)

    def post_raw(self, url, data, **kwargs):
        """Sends a text as it is; its type is JSON, unless `headers` say otherwise."""
        headers = {"Content-Type": "application/json"}
        headers.update(kwargs.get("headers") or {})
        body = data if isinstance(data, bytes) else data.encode("utf-8")
        return self.post(url, body, **dict(kwargs, headers=headers))

    def events(self, url, **kwargs):
        """Yields the events of a stream. :raises svc.api.ServiceError: see `svc.api.events`"""
        headers, auth = self._credentials(kwargs)
        return api.events(self.root + url, kwargs.get("params"), headers, self.cacert, auth)

    def _send(self, method, url, body, kwargs):
        headers, auth = self._credentials(kwargs)
        return api.send(method, self.root + url, kwargs.get("params"), body, headers, self.cacert, auth)

    def _credentials(self, kwargs):
        headers = dict(kwargs.get("headers") or {})
        # Packs compare names in answers with those of StackStorm, such as `core.st2.webhook`.
        headers.setdefault("Svc-Dialect", "stackstorm")
        token, key = kwargs.get("token"), kwargs.get("api_key")
        if token is None and key is None:
            token, key = self.token, self.api_key
        if token:
            headers["X-Auth-Token"] = token
        elif key:
            headers["Svc-Api-Key"] = key
        return headers, kwargs.get("auth") or self.auth


def path_of(*parts):
    """Returns the path of these parts, each of them escaped."""
    return "".join("/" + quote(str(part), safe="") for part in parts)
