"""See `svc.elsewhere`."""

from svc.elsewhere import store

SensorType = store("st2common.persistence.sensor.SensorType", "st2client.client.Client().sensors (GET /v1/sensortypes)")
