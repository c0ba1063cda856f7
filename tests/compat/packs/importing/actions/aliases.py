from st2client.client import Client
from st2client.models.action_alias import ActionAliasMatch
from st2client.models.aliasexecution import ActionAliasExecution
from st2common.runners.base_action import Action


class Aliases(Action):
    def run(self):
        client = Client()
        match = ActionAliasMatch()
        match.command = "please say hello"
        alias, representation = client.managers["ActionAlias"].match(match)
        execution = ActionAliasExecution()
        execution.name = alias.name
        execution.format = representation
        execution.command = match.command
        execution.source_channel = "room"
        execution.notification_route = "chat"
        execution.user = "ada"
        made = client.managers["ActionAliasExecution"].create(execution)
        ended = client.executions.wait(made.execution["id"], 60)
        both = ActionAliasExecution(command="please say goodbye", source_channel="room", user="ada")
        second = client.managers["ActionAliasExecution"].match_and_execute(both)
        return [
            alias.action_ref,
            representation,
            ended.status,
            ended.result["stdout"],
            second.execution["action"]["ref"],
            client.actionaliases.get_by_name("say", pack="importing").ref,
        ]
