"""The client of the API."""

from urllib.parse import urlsplit

from svc import api

from st2client import models
from st2client.models.core import ResourceManager
from st2client.utils.httpclient import HTTPClient

__all__ = ["Client"]

DEFAULT_API_PORT = 9101
DEFAULT_AUTH_PORT = 9100
DEFAULT_STREAM_PORT = 9102
DEFAULT_BASE_URL = "http://127.0.0.1"
DEFAULT_API_VERSION = "v1"


class Client(object):
    """A server, with a manager for each kind of record: `client.keys`, `client.executions`, `client.managers["Rule"]`…

    Which server: in an action or sensor its own one, with its token, unless another one is given. `base_url` or
    `api_url` with a loopback address (127.0.0.1, localhost) and no port, 9100 or 9101 means the own server too, wherever
    that listens: packs write the defaults of StackStorm. The own token goes to the own server only; give `token` or
    `api_key` for another one.
    """

    def __init__(
        self,
        base_url=None,
        auth_url=None,
        api_url=None,
        stream_url=None,
        api_version=None,
        cacert=None,
        debug=False,
        token=None,
        api_key=None,
        basic_auth=None,
    ):
        """
        :param base_url: as `http://host`; the API is on its port 9101, logins on 9100, the stream on 9102
        :param api_url: of the API, with its version; `auth_url` and `stream_url` likewise
        :param cacert: file with certificates to trust; False: any
        :param basic_auth: user and password for a proxy in front of the server
        """
        own = api.own_url()
        given = api_url or base_url
        is_own = own is not None and (given is None or api.is_local_default(given) or given.rstrip("/") == own)
        version = api_version or DEFAULT_API_VERSION
        if is_own:
            api_url = own
        elif api_url is None:
            api_url = "{}/{}".format(_on_port(base_url or DEFAULT_BASE_URL, DEFAULT_API_PORT), version)
        if not token and not api_key and is_own:
            token = api.own_token()
        self.token = token
        self.api_key = api_key
        self.basic_auth = tuple(basic_auth.split(":", 1)) if isinstance(basic_auth, str) else basic_auth
        self.cacert = None if cacert in (None, True) else cacert
        self.debug = debug
        beside = api_url if base_url is None else base_url
        self.endpoints = {
            "base": base_url if base_url and not is_own else _root(api_url),
            "api": api_url,
            "auth": auth_url or _on_port(_root(beside), DEFAULT_AUTH_PORT),
            "stream": stream_url or "{}/{}".format(_on_port(_root(beside), DEFAULT_STREAM_PORT), version),
        }
        if is_own:
            # The listener of the API serves the others too, whatever their ports are.
            self.endpoints.update(auth=_root(own) + "/auth/v1", stream=_root(own) + "/stream/" + version)
        #: Name of a kind of record -> its manager.
        self.managers = {}
        for kind, (resource, manager, endpoint) in models.MANAGERS.items():
            self.managers[kind] = (manager or ResourceManager)(
                resource,
                self.endpoints[endpoint],
                cacert=self.cacert,
                debug=debug,
                token=self.token,
                api_key=self.api_key,
                auth=self.basic_auth,
            )

    def get_user_info(self):
        """Returns the user whose permissions the requests have."""
        manager = self.managers["KeyValuePair"]
        return manager.answer_of(HTTPClient.get(manager.client, "/user"))

    actions = property(lambda self: self.managers["Action"])
    actionaliases = property(lambda self: self.managers["ActionAlias"])
    aliasexecutions = property(lambda self: self.managers["ActionAliasExecution"])
    apikeys = property(lambda self: self.managers["ApiKey"])
    configs = property(lambda self: self.managers["Config"])
    config_schemas = property(lambda self: self.managers["ConfigSchema"])
    executions = property(lambda self: self.managers["Execution"])
    #: Name of old releases.
    liveactions = executions
    inquiries = property(lambda self: self.managers["Inquiry"])
    keys = property(lambda self: self.managers["KeyValuePair"])
    packs = property(lambda self: self.managers["Pack"])
    policies = property(lambda self: self.managers["Policy"])
    policytypes = property(lambda self: self.managers["PolicyType"])
    ruleenforcements = property(lambda self: self.managers["RuleEnforcement"])
    rules = property(lambda self: self.managers["Rule"])
    runners = property(lambda self: self.managers["RunnerType"])
    sensors = property(lambda self: self.managers["Sensor"])
    timers = property(lambda self: self.managers["Timer"])
    tokens = property(lambda self: self.managers["Token"])
    trace = property(lambda self: self.managers["Trace"])
    traces = trace
    triggerinstances = property(lambda self: self.managers["TriggerInstance"])
    triggers = property(lambda self: self.managers["Trigger"])
    triggertypes = property(lambda self: self.managers["TriggerType"])
    webhooks = property(lambda self: self.managers["Webhook"])
    workflows = property(lambda self: self.managers["Workflow"])
    service_registry_groups = property(lambda self: self.managers["ServiceRegistryGroups"])
    service_registry_members = property(lambda self: self.managers["ServiceRegistryMembers"])


def _root(url):
    parts = urlsplit(url if "//" in url else "http://" + url)
    return "{}://{}".format(parts.scheme, parts.netloc)


def _on_port(url, port):
    parts = urlsplit(url if "//" in url else "http://" + url)
    host = parts.hostname or "127.0.0.1"
    return "{}://{}:{}".format(parts.scheme, "[{}]".format(host) if ":" in host else host, port)
