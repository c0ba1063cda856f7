import datetime

from st2common import log as logging
from st2common.exceptions.action import InvalidActionParameterException
from st2common.runners.base_action import Action
from st2common.runners.utils import get_logger_for_python_runner_action
from st2common.util import isotime
from st2common.util.date import get_datetime_utc_now, parse
from st2common.util.shell import quote_unix, run_command

LOG = logging.getLogger(__name__)


class Helpers(Action):
    def run(self):
        LOG.info("from a module")
        LOG.audit("audited")
        self.logger.audit("by the action")
        get_logger_for_python_runner_action("Other").warning("of another name")
        code, out, error = run_command(["sh", "-c", "echo out; echo err >&2; exit 3"])
        time = isotime.parse("2026-01-02T03:04:05.678Z")
        try:
            raise InvalidActionParameterException("no such host")
        except Exception as problem:
            named = [type(problem).__name__, str(problem)]
        return {
            "shell": [code, out, error, quote_unix("a b")],
            "time": [
                isotime.format(time),
                isotime.format(time, usec=False, offset=False),
                isotime.format("2026-01-02T03:04:05+02:00", usec=False),
                isotime.format(datetime.datetime(2026, 1, 2)),
                isotime.validate("yesterday", raise_exception=False),
                parse("2026-01-02 03:04:05").isoformat(),
                get_datetime_utc_now().tzinfo == datetime.timezone.utc,
            ],
            "error": named,
        }
