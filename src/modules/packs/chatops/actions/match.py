from svc.action import Action
from svc.action_service import request


class Match(Action):
    def run(self, text):
        found = request("POST", "/actionalias/match", body={"command": text})
        alias = found["actionalias"]
        return {
            "alias": {key: alias[key] for key in ("name", "pack", "ref", "action_ref", "description")},
            "display": found["display"],
            "representation": found["representation"],
        }
