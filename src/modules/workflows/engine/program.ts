/** What a definition does in the engine, whatever its runner. */
import type { AppError } from '../../../core/errors.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'
import type { WorkflowStart } from '../../executions/ports.ts'
import type { Execution } from '../../executions/types.ts'
import type {
  Event,
  InstanceRow,
  Limits,
  LogEntry,
  Outcome,
  Outside,
  Part,
  StartCommand,
  State,
} from '../conductor/index.ts'
import type { Definition } from '../definition/model.ts'
import type { Evaluated } from './evaluate.ts'

/** A compiled definition. */
export interface Program {
  /** Tasks and transitions: for a chain, its nodes. */
  readonly graph: Definition
  /** Evaluates a part of a run again, for whoever asks why. What takes long is not evaluated. @returns what the conductor logs */
  review(state: State, part: Part, world: Pick<ProgramWorld, 'outside' | 'workflow' | 'templates'>): readonly LogEntry[]
  /** The conductor of one run; it remembers what takes time to compute. @throws NeedsThread */
  createConduct(): Conduct
  /** What the execution of a task gets besides its parameters, `parent` and the user. */
  requestOf(workflow: Execution, run: string, command: StartCommand): TaskRequest
  /** The result of the execution. @param runOf asked once for each instance that has ended, or waits */
  resultOf(workflow: Execution, state: State, runOf: (instance: InstanceRow) => TaskRun): Record<string, unknown>
}

export type Conduct = (state: State, event: Event, world: ProgramWorld) => Outcome

/** What the rows do not have. */
export interface ProgramWorld {
  readonly outside: Omit<Outside, 'whyRefused'>
  readonly limits: Limits
  /** Long expressions that a thread has evaluated, by the number of the evaluation in the call. */
  readonly evaluated: ReadonlyMap<number, Evaluated>
  /** Why an action cannot be started; undefined: it can. */
  readonly refusalOf: (command: StartCommand) => AppError | undefined
  readonly hasAction: (ref: string) => boolean
  /** The execution of the workflow. */
  readonly workflow: Execution
  /** `svckv`, `action_context`, `config_context` and their filters. */
  readonly templates: () => TemplateScope
}

export interface TaskRequest {
  readonly context: Readonly<Record<string, unknown>>
  readonly notify: Readonly<Record<string, unknown>> | undefined
}

/** An instance as a result shows it. */
export interface TaskRun {
  /** ISO 8601 */
  readonly start: string
  readonly end: string
  /** undefined: the action could not be started */
  readonly execution: Execution | undefined
  readonly result: unknown
}

/** Why a definition cannot be run: the result of the execution. */
export interface Unusable {
  readonly result: Record<string, unknown>
}

export interface Programs {
  /**
   * The program of an execution that starts.
   *
   * @throws QUEUE_FULL, SHUTTING_DOWN
   */
  prepare(execution: Execution, start: WorkflowStart): Promise<{ text: string; program: Program } | Unusable>
  /** The program of a run that has started. @param text of its definition */
  compile(execution: Execution, text: string): Program
}

/** The value of a runner parameter that is no template. */
export function runnerParameter({ parameters, action, runner }: Execution, name: string): unknown {
  return parameters[name] ?? action.parameters[name]?.default ?? runner.runner_parameters[name]?.default
}
