import random as randomness
import time

from svc.action import Action


class Pause(Action):
    def run(self, max_pause, random=False):
        if max_pause < 0:
            raise ValueError('"max_pause" is a number of seconds, and cannot be negative.')
        seconds = randomness.uniform(0, max_pause) if random else max_pause
        self.logger.debug("Waiting for %.3f seconds", seconds)
        time.sleep(seconds)
        return seconds
