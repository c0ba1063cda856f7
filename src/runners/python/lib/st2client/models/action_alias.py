"""Aliases of actions."""

from st2client.models.core import Resource, ResourceManager
from st2client.utils.httpclient import path_of

__all__ = ["ActionAlias", "ActionAliasManager", "ActionAliasMatch"]


class ActionAlias(Resource):
    _alias = "Action-Alias"
    _display_name = "Action Alias"
    _url_path = "actionalias"
    _plural = "ActionAliases"
    _plural_display_name = "Action aliases"
    _repr_attributes = ["name", "pack", "action_ref"]


class ActionAliasMatch(Resource):
    """A text that somebody wrote: `command`."""

    _repr_attributes = ["command"]


class ActionAliasManager(ResourceManager):
    def match(self, instance, **kwargs):
        """Returns the alias that a text means, and the form that it has. :raises ServiceError: when none fits"""
        found = self.answer_of(self.client.post(path_of("actionalias", "match"), instance.serialize(), **kwargs))
        found = found[0] if isinstance(found, list) else found
        return self.resource.deserialize(found["actionalias"]), found["representation"]

    def help(self, **kwargs):
        """Returns what can be said, a dictionary."""
        return self.answer_of(self._get(path_of("actionalias", "help"), kwargs))
