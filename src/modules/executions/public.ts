/** The public API of the module, and what it needs. */
import type { Bus } from '../../bus/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { Database, Unit } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { SecretValues } from '../../lib/secrets/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Runner } from '../../runners/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Traces } from '../traces/index.ts'
import type { OutputCursor } from './output/output.ts'
import type { ExecutionsPorts, ServiceTokens } from './ports.ts'
import type { ExecutionsSettings } from './settings.ts'
import type { RolesOf } from './request/draft.ts'
import type { KillOrphans } from './run/recovery.ts'
import type { ExecutionService } from './service.ts'
import type { ExecutionEvent } from './state.ts'
import type { ResultWithSecrets, StoredResult } from './secrets/results.ts'
import type { Execution, ExecutionRecord, ExecutionStatus, LiveactionEvent } from './types.ts'

export interface Executions
  extends
    Module,
    Pick<ExecutionService, 'plan' | 'planRetry' | 'request' | 'requestAll' | 'hasRoom' | 'cancelOld' | 'actionOf'> {
  find(id: string): Execution | undefined
  /**
   * Plans the events of an execution that a workflow conducts, or is; writes nothing.
   *
   * @returns the execution after them; undefined: one does not fit its status
   */
  planChange(
    execution: Execution,
    ...events: readonly ExecutionEvent[]
  ): { execution: Execution; unit: Unit } | undefined
  /** Plans that a workflow which has just started ends at a time; writes nothing. */
  planDeadline(execution: Execution, at: string): { execution: Execution; unit: Unit }
  /** Of one parent, that have not ended, oldest first. */
  openChildren(parent: string, afterId: string, limit: number): Execution[]
  /**
   * What templates of its workflow may read: `svckv`, `action_context`, `config_context`.
   *
   * @param read gets the secrets that they read
   */
  templatesOf(execution: Execution, read: unknown[]): TemplateScope
  /** All secrets in its parameters. @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  secretsOf(execution: Execution): unknown[]
  /** Its result with the secrets in it, for a workflow. @param ended an execution whose end is not stored yet, or an id */
  resultWithSecrets(ended: Execution | string): ResultWithSecrets
  /**
   * The result of a workflow that failed because what it gives does not fit the `output_schema` of its action; undefined: it
   * fits, or is not compared.
   */
  outputFailureOf(execution: Execution, result: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined
  /** The result of a workflow as its row holds it. @param secrets that the workflow has read */
  maskOutput(
    execution: Execution,
    result: Record<string, unknown>,
    secrets: SecretValues | undefined,
  ): Promise<StoredResult>
  /** With `result`: null when there is none. */
  findWithResult(id: string): Execution | undefined
  /** Ids of the executions of a rule with `overlap` that have not ended, in the order in which they run. */
  openRunsOf(ruleId: string, limit: number): string[]
  /** Ids of those that rules started for a trigger instance, oldest first. */
  ofTriggerInstance(id: string): string[]
  /** The one with the greatest id. */
  last(): Execution | undefined
  /**
   * Plans lines in the output of a workflow; writes nothing. Without `actionrunner.stream_output` the unit is empty.
   *
   * @param text lines with their line ends, without secrets
   * @param end of what is stored of it
   */
  planLines(execution: Execution, end: LinesEnd, text: string): { unit: Unit; end: LinesEnd }
  /** Cheap while it runs; undefined when there is no such execution. */
  statusOf(id: string): ExecutionStatus | undefined
  outputCursor(id: string): OutputCursor
  /**
   * Pending executions of a runner type with their results, newest first. The generator reads each one when it is asked for.
   *
   * @param runner name of the runner type
   */
  pending(runner: string, page: Page): Promise<{ executions: Iterable<Execution>; total: number }>
  /**
   * Ends a pending execution with the result it waits for.
   *
   * @param masked the same result without its secrets, when it has some: then the result is stored encrypted as well
   * @throws CRYPTO_KEY_MISSING when there are secrets to store
   * @returns undefined when it is not pending any more
   */
  respond(
    seen: Execution,
    result: Record<string, unknown>,
    masked?: Record<string, unknown>,
  ): Promise<Execution | undefined>
  /** The masked wire record, as streams send it. */
  record(execution: Execution): ExecutionRecord
  liveactionRecord(execution: Execution): LiveactionEvent
  /** Ids of the traces with executions that have not ended. */
  openTraces(): string[]
  /** The policies of an action have changed. */
  policiesChanged(actionRef: string): void
  /** Number of actions that run now: a stop gives them the grace period. */
  running(): number
  /** While stopping: skips the rest of the grace period, and gives up writes that fail. */
  hurry(): void
}

/** Of the output of a workflow, which has lines of the type `other` only. */
export interface LinesEnd {
  /** Number of its last record; 0: there is none. */
  readonly seq: number
  readonly lines: number
  readonly bytes: number
}

export interface ExecutionsDeps extends ExecutionsPorts {
  database: Database
  bus: Bus
  log: Log
  metrics: Metrics
  encryption: Encryption
  actions: Actions
  /** Default: access control is off. */
  rolesOf?: RolesOf
  traces: Traces
  runners: readonly Runner[]
  killOrphans: KillOrphans
  /** Stored with the processes of executions. */
  bootId: string
  serviceTokens: ServiceTokens
  /** What templates in parameters may read, besides parameters and the context. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  settings: ExecutionsSettings
}
