import os

from st2client.client import Client
from st2common.runners.base_action import Action


class Addresses(Action):
    def run(self):
        own = os.environ["SVC_ACTION_API_URL"]
        token = os.environ["SVC_ACTION_AUTH_TOKEN"]
        forms = [
            Client(),
            Client("http://127.0.0.1"),
            Client(base_url="http://localhost:9101/"),
            Client(api_url="https://127.0.0.1/api", token=token),
            Client(api_url="http://localhost:9101/v1"),
            Client(api_url=own),
            self.action_service.get_api_client(),
        ]
        other = Client(base_url="http://other.example")
        elsewhere = Client(api_url="http://127.0.0.1:1/v1")
        error = None
        try:
            elsewhere.keys.get_by_name("a")
        except Exception as problem:
            error = str(problem)
        return {
            "own": [one.endpoints["api"] == own and one.token == token for one in forms],
            "works": [one.get_user_info()["username"] for one in forms],
            "other": [other.endpoints, other.token],
            "error": error,
            "elsewhere": elsewhere.token,
        }
