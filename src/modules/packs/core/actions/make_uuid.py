import uuid

from svc.action import Action


class MakeUuid(Action):
    def run(self, uuid_type="uuid4"):
        return str(uuid.uuid1() if uuid_type == "uuid1" else uuid.uuid4())
