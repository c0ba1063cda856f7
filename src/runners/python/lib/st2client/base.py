"""The part of a command line that packs use to get a client."""

from st2client.client import Client

__all__ = ["BaseCLIApp"]

#: Attributes of the parsed arguments that say which server, and of what.
CONNECTION = (
    "base_url",
    "auth_url",
    "api_url",
    "stream_url",
    "api_version",
    "cacert",
    "token",
    "api_key",
    "basic_auth",
)


class BaseCLIApp(object):
    """`get_client` is all that it has; configuration files of a command line are not read."""

    client = None

    def get_client(self, args, debug=False):
        """Returns the client for parsed arguments: those of `Client` as attributes, all of them optional."""
        options = {name: getattr(args, name, None) for name in CONNECTION}
        return Client(debug=debug, **{name: value for name, value in options.items() if value})
