"""Registering sensors."""

from svc.elsewhere import unavailable

register_sensors = unavailable(
    "st2common.bootstrap.sensorsregistrar.register_sensors",
    'st2client.client.Client().packs.register(types=["sensors"]) (POST /v1/packs/register)',
)
SensorsRegistrar = unavailable(
    "st2common.bootstrap.sensorsregistrar.SensorsRegistrar",
    'st2client.client.Client().packs.register(types=["sensors"]) (POST /v1/packs/register)',
)
