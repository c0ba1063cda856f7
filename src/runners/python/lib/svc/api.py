"""Requests to the API of a server, with the permissions of the execution.

An action has the address of its server and a token for it in SVC_ACTION_API_URL and SVC_ACTION_AUTH_TOKEN, a sensor in
SVC_API_URL and SVC_AUTH_TOKEN. The token goes to that server only.
"""

import json
import os
from contextlib import contextmanager

#: Seconds per request.
TIMEOUT = 60
#: Bytes per response; a whole page of keys may have long values.
MAX_ANSWER_BYTES = 256 * 1024 * 1024
#: Seconds between two looks at an execution that somebody waits for.
POLL_EVERY = 0.5
#: Hosts and ports that callers give for the server on the same machine. It may listen elsewhere.
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1", "0.0.0.0")
LOCAL_PORTS = (None, 9100, 9101)
COMPLETED = ("succeeded", "failed", "timeout", "abandoned", "canceled")


class ServiceError(Exception):
    """The server refused the request, or was not reachable.

    `status` is the HTTP status of the response, None without one.
    """

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


def own_url():
    """Returns the address of the API of this server, with its version; None outside of actions and sensors."""
    return os.environ.get("SVC_ACTION_API_URL") or os.environ.get("SVC_API_URL") or None


def own_token():
    """Returns the token of this execution or sensor; None without authentication."""
    return os.environ.get("SVC_ACTION_AUTH_TOKEN") or os.environ.get("SVC_AUTH_TOKEN") or None


def is_local_default(url):
    """Whether a caller means the server on this machine: loopback, without a port or with a usual one."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url if "//" in url else "//" + url)
        return (parts.hostname or "").lower() in LOCAL_HOSTS and parts.port in LOCAL_PORTS
    except ValueError:
        return False


def full_scope(scope):
    """Returns the scope of keys under its name here: older packs call `svckv.system` otherwise."""
    if isinstance(scope, str) and scope.startswith("st2kv."):
        return "svckv." + scope[len("st2kv.") :]
    return scope


class Answer:
    """A response.

    :ivar status_code: HTTP status
    :ivar reason: its text
    :ivar text: the body
    """

    def __init__(self, status_code, reason, headers, content):
        self.status_code = status_code
        self.reason = reason
        self.headers = headers
        self.content = content

    @property
    def text(self):
        return self.content.decode("utf-8", "replace")

    @property
    def ok(self):
        return self.status_code < 400

    def json(self):
        """Returns the decoded body; raises ValueError when it is not JSON."""
        return json.loads(self.content.decode("utf-8"))

    def fault(self):
        """Returns why the server refused the request."""
        try:
            return self.json()["faultstring"]
        except (ValueError, KeyError, TypeError):
            return self.reason


def send(method, url, query=None, body=None, headers=None, cafile=None, auth=None, timeout=TIMEOUT):
    """Sends a request; returns the response, whatever its status.

    :param query: a dictionary, or a list of pairs
    :param body: bytes, or a value that JSON can represent
    :param cafile: file with certificates to trust; None: those of the system; False: any
    :param auth: user and password
    :rtype: Answer
    :raises ServiceError: when the server is not reachable
    """
    with _told(method, url) as what:
        with _open(method, url, query, body, headers, cafile, auth, timeout) as answer:
            content = answer.read(MAX_ANSWER_BYTES + 1)
            made = Answer(answer.getcode(), answer.reason, answer.headers, content)
    if len(content) > MAX_ANSWER_BYTES:
        raise ServiceError("{}: the response is larger than {} bytes.".format(what, MAX_ANSWER_BYTES))
    return made


def events(url, query=None, headers=None, cafile=None, auth=None):
    """Yields the data of each event of a stream, decoded, until the server ends it.

    :raises ServiceError: when the server is not reachable or refuses, or the connection breaks
    """
    with _told("GET", url) as what:
        # Silence is not an error: the server sends a comment every few seconds.
        with _open("GET", url, query, None, headers, cafile, auth, TIMEOUT) as answer:
            if answer.getcode() != 200:
                made = Answer(answer.getcode(), answer.reason, answer.headers, answer.read(MAX_ANSWER_BYTES))
                raise ServiceError(
                    "{}: the server answered {}: {}".format(what, made.status_code, made.fault()), made.status_code
                )
            data = []
            for line in answer:
                line = line.decode("utf-8", "replace").rstrip("\r\n")
                if line.startswith("data:"):
                    data.append(line[5:].lstrip(" "))
                elif not line and data:
                    text, data = "\n".join(data), []
                    # The end of a stream is announced by text.
                    if text.startswith("{"):
                        yield json.loads(text)


@contextmanager
def _told(method, url):
    """Names the request in the error when the server is not reachable."""
    from http.client import HTTPException
    from urllib import error, parse

    what = "{} {}".format(method, parse.urlsplit(url).path)
    try:
        yield what
    except (error.URLError, OSError, HTTPException) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise ServiceError("{}: could not reach the server: {}".format(what, reason)) from None


def _open(method, url, query, body, headers, cafile, auth, timeout):
    """Returns the open response, whatever its status."""
    from urllib import error, parse
    from urllib import request as http

    class NoRedirects(http.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    sent = dict(headers or {})
    data = body if isinstance(body, bytes) else None
    if body is not None and data is None:
        data = json.dumps(body).encode("ascii")
        sent["Content-Type"] = "application/json"
    if auth is not None:
        import base64

        sent["Authorization"] = "Basic " + base64.b64encode(":".join(auth).encode("utf-8")).decode("ascii")
    # Without proxies and redirects: an action's proxy is for other hosts, and none may see the token.
    handlers = [http.ProxyHandler({}), NoRedirects()]
    if cafile is not None:
        handlers.append(http.HTTPSHandler(context=_trusting(cafile)))
    target = url + ("?" + parse.urlencode(query) if query else "")
    try:
        return http.build_opener(*handlers).open(
            http.Request(target, data=data, headers=sent, method=method), timeout=timeout
        )
    except error.HTTPError as refusal:
        return refusal


def _trusting(cafile):
    import ssl

    if cafile is False:
        return ssl._create_unverified_context()
    return ssl.create_default_context(cafile=cafile if isinstance(cafile, str) else None)


def request(method, path, query=None, body=None, headers=None):
    """Sends an API request with the permissions of the execution; returns the decoded response.

    :param path: after the API version, such as `/keys`
    :param query: a dictionary
    :param body: a value that JSON can represent
    :raises ServiceError: with the reason
    """
    base = own_url()
    if not base:
        raise ServiceError("Cannot reach the server: SVC_ACTION_API_URL is not set.")
    sent = dict(headers or {})
    token = own_token()
    if token:
        sent["X-Auth-Token"] = token
    what = "{} {}".format(method, path)
    answer = send(method, base + path, query, body, sent)
    # A redirect is a refusal too.
    if not 200 <= answer.status_code < 300:
        raise ServiceError(
            "{}: the server answered {}: {}".format(what, answer.status_code, answer.fault()), answer.status_code
        )
    try:
        return answer.json() if answer.content else None
    except ValueError:
        raise ServiceError("{}: the response is not JSON.".format(what)) from None


def run_action(ref, parameters):
    """Runs an action and waits for its end, as long as it takes. Returns the execution.

    :raises ServiceError: when it does not succeed
    """
    import time

    execution = request("POST", "/executions", body={"action": ref, "parameters": parameters})
    while execution["status"] not in COMPLETED:
        time.sleep(POLL_EVERY)
        execution = request("GET", "/executions/" + execution["id"])
    if execution["status"] != "succeeded":
        result = execution.get("result")
        reason = result.get("error") if isinstance(result, dict) else None
        raise ServiceError(
            "{}: the execution {} ended as {}: {}".format(ref, execution["id"], execution["status"], reason or result)
        )
    return execution
