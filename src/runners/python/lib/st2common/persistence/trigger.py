"""See `svc.elsewhere`."""

from svc.elsewhere import store

Trigger = store("st2common.persistence.trigger.Trigger", "st2client.client.Client().triggers (GET /v1/triggers)")
TriggerType = store("st2common.persistence.trigger.TriggerType", "st2client.client.Client().triggertypes (GET /v1/triggertypes)")
TriggerInstance = store("st2common.persistence.trigger.TriggerInstance", "st2client.client.Client().triggerinstances (GET /v1/triggerinstances)")
