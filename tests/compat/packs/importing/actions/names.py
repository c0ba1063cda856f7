from st2client.client import Client
from st2client.models import KeyValuePair, Rule
from st2common.runners.base_action import Action


class Names(Action):
    def run(self):
        client = Client()
        trigger = {"type": "core.st2.CronTimer", "parameters": {"hour": 1}}
        action = {"ref": "core.noop", "parameters": {}}
        made = client.rules.create(Rule(name="daily", pack="importing", trigger=trigger, criteria={}, action=action))
        key = client.keys.update(KeyValuePair(name="importing.names", value="1"))
        return {
            "made": made.trigger["type"],
            "found": [one.name for one in client.rules.get_all() if one.trigger["type"] == "core.st2.CronTimer"],
            "type": client.triggertypes.get_by_ref_or_id("core.st2.webhook").ref,
            "scope": key.scope,
            "value": client.keys.get_by_name("importing.names").value,
        }
