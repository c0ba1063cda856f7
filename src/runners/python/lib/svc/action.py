"""The base class of Python actions."""

import abc

from svc import log

__all__ = ["Action"]


class Action(abc.ABC):
    """Base class of an action: the entry point of an action defines a class derived from it.

    Each execution creates one instance. Printed text is the output of the execution; `run` returns its result.
    """

    def __init__(self, config=None, action_service=None):
        """
        :param config: the configuration of the pack, see `svc.config.PackConfigDict`; empty when the pack has none
        :param action_service: see `svc.action_service.ActionService`
        """
        self.config = {} if config is None else config
        self.action_service = action_service
        #: Writes to stderr, from the level in parameter `log_level` of the execution.
        self.logger = log.get_logger(self.__class__.__name__)

    @abc.abstractmethod
    def run(self, **kwargs):
        """Runs the action, with the parameters of the execution as keyword arguments.

        The returned value is the result: in its JSON form (see `svc.result`), otherwise as text. A tuple of two with a
        boolean first means (succeeded, result). An exception fails the execution.
        """
