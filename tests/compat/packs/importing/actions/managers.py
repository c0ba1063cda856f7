import time
from collections import namedtuple

from st2client import models
from st2client.client import Client
from st2common.runners.base_action import Action
from st2common.services.packs import get_pack_from_index, search_pack_index

Words = namedtuple("Words", "query")
One = namedtuple("One", "pack")


class Managers(Action):
    def run(self, source, password):
        self.client = client = Client()
        return {
            "inquiry": self.inquiry(),
            "token": self.token(password),
            "services": self.services(),
            "clone": self.clone(),
            "index": self.index(),
            "packs": self.packs(source),
            "again": self.emit_again(),
        }

    def wait_for(self, found):
        end = time.monotonic() + 50
        while time.monotonic() < end:
            value = found()
            if value:
                return value
            time.sleep(0.05)
        raise Exception("waited in vain")

    def inquiry(self):
        schema = {"type": "object", "properties": {"sure": {"type": "boolean", "required": True}}}
        asked = self.client.executions.create(models.Execution(action="core.ask", parameters={"schema": schema}))
        self.wait_for(lambda: self.client.executions.get_by_id(asked.id).status == "pending")
        inquiry = self.client.inquiries.get_by_id(asked.id)
        listed = [one.id for one in self.client.inquiries.get_all()]
        refused = None
        try:
            self.client.inquiries.respond(inquiry.id, {"sure": "perhaps"})
        except Exception as problem:
            refused = problem.status
        given = self.client.inquiries.respond(inquiry.id, {"sure": True})
        ended = self.client.executions.wait(asked.id, 50)
        return [inquiry.schema == schema, inquiry.id in listed, refused, given.response, ended.status]

    def token(self, password):
        made = self.client.tokens.create(models.Token(ttl=600), auth=("admin", password))
        other = Client(token=made.token)
        refused = None
        try:
            self.client.tokens.create(models.Token(), auth=("admin", "wrong"))
        except Exception as problem:
            refused = problem.status
        # The token of an action cannot create one.
        key = other.apikeys.create(models.ApiKey(user="admin", metadata={"for": "tests"}))
        name = Client(api_key=key.key).get_user_info()["username"]
        deleted = [other.apikeys.delete_by_id(key.id), other.apikeys.get_by_id(key.id)]
        return [made.user, other.get_user_info()["username"], refused, name] + deleted

    def services(self):
        groups = [one.group_id for one in self.client.service_registry_groups.list()]
        members = self.client.service_registry_members.list("api")
        return ["api" in groups, [[one.group_id, bool(one.member_id)] for one in members]]

    def clone(self):
        actions = self.client.actions
        made = actions.clone("importing.common", "default", "copied", False)
        refused = None
        try:
            actions.clone("importing.common", "default", "copied", False)
        except Exception as problem:
            refused = problem.status
        again = actions.clone("importing.common", "default", "copied", overwrite=True)
        text = actions.get_entrypoint("default.copied") == actions.get_entrypoint("importing.common")
        actions.delete_action(again, True)
        return [made.ref, refused, again.ref, text, actions.get_by_ref_or_id("default.copied")]

    def index(self):
        packs = self.client.packs
        unknown = get_pack_from_index("nowhere")
        names = lambda found: [one["ref"] for one in found]  # noqa: E731
        return {
            "search": [one.ref for one in packs.search(Words("cloud"))],
            "one": packs.search(One("aws")).version,
            "none": packs.search(One("nowhere")),
            "from_index": [get_pack_from_index("aws")["version"], unknown],
            "searched": [
                names(search_pack_index("Cloud")),
                names(search_pack_index("cloud", case_sensitive=False)),
                names(search_pack_index("cloud", exclude=["keywords"])),
                names(search_pack_index("aws", priority=["ref"])),
                names(search_pack_index("sea")),
            ],
        }

    def packs(self, source):
        client = self.client
        started = client.packs.install([source], force=True)
        ended = client.executions.wait(started.execution_id, 50)
        config = client.configs.update(models.Config(pack="tiny", values={"place": "north"}))
        found = client.configs.get_by_id("tiny")
        schema = client.config_schemas.get_by_id("tiny")
        gone = client.executions.wait(client.packs.remove(["tiny"]).execution_id, 50)
        return [
            ended.status,
            config.values,
            found.values,
            sorted(schema.attributes),
            gone.status,
            client.packs.get_by_ref_or_id("tiny"),
        ]

    def emit_again(self):
        self.client.webhooks.post_generic_webhook("core.svc.sensor.process_exit", {"object": {"id": "again"}})
        instances = self.client.triggerinstances
        found = self.wait_for(lambda: instances.query(trigger="core.svc.sensor.process_exit", limit=1))[0]
        said = instances.re_emit(found.id)
        return [found.id in said["message"], len(instances.query(trigger="core.svc.sensor.process_exit")) > 1]
