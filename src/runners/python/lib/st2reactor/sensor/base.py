"""Existing packs import `Sensor` and `PollingSensor` from this module."""

from svc.sensor import BaseSensor, PollingSensor, Sensor

__all__ = ["BaseSensor", "PollingSensor", "Sensor"]
