from st2client.client import Client
from st2client.models import KeyValuePair
from st2client.models.datastore import KeyValuePair as OldKeyValuePair
from st2client.models.keyvalue import KeyValuePair as SameKeyValuePair
from st2common.runners.base_action import Action


class Keys(Action):
    def run(self):
        client = Client(base_url="http://localhost")
        made = client.keys.update(KeyValuePair(name="importing.a", value="1", ttl=1000))
        client.keys.update(SameKeyValuePair(name="importing.b/ä", value="s3cret", secret=True))
        client.keys.update(OldKeyValuePair(name="importing.c", value="mine", scope="st2kv.user"))
        read = client.keys.get_by_name(name="importing.a")
        read.value = "2"
        client.keys.update(read)
        out = {
            "id": made.id,
            "value": client.keys.get_by_name("importing.a").value,
            "decrypted": client.keys.get_by_name("importing.b/ä", decrypt=True).value,
            "is_hidden": client.keys.get_by_name("importing.b/ä").value != "s3cret",
            "user": client.keys.get_by_name("importing.c", params={"scope": "user"}).value,
            "missing": client.keys.get_by_name("importing.none"),
            "names": sorted(key.name for key in client.keys.get_all(prefix="importing.")),
            "by_id": client.keys.get_by_id("importing.a").name,
            "old": [client.keys.update(key).value for key in client.keys.get_all(prefix="importing.a", limit=-1)],
        }
        own = client.keys.get_by_name("importing.c", scope="user")
        out["deleted"] = [client.keys.delete(own), client.keys.get_by_name("importing.c", scope="user") is None]
        instance = KeyValuePair()
        instance.id = "importing.a"
        instance.name = "importing.a"
        out["deleted"] += [client.keys.delete(instance), client.keys.delete(instance)]
        self.action_service.datastore_service.set_value("x", "y", scope="st2kv.system")
        out["pack"] = getattr(self.action_service._action_wrapper, "_pack", "unknown")
        out["service"] = self.action_service.datastore_service.get_value("x")
        return out
