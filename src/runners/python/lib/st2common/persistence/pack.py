"""See `svc.elsewhere`."""

from svc.elsewhere import store

Pack = store("st2common.persistence.pack.Pack", "st2client.client.Client().packs (GET /v1/packs)")
Config = store("st2common.persistence.pack.Config", "st2client.client.Client().configs (GET /v1/configs)")
ConfigSchema = store("st2common.persistence.pack.ConfigSchema", "st2client.client.Client().config_schemas (GET /v1/config_schemas)")
