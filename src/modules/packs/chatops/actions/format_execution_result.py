from urllib.parse import quote

from svc.action import Action
from svc.action_service import request


class FormatExecutionResult(Action):
    def run(self, execution_id):
        reply = request("GET", "/aliasexecution/{}/reply".format(quote(execution_id, safe="")))
        return {
            "enabled": reply["enabled"],
            "message": reply["message"],
            "extra": reply.get("extra") or {},
        }
