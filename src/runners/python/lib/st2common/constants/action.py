"""Statuses of executions."""

from st2client.commands.action import *  # noqa: F401, F403
from st2client.commands.action import LIVEACTION_COMPLETED_STATES  # noqa: F401
