from st2client.client import Client
from st2client.models import LiveAction
from st2common.runners.base_action import Action


class Stream(Action):
    def run(self):
        client = Client()
        made = client.liveactions.create(LiveAction(action="core.echo", parameters={"message": "hello"}))
        stream = client.managers["Stream"]
        ended = [
            LiveAction(**event)
            for event in stream.listen(
                ["st2.execution__update"], end_event="st2.execution__update", end_execution_id=made.id
            )
            if event["id"] == made.id
        ]
        refused = None
        try:
            next(Client(token="none").managers["Stream"].listen())
        except Exception as problem:
            refused = problem.status
        return {"ended": ended[-1].status, "action": ended[-1].action["ref"], "refused": refused}
