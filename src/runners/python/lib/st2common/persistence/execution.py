"""See `svc.elsewhere`."""

from svc.elsewhere import store

ActionExecution = store("st2common.persistence.execution.ActionExecution", "st2client.client.Client().executions (GET /v1/executions)")
