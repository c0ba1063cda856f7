"""Records of other kinds."""

from st2client.models.core import Resource, ResourceManager
from st2client.utils.httpclient import path_of


class ApiKey(Resource):
    _repr_attributes = ["id", "user", "metadata"]


class Token(Resource):
    _repr_attributes = ["user", "expiry"]


class Inquiry(Resource):
    _plural = "Inquiries"
    _repr_attributes = ["id"]


class Policy(Resource):
    _plural = "Policies"
    _repr_attributes = ["name", "enabled", "resource_ref", "policy_type"]


class PolicyType(Resource):
    _alias = "Policy-Type"
    _repr_attributes = ["ref", "resource_type"]


class Trace(Resource):
    _repr_attributes = ["id", "trace_tag"]


class Workflow(Resource):
    pass


class ServiceRegistryGroup(Resource):
    _url_path = "service_registry/groups"
    _repr_attributes = ["group_id"]


class ServiceRegistryMember(Resource):
    _url_path = "service_registry/members"
    _repr_attributes = ["group_id", "member_id"]


class InquiryManager(ResourceManager):
    def respond(self, inquiry_id, inquiry_response, **kwargs):
        """Answers an inquiry: a dictionary that fits its schema."""
        body = {"id": inquiry_id, "response": inquiry_response}
        return self._made(self.client.put(path_of("inquiries", inquiry_id), body, **kwargs))


class TokenManager(ResourceManager):
    def create(self, instance, **kwargs):
        """Logs in: `auth=(user, password)`."""
        return self._made(self.client.post("/tokens", instance.serialize(), **kwargs))


class WorkflowManager(ResourceManager):
    def inspect(self, definition, **kwargs):
        """Returns what is wrong in the text of a workflow, a list."""
        headers = {"Content-Type": "text/plain"}
        return self.answer_of(self.client.post_raw("/workflows/inspect", definition, headers=headers, **kwargs))


class ServiceRegistryGroupsManager(ResourceManager):
    def list(self, **kwargs):
        found = self.answer_of(self._get("/service_registry/groups", kwargs))
        return [self.resource(group_id=one) for one in found["groups"]]

    get_all = list


class ServiceRegistryMembersManager(ResourceManager):
    def list(self, group_id, **kwargs):
        """Returns the processes of a group."""
        found = self.answer_of(self._get(path_of("service_registry", "groups", group_id, "members"), kwargs))
        return [self.resource.deserialize(one) for one in found["members"]]


class Stream(Resource):
    _url_path = "stream"


class StreamManager(ResourceManager):
    def listen(self, events=None, **kwargs):
        """Yields the data of each event, until the server ends the stream.

        :param events: names, such as `st2.execution__update`; all without
        """
        query = dict(kwargs.pop("params", None) or {})
        for name in ("end_event", "end_execution_id"):
            if name in kwargs:
                query[name] = kwargs.pop(name)
        if events:
            query["events"] = events if isinstance(events, str) else ",".join(events)
        return self.client.events("/stream", params=query, **kwargs)
