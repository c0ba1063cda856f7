"""See `svc.elsewhere`."""

from svc.elsewhere import store

Rule = store("st2common.persistence.rule.Rule", "st2client.client.Client().rules (GET /v1/rules)")
