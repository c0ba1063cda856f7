from svc.action import Action
from svc.action_service import request


class MatchAndExecute(Action):
    def run(self, text, user=None, source_channel="chatops", notification_route=None):
        body = {
            "command": text,
            "user": user or request("GET", "/user")["username"],
            "source_channel": source_channel,
        }
        if notification_route:
            body["notification_route"] = notification_route
        answer = request("POST", "/aliasexecution/match_and_execute", body=body)
        return {
            "results": [
                {
                    "execution_id": result["execution"]["id"],
                    "alias": result["actionalias"]["ref"],
                    "message": result.get("message"),
                }
                for result in answer["results"]
            ]
        }
