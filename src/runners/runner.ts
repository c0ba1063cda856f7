/**
 * The contract of a runner: parameters in, chunks and a result out.
 *
 * A runner knows nothing of database, bus or HTTP. To add one: write `runners/<name>.ts` and list it in
 * `runners/index.ts`.
 */
import { ParameterSchemaRecord } from '../core/parameter-schema.ts'
import { Type, type ParameterSchema, type Static } from '../lib/schema/index.ts'

/** The record of contract 02 (2.3), without its ids. */
export const runnerTypeDefinition = Type.Object({
  name: Type.String(),
  description: Type.String(),
  enabled: Type.Boolean(),
  runner_package: Type.String(),
  runner_module: Type.String(),
  runner_parameters: Type.MapOf(ParameterSchemaRecord, { description: 'Schemas of the parameters by their names.' }),
  output_key: Type.Optional(Type.String({ description: 'Attribute of the result that `output_schema` describes.' })),
  output_schema: Type.Optional(Type.FreeForm({ description: 'JSON schema of the result.' })),
})
export type RunnerTypeDefinition = Static<typeof runnerTypeDefinition>

export const outputTypes = ['stdout', 'stderr', 'other'] as const
export type OutputType = (typeof outputTypes)[number]

/** Identifies a child for good: a pid can be used again, a pid with its start time cannot. */
export interface ProcessIdentity {
  pid: number
  /** Field 22 of `/proc/<pid>/stat`: clock ticks since boot. */
  startTime: string
}

/** An identity as it is kept for the next server: a start time counts from the boot it belongs to. */
export interface RecordedProcess extends ProcessIdentity {
  /** `/proc/sys/kernel/random/boot_id` */
  bootId: string
}

/** Why a run is to end early. */
export type StopReason = 'cancel' | 'shutdown'

export interface RunContext {
  executionId: string
  liveactionId: string
  actionRef: string
  pack: string
  /** The acting user of the execution. */
  user: string
  /** Effective values (defaults filled in) of the runner's parameters, action overrides applied. */
  runnerParameters: Record<string, unknown>
  /** Effective values of the parameters that only the action declares. */
  actionParameters: Record<string, unknown>
  /** What the action declares about parameters, also about those of the runner. */
  parameterSchemas: Readonly<Record<string, ParameterSchema>>
  /** Absolute path of the action's entry point; empty when the action has none. */
  entryPoint: string
  /** Absolute path of the folder of the action's pack; empty when the pack has none on this server. */
  packFolder: string
  /** Resolved configuration of the action's pack (contract 02, 2.9); asked for when it is needed. @throws TEMPLATE_FAILED */
  config(): Record<string, unknown>
  /** `SVC_ACTION_*` variables; they win over every other source of environment. */
  env: Record<string, string>
  /**
   * Hands over decoded output. A returned promise asks the runner to pause its source until it resolves:
   * that is the back-pressure of a slow disk.
   *
   * @param host that it comes from, for runners that work on several
   */
  emit(type: OutputType, text: string, host?: string): Promise<void> | undefined
  /** Tells whoever follows the event stream, as `svc.announcement__<route>`. */
  announce(route: string, message: unknown): void
  /** Whether a secret of the run is in the text: it must not go where others can see it, such as arguments of processes. */
  hides(text: string): boolean
  /** Tells which process carries this run, as soon as it exists, so that a crash can be cleaned up after. */
  processStarted(identity: ProcessIdentity): void
  /** Aborted to end the run early; `signal.reason` is a `StopReason`. The runner ends its whole process tree, then resolves. */
  signal: AbortSignal
}

/** `pending`: somebody outside is to settle it; nothing of the run is left meanwhile. */
export type RunStatus = 'succeeded' | 'failed' | 'timeout' | 'abandoned' | 'pending'

/** A failed run is a result, not an exception. After an abort the status is ignored: the execution's state decides. */
export interface RunResult {
  status: RunStatus
  result: Record<string, unknown>
  /** Of `pending`: how long somebody has to settle it before it counts as timed out; absent: for ever. */
  ttlSeconds?: number
}

export interface Runner {
  definition: RunnerTypeDefinition
  /** Resolves when nothing of the run is left; a throw is a bug and becomes a failed execution with `{error, traceback}`. */
  run(context: RunContext): Promise<RunResult>
}
