"""Runs of aliases."""

from st2client.models.core import Resource, ResourceManager
from st2client.utils.httpclient import path_of

__all__ = ["ActionAliasExecution", "ActionAliasExecutionManager"]


class ActionAliasExecution(Resource):
    """A run: `name` of the alias, `format`, `command`, `user`, `source_channel`, `notification_route`…"""

    _alias = "Action-Alias-Execution"
    _display_name = "Action Alias Execution"
    _url_path = "aliasexecution"
    _plural_display_name = "Runs of aliases"
    _repr_attributes = ["name", "command"]


class ActionAliasExecutionManager(ResourceManager):
    def match_and_execute(self, instance, **kwargs):
        """Runs the alias that a text means."""
        url = path_of("aliasexecution", "match_and_execute")
        return self.resource.deserialize(
            self.answer_of(self.client.post(url, instance.serialize(), **kwargs))["results"][0]
        )
