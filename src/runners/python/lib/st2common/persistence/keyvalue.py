"""See `svc.elsewhere`."""

from svc.elsewhere import store

KeyValuePair = store("st2common.persistence.keyvalue.KeyValuePair", "st2client.client.Client().keys (GET /v1/keys), or action_service.get_value and its like")
