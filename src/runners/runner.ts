/**
 * The contract of a runner: parameters in, chunks and a result out.
 *
 * A runner does not depend on database, bus or HTTP. To add one: write `runners/<name>.ts` and list it in
 * `runners/index.ts`.
 */
import { ParameterSchemaRecord } from '../core/parameter-schema.ts'
import type { StartNote } from './start-note.ts'
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

/** Identifies a child uniquely: pids are reused, a pid with its start time is not. */
export interface ProcessIdentity {
  pid: number
  /** Field 22 of `/proc/<pid>/stat`: clock ticks since boot. */
  startTime: string
}

/** An identity stored for the next server: a start time is relative to its boot. */
export interface RecordedProcess extends ProcessIdentity {
  /** `/proc/sys/kernel/random/boot_id` */
  bootId: string
}

/** Why svc stops a run early; `deadline`: the workflow that it belongs to gives it no more time. */
export type StopReason = 'cancel' | 'shutdown' | 'deadline'

export interface RunContext {
  executionId: string
  liveactionId: string
  actionRef: string
  pack: string
  /** The acting user of the execution. */
  user: string
  /** Effective runner parameters (defaults filled in, action overrides applied). */
  runnerParameters: Record<string, unknown>
  /** Effective values of the parameters that only the action declares. */
  actionParameters: Record<string, unknown>
  /** The action's parameter schemas, also for parameters of the runner. */
  parameterSchemas: Readonly<Record<string, ParameterSchema>>
  /** Absolute path of the action's entry point; empty without one. */
  entryPoint: string
  /** Absolute path of the folder of the action's pack; empty when the pack has none on this server. */
  packFolder: string
  /** Folder whose `requirements.txt` counts, when `packFolder` holds another revision of the pack. */
  environmentFolder?: string
  /**
   * Resolves the configuration of the action's pack (contract 02, 2.9) on demand.
   *
   * @returns `remark`: a sentence about the values for the output
   * @throws TEMPLATE_FAILED
   */
  config(): { values: Record<string, unknown>; remark?: string }
  /** `SVC_ACTION_*` variables; they override all other sources. */
  env: Record<string, string>
  /**
   * Emits decoded output. A returned promise asks the runner to pause its source until it resolves:
   * back-pressure from a slow disk.
   *
   * @param host the source, for runners that use several hosts
   */
  emit(type: OutputType, text: string, host?: string): Promise<void> | undefined
  /** Publishes an event on the event stream, as `svc.announcement__<route>`. */
  announce(route: string, message: unknown): void
  /** Whether the text contains a secret of the run: it must not appear where others can read it, as in arguments. */
  containsSecret(text: string): boolean
  /** Reports the process of this run as soon as it exists, so that a crash can be cleaned up. */
  processStarted(identity: ProcessIdentity): void
  /** With `Runner.notesStart`: the runner writes it right before the action begins. */
  startNote?: StartNote
  /** Aborted to stop the run; `signal.reason` is a `StopReason`. The runner stops its process tree, then resolves. */
  signal: AbortSignal
}

/** `pending`: a user has to settle the execution later; the run itself holds no resources. */
export type RunStatus = 'succeeded' | 'failed' | 'timeout' | 'abandoned' | 'pending'

/** A failed run is a result, not an exception. After an abort the status is ignored: the execution's state decides. */
export interface RunResult {
  status: RunStatus
  result: Record<string, unknown>
  /** For `pending`: seconds until the execution times out; absent: never. */
  ttlSeconds?: number
}

/** A run whose record has ended. */
export interface EndedRun {
  executionId: string
  /** As stored: secrets are masked. */
  result: Readonly<Record<string, unknown>>
  /** @throws Error whose message is a sentence: they cannot be had any more */
  readonly runnerParameters: () => Promise<Record<string, unknown>>
}

export interface StoppedBackground {
  /** Processes that got a signal. */
  stopped: number
  /** A sentence for each machine whose processes may still run. */
  problems: string[]
}

export interface Runner {
  definition: RunnerTypeDefinition
  /** Whether `run` writes `startNote` itself, after preparations that may be repeated; else it is written before `run`. */
  notesStart?: true
  /** Resolves when the run holds no resources. A throw is a bug: the execution fails with `{error, traceback}`. */
  run(context: RunContext): Promise<RunResult>
  /** Stops the processes that outlived a run on other machines. Never rejects. */
  stopBackground?: (run: EndedRun) => Promise<StoppedBackground>
}
