"""The base class of Python actions."""

import abc

from svc import log

__all__ = ["Action"]


class Action(abc.ABC):
    """An action of a pack: the class in the file of its entry point that derives from this one.

    It is made once for one execution. What it prints is the output of the execution, what `run` returns is its result.
    """

    def __init__(self, config=None, action_service=None):
        """
        :param config: the configuration of the pack, a dictionary; empty when the pack has none
        :param action_service: see `svc.action_service.ActionService`
        """
        self.config = config or {}
        self.action_service = action_service
        #: Writes to stderr; `log_level` of the execution says from which level on.
        self.logger = log.get_logger(self.__class__.__name__)

    @abc.abstractmethod
    def run(self, **kwargs):
        """Carries the action out, with the parameters of the execution as keyword arguments.

        Whatever is returned is the result: as it is when JSON can hold it, else its text. A tuple of two, the first of them
        a boolean, tells by that whether the action has succeeded. An exception fails the execution.
        """
