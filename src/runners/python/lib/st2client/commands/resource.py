"""Errors of a command line, which packs raise and catch."""

from st2client.models.core import add_auth_token_to_kwargs_from_env

__all__ = ["ResourceCommandError", "ResourceNotFoundError", "add_auth_token_to_kwargs_from_env"]


class ResourceCommandError(Exception):
    pass


class ResourceNotFoundError(Exception):
    pass
