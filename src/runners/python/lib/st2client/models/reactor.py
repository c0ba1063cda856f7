"""Rules, sensors and triggers."""

from st2client.models.core import Resource, ResourceManager
from st2client.utils.httpclient import path_of

__all__ = ["Rule", "RuleEnforcement", "Sensor", "Timer", "Trigger", "TriggerInstance", "TriggerType", "Webhook"]


class Rule(Resource):
    _repr_attributes = ["name", "pack", "trigger", "criteria", "enabled"]
    _read_only = ("uid", "ref", "metadata_file", "context")


class RuleEnforcement(Resource):
    _alias = "Rule-Enforcement"
    _repr_attributes = ["id", "rule", "trigger_instance_id", "execution_id"]


class Sensor(Resource):
    _plural = "Sensortypes"
    _plural_display_name = "Sensors"
    _repr_attributes = ["name", "pack"]


class Timer(Resource):
    _repr_attributes = ["id"]


class Trigger(Resource):
    _repr_attributes = ["name", "pack"]


class TriggerInstance(Resource):
    _alias = "Trigger-Instance"
    _plural = "Triggerinstances"
    _repr_attributes = ["id", "trigger", "occurrence_time", "payload", "status"]


class TriggerType(Resource):
    _alias = "Trigger"
    _plural = "Triggertypes"
    _repr_attributes = ["name", "pack"]


class Webhook(Resource):
    _repr_attributes = ["url"]


class TriggerInstanceManager(ResourceManager):
    def re_emit(self, trigger_instance_id, **kwargs):
        """Emits a trigger again. Returns what the server says."""
        url = path_of("triggerinstances", trigger_instance_id, "re_emit")
        return self.answer_of(self.client.post(url, None, **kwargs))


class WebhookManager(ResourceManager):
    def post_generic_webhook(self, trigger, payload=None, trace_tag=None, **kwargs):
        """Dispatches a trigger; the webhook needs no trigger of its own."""
        headers = dict(kwargs.pop("headers", None) or {})
        if trace_tag:
            headers["Svc-Trace-Tag"] = trace_tag
        body = {"trigger": trigger, "payload": {} if payload is None else payload}
        return self.answer_of(self.client.post("/webhooks/svc", body, headers=headers, **kwargs))
