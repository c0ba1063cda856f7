from st2client.base import BaseCLIApp
from st2client.client import Client
from st2client.commands.resource import ResourceNotFoundError
from st2client.models import Rule
from st2common.runners.base_action import Action


class Arguments:
    api_url = None
    token = None


class Records(Action):
    def run(self):
        client = BaseCLIApp().get_client(args=Arguments())
        rule = client.rules.get_by_name("hello", pack="importing")
        by_ref = client.managers["Rule"].get_by_ref_or_id("importing.hello")
        rule.description = "changed"
        changed = client.rules.update(rule)
        made = client.rules.create(
            Rule(name="made", pack="importing", trigger=rule.trigger, criteria={}, action=rule.action, enabled=False)
        )
        manager = client.managers["Action"]
        answer = manager.client.get("/actions/core.echo")
        error = None
        try:
            client.rules.create(Rule(name="", pack="importing"))
        except Exception as problem:
            error = [problem.status, problem.response.status_code, str(problem)]
        not_found = None
        try:
            if client.actions.get_by_ref_or_id("importing.none") is None:
                raise ResourceNotFoundError("no such action")
        except ResourceNotFoundError as problem:
            not_found = str(problem)
        return {
            "rule": [rule.id == by_ref.id, rule.enabled, changed.description],
            "made": [made.ref, client.rules.delete(made), client.rules.get_by_ref_or_id("importing.made")],
            "actions": [one.ref for one in client.actions.get_all(pack="importing", limit=1)],
            "by_hand": [answer.status_code, answer.json()["ref"]],
            "entry_point": client.actions.get_entrypoint("importing.records")[:10],
            "error": error,
            "not_found": not_found,
            "runner": client.runners.get_by_name("noop").name,
            "packs": [one.ref for one in client.packs.get_all() if one.ref == "importing"],
            "enforcements": client.ruleenforcements.query(rule_ref="importing.hello"),
            "registered": client.packs.register(packs=["importing"], types=["rules"]).rules,
            "policies": client.policies.get_all(),
            "triggers": client.triggertypes.get_by_ref_or_id("core.svc.webhook").name,
            "webhook": client.webhooks.post_generic_webhook("core.svc.sensor.process_exit", {"object": {}}) is not None,
            "me": client.get_user_info()["username"],
        }
