import time

from st2client import models
from st2client.client import Client
from st2client.commands.action import LIVEACTION_STATUS_CANCELING, LIVEACTION_STATUS_REQUESTED
from st2client.commands.action import LIVEACTION_STATUS_RUNNING, LIVEACTION_STATUS_SCHEDULED
from st2client.models.action import Execution, LiveAction
from st2common.runners.base_action import Action

WORKING = [
    LIVEACTION_STATUS_REQUESTED,
    LIVEACTION_STATUS_SCHEDULED,
    LIVEACTION_STATUS_RUNNING,
    LIVEACTION_STATUS_CANCELING,
]


class Executions(Action):
    def run(self):
        client = Client()
        made = client.executions.create(Execution(action="core.echo", parameters={"message": "hello"}))
        ended = client.executions.wait(made.id, 60)
        again = client.liveactions.re_run(ended.id, parameters={"message": "again"})
        again = client.executions.wait(again.id, 60)
        long = client.liveactions.create(models.LiveAction(action="core.pause", parameters={"max_pause": 60}))
        client.executions.delete_by_id(long.id)
        other = client.liveactions.create(LiveAction(action="core.noop"))
        workflow = client.executions.create(models.Execution(action="importing.flow"))
        while client.executions.get_by_id(workflow.id).status != LIVEACTION_STATUS_RUNNING:
            time.sleep(0.05)
        paused = client.liveactions.pause(workflow.id).status
        client.executions.cancel(workflow.id)
        return {
            "was": made.status in WORKING,
            "ended": [ended.status, ended.result["stdout"], ended.action["ref"]],
            "again": again.result["stdout"],
            "output": client.executions.get_output(ended.id),
            "canceled": client.liveactions.get_by_id(long.id).status not in ("running", "succeeded"),
            "found": [one.id for one in client.liveactions.query(id=ended.id)] == [ended.id],
            "count": len(client.liveactions.get_all(limit=2)),
            "noop": other.action["ref"],
            "none": client.liveactions.get_by_id("0123456789abcdef01234567"),
            "paused": paused,
            "children": client.executions.get_children(ended.id),
            "text": str(ended)[:30],
        }
