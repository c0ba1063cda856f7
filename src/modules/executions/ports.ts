/** What executions ask of modules above them; `app.ts` says who answers. */
import type { Unit } from '../../db/index.ts'
import type { RunContext } from '../../runners/index.ts'
import type { Keep } from '../../core/keep.ts'
import type { PackConfig } from '../../core/pack-content.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { Execution } from './types.ts'

/** How an execution stands among the attempts of what is tried again when it fails. */
export interface Attempt {
  /** 1 for the first. */
  attempt: number
  /** The unit of its end plans another attempt. */
  willRetry: boolean
}

/**
 * Port: plans effects of a status change, in the same unit. The triggers module implements it.
 *
 * @param parameters of the execution, secrets masked
 */
export type PlanReaction = (
  execution: Execution,
  parameters: Record<string, unknown>,
  attempt: Attempt,
) => Unit | undefined

/** What the status of an execution brings about; undefined: nothing. */
export type ExecutionReaction = (execution: Execution) => Unit | undefined

/** Port: tells people about the ends of executions. */
export interface ExecutionNotifications {
  /** Plans what is sent about the end of an execution, in the same unit. Never throws. */
  planEnd(execution: Execution, attempt: Attempt): Unit | undefined
}

/** At most `threshold` executions with the same key have a slot at once. */
export interface Limit {
  key: string
  threshold: number
  /** What happens to an execution above the threshold: it waits until another ends, or is canceled. */
  beyond: 'delay' | 'cancel'
  /** Reference of the policy. */
  policy: string
}

/** Port: policies of executions (contract 02, 2.11); the policies module implements it. */
export interface ExecutionPolicies {
  /**
   * The limits of an execution that needs a slot; the first limit that is reached decides. They change only with the
   * policies of its action. Never throws: a policy that fails is ignored.
   *
   * @param open decrypts its parameters; the secrets must not be stored or logged
   */
  limitsOf(execution: Execution, open: () => Record<string, unknown>): readonly Limit[]
  /** Plans the retry of an ended execution, in the same unit. Never throws. */
  planRetry(execution: Execution): Unit | undefined
}

/** Port: the configuration of packs (contract 02, 2.9); the packs module implements it. */
export interface PackConfigs {
  /** Resolves with the permissions of the reader; empty for a pack without configuration. @throws TEMPLATE_FAILED, CONFIG_INVALID when it is not used */
  resolve(pack: string, reader: TemplateReader): PackConfig
}

/** Port: API credentials of running actions; the auth module implements it. */
export interface ServiceTokens {
  /** Whether authentication is on. */
  readonly enabled: boolean
  /**
   * A token for the run of an execution, valid once the unit is committed. Undefined when the run gets none.
   *
   * Only the process receives the value.
   */
  plan(execution: Execution): { token: string; unit: Unit } | undefined
  /** Revokes the token of an execution, if it has one. */
  planEnd(execution: Execution): Unit
}

/** What a workflow execution starts with, its parameters decrypted and complete. */
export interface WorkflowStart extends Pick<RunContext, 'runnerParameters' | 'actionParameters' | 'packFolder'> {
  /** Those in the parameters. */
  readonly secrets: readonly unknown[]
}

/** Port: executions that are workflows, or belong to one; the workflows module implements it. */
export interface ExecutionWorkflows {
  /**
   * Starts the workflow of an execution that policies have admitted. Resolves when its start, or its refusal, is stored, or
   * when the execution has changed in between.
   *
   * @throws the database error when it could not be stored
   */
  begin(execution: Execution, start: WorkflowStart): Promise<void>
  /**
   * Commits the change of an execution together with what follows from it in its workflow: the next tasks, the end of the
   * workflow.
   *
   * @param unit the change
   * @returns undefined: it concerns no workflow, so that the caller commits the unit. Rejects as `Database.write`
   */
  follow(before: Execution, after: Execution, unit: Unit): Promise<void> | undefined
  /** Executions that workflows have started → those that run these workflows now. */
  holdersOf(executions: readonly string[]): ReadonlyMap<string, string>
  /** Deletes the workflows that the executions run, but for those that are not over, because they have been repeated. */
  remove(executions: readonly string[]): Promise<void>
}

/** Port: jobs, which are rules that start executions; the jobs module implements it. */
export interface ExecutionJobs {
  /** Plans what the end of an execution changes of its job, in the same unit. Undefined: nothing. Never throws. */
  planEnd(ended: Execution, attempt: Attempt): Unit | undefined
}

/** A rule that says how long it keeps its executions. */
export interface RuleKeep {
  id: string
  name: string
  keep: Keep
}

/** Port: rules that say how long they keep their executions; the rules module implements it. */
export interface RuleKeeps {
  keeps(): Promise<RuleKeep[]>
}

/** Ports to modules above. */
export interface ExecutionsPorts {
  readonly planReaction: PlanReaction
  readonly packConfigs: PackConfigs
  readonly policies: ExecutionPolicies
  readonly notifications: ExecutionNotifications
  readonly workflows: ExecutionWorkflows
  readonly jobs: ExecutionJobs
  readonly rules: RuleKeeps
}
