from svc.action import Action
from svc.action_service import request


class InjectTrigger(Action):
    def run(self, trigger_name=None, trigger=None, payload=None, trace_tag=None):
        if trigger_name and trigger:
            raise ValueError('Either "trigger_name" or "trigger" can be given, and not both.')
        name = trigger_name or trigger
        if not name:
            raise ValueError('"trigger_name" is missing: which trigger type is the event of?')
        if trace_tag and not is_latin(trace_tag):
            raise ValueError('"trace_tag" can hold the characters of Latin-1 only: it is sent as a header.')
        headers = {"Svc-Trace-Tag": trace_tag} if trace_tag else {}
        self.logger.debug("Sending an event of the trigger type %s", name)
        request("POST", "/webhooks/svc", body={"trigger": name, "payload": payload or {}}, headers=headers)
        return {"trigger": name, "payload": payload or {}, "trace_tag": trace_tag}


def is_latin(text):
    try:
        text.encode("latin-1")
        return True
    except UnicodeEncodeError:
        return False
