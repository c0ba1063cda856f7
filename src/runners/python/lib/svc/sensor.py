"""Base classes of sensors. A sensor needs none of them: any class with the same methods will do."""

import sys
import time


class BaseSensor(object):
    """What all sensors have. Methods that a sensor does not define do nothing.

    :param sensor_service: see `svc.sensor_service.SensorService`
    :param config: configuration of the pack
    """

    def __init__(self, sensor_service, config=None):
        # Plain attributes under both names: sensors assign them too.
        self.sensor_service = self._sensor_service = sensor_service
        self.config = self._config = {} if config is None else config

    def setup(self):
        """Called once, before everything else."""

    def cleanup(self):
        """Called before the process ends."""

    def add_trigger(self, trigger):
        """Called for each trigger of the sensor's trigger types at start, and for new ones.

        :param trigger: a dictionary with `id`, `ref`, `type`, `parameters` and others
        """

    def update_trigger(self, trigger):
        """Called when the parameters of a trigger have changed."""

    def remove_trigger(self, trigger):
        """Called when a trigger has been deleted."""


class Sensor(BaseSensor):
    """A sensor that runs by itself until it is stopped."""

    def run(self):
        raise NotImplementedError("A sensor needs a method run().")


class PollingSensor(BaseSensor):
    """A sensor that looks again and again.

    :param poll_interval: seconds between the end of one poll and the next
    """

    def __init__(self, sensor_service, config=None, poll_interval=5):
        super(PollingSensor, self).__init__(sensor_service=sensor_service, config=config)
        self._poll_interval = poll_interval

    def poll(self):
        raise NotImplementedError("A polling sensor needs a method poll().")

    def run(self):
        while True:
            self.poll()
            pause(self.get_poll_interval())

    def get_poll_interval(self):
        return self._poll_interval

    def set_poll_interval(self, poll_interval):
        self._poll_interval = poll_interval


def pause(seconds):
    """Sleeps; the green threads of a sensor that uses eventlet go on meanwhile."""
    eventlet = sys.modules.get("eventlet")
    (eventlet or time).sleep(seconds)
