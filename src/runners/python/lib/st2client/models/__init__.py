"""Records of the API. `MANAGERS` has what `Client` makes of each kind: record, manager, endpoint."""

from st2client.models import datastore, keyvalue
from st2client.models.action import Action, ActionManager, Execution, ExecutionManager, LiveAction, RunnerType
from st2client.models.action_alias import ActionAlias, ActionAliasManager, ActionAliasMatch
from st2client.models.aliasexecution import ActionAliasExecution, ActionAliasExecutionManager
from st2client.models.core import Resource, ResourceManager
from st2client.models.keyvalue import KeyValuePair, KeyValuePairManager
from st2client.models.others import (
    ApiKey,
    Inquiry,
    InquiryManager,
    Policy,
    PolicyType,
    ServiceRegistryGroup,
    ServiceRegistryGroupsManager,
    ServiceRegistryMember,
    ServiceRegistryMembersManager,
    Stream,
    StreamManager,
    Token,
    TokenManager,
    Trace,
    Workflow,
    WorkflowManager,
)
from st2client.models.pack import Config, ConfigManager, ConfigSchema, Pack, PackManager
from st2client.models.reactor import (
    Rule,
    RuleEnforcement,
    Sensor,
    Timer,
    Trigger,
    TriggerInstance,
    TriggerInstanceManager,
    TriggerType,
    Webhook,
    WebhookManager,
)

MANAGERS = {
    "Action": (Action, ActionManager, "api"),
    "ActionAlias": (ActionAlias, ActionAliasManager, "api"),
    "ActionAliasExecution": (ActionAliasExecution, ActionAliasExecutionManager, "api"),
    "ApiKey": (ApiKey, None, "api"),
    "Config": (Config, ConfigManager, "api"),
    "ConfigSchema": (ConfigSchema, None, "api"),
    "Execution": (Execution, ExecutionManager, "api"),
    "LiveAction": (Execution, ExecutionManager, "api"),
    "Inquiry": (Inquiry, InquiryManager, "api"),
    "KeyValuePair": (KeyValuePair, KeyValuePairManager, "api"),
    "Pack": (Pack, PackManager, "api"),
    "Policy": (Policy, None, "api"),
    "PolicyType": (PolicyType, None, "api"),
    "Rule": (Rule, None, "api"),
    "RuleEnforcement": (RuleEnforcement, None, "api"),
    "RunnerType": (RunnerType, None, "api"),
    "Sensor": (Sensor, None, "api"),
    "ServiceRegistryGroups": (ServiceRegistryGroup, ServiceRegistryGroupsManager, "api"),
    "ServiceRegistryMembers": (ServiceRegistryMember, ServiceRegistryMembersManager, "api"),
    "Stream": (Stream, StreamManager, "stream"),
    "Timer": (Timer, None, "api"),
    "Token": (Token, TokenManager, "auth"),
    "Trace": (Trace, None, "api"),
    "Trigger": (Trigger, None, "api"),
    "TriggerInstance": (TriggerInstance, TriggerInstanceManager, "api"),
    "TriggerType": (TriggerType, None, "api"),
    "Webhook": (Webhook, WebhookManager, "api"),
    "Workflow": (Workflow, WorkflowManager, "api"),
    "WorkflowManager": (Workflow, WorkflowManager, "api"),
}

__all__ = [kind.__name__ for kind, _, _ in MANAGERS.values()] + [
    "ActionAliasMatch",
    "LiveAction",
    "Resource",
    "ResourceManager",
    "datastore",
    "keyvalue",
]
