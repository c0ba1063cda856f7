/** What the server sends, as the server itself declares it. */
export type { ActionRecord, RunnerTypeRecord } from '../../../src/modules/actions/types.ts'
export type { BackupFile } from '../../../src/core/backup-record.ts'
export type {
  ApiKeyRecord,
  ApiKeyRequest,
  ApiKeyScope,
  CurrentUser,
  IssuedToken,
  NewApiKeyRecord,
  NewUserRequest,
  UserRecord,
  UserRequest,
} from '../../../src/modules/auth/types.ts'
export type {
  ExecutionContext,
  ExecutionRecord,
  ExecutionStatus,
  LogEntry,
  OutputLine,
  OutputLines,
  OutputMatch,
  OutputMatches,
  OutputPart,
  OutputRecord as StoredOutputRecord,
  OutputType,
} from '../../../src/modules/executions/types.ts'
export type { ContentKind } from '../../../src/modules/stream/types.ts'
export type { InquiryRecord } from '../../../src/modules/inquiries/types.ts'
export type { PolicyRecord } from '../../../src/modules/policies/types.ts'
export type { StatusHistory, StatusRecord, StatusSample } from '../../../src/modules/monitoring/types.ts'
export type { PermissionTypes, RoleAssignmentRecord, RoleRecord } from '../../../src/modules/rbac/types.ts'
export type {
  CriterionDefinition,
  Explanation,
  LastEnforcement,
  OperatorRecord,
  RuleDefinition,
  RuleEnforcement,
  RuleEnforcementView,
  RuleRecord,
  RuleTestRequest,
  RuleTestResult,
  RuleType,
  RuleVerdict,
  RuleView,
  SeenCriterion,
} from '../../../src/modules/rules/types.ts'
export type {
  CausedBy,
  TraceComponent,
  TraceMemberKind,
  TraceMemberRecord,
  TraceRecord,
  TraceSummary,
} from '../../../src/modules/traces/types.ts'
export type {
  SignatureParameters,
  TimerRecord,
  TriggerInstanceRecord,
  TriggerInstanceStatus,
  TriggerRecord,
  TriggerTypeRecord,
  WebhookParameters,
} from '../../../src/modules/triggers/types.ts'
export type { WebhookOutcome } from '../../../src/modules/webhooks/types.ts'
export type { WorkflowGraph, WorkflowRun, WorkflowTaskRecord } from '../../../src/modules/workflows/types.ts'
export type { ParameterSchema } from '../../../src/lib/schema/index.ts'
