export { isAmong } from './among.ts'
export { commitPlan } from './commit.ts'
export { createCompanions, type Companions } from './companions.ts'
export { Conflict, merge, type Compilable, type Database, type Step, type Unit } from './database.ts'
export { SchemaTooNew, missingMigrations } from './migrate.ts'
export { columnsOf, prepared } from './prepared.ts'
export { checkDatabase } from './sqlite/check.ts'
export { readFileSpace, type FileSpace } from './sqlite/header.ts'
export { removePartialBackups } from './sqlite/copy.ts'
export { newestExecution } from './sqlite/newest.ts'
export { openSqlite } from './sqlite/open.ts'
export type {
  ApiKeyTable,
  ExecutionCountTable,
  ExecutionResultTable,
  ExecutionTable,
  GroupMappingTable,
  IdempotentRequestTable,
  KeyValuePairTable,
  NotificationTable,
  OutputRecordTable,
  PolicyTable,
  SensorTypeTable,
  ProcessTable,
  RoleAssignmentTable,
  RoleTable,
  RuleEnforcementTable,
  RuleTable,
  StatusSampleTable,
  Tables,
  TimerTable,
  JobTable,
  TokenTable,
  TraceComponentTable,
  TraceTable,
  TriggerInstanceTable,
  TriggerTable,
  UserTable,
  WebhookDeliveryTable,
  WorkflowActionTable,
  WorkflowContextTable,
  WorkflowErrorTable,
  WorkflowExecutionTable,
  WorkflowTaskTable,
} from './tables.ts'
