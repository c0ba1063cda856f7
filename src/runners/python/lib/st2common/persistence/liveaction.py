"""See `svc.elsewhere`."""

from svc.elsewhere import store

LiveAction = store("st2common.persistence.liveaction.LiveAction", "st2client.client.Client().executions (GET /v1/executions)")
