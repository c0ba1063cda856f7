from st2client.client import Client
from st2common.runners.base_action import Action


class Inspecting(Action):
    def run(self):
        client = Client()
        text = "version: 1.0\ntasks:\n  one:\n    action: core.noop\n    next:\n      - do: {}\n"
        return [client.workflows.inspect(text.format(then)) for then in ("noop", "nowhere")]
