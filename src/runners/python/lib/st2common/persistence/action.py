"""See `svc.elsewhere`."""

from svc.elsewhere import store

Action = store("st2common.persistence.action.Action", "st2client.client.Client().actions (GET /v1/actions)")
ActionAlias = store("st2common.persistence.action.ActionAlias", "st2client.client.Client().actionaliases (GET /v1/actionalias)")
RunnerType = store("st2common.persistence.action.RunnerType", "st2client.client.Client().runners (GET /v1/runnertypes)")
LiveAction = store("st2common.persistence.action.LiveAction", "st2client.client.Client().executions (GET /v1/executions)")
ActionExecution = store("st2common.persistence.action.ActionExecution", "st2client.client.Client().executions (GET /v1/executions)")
