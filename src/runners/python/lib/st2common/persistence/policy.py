"""See `svc.elsewhere`."""

from svc.elsewhere import store

Policy = store("st2common.persistence.policy.Policy", "st2client.client.Client().policies (GET /v1/policies)")
PolicyType = store("st2common.persistence.policy.PolicyType", "st2client.client.Client().policytypes (GET /v1/policytypes)")
