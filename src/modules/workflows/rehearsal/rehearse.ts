/** Runs a workflow without actions, with scripted outcomes in their place. A pure function; its clock is one of its own. */
import { formatMicros } from '../../../core/time.ts'
import { entriesOf, objectOf } from '../../../lib/json/index.ts'
import {
  conductChain,
  createChainMemory,
  renderValue,
  resultOf as chainResultOf,
  type Chain,
  type ChainWorld,
} from '../chain/index.ts'
import type { Definition } from '../definition/model.ts'
import type { Either } from '../either.ts'
import {
  apply,
  conduct,
  createMemory,
  Draft,
  emptyState,
  isCompleted,
  type EndStatus,
  type Event,
  type InstanceRow,
  type LogEntry,
  type Outcome,
  type StartCommand,
  type State,
  type World,
} from '../conductor/index.ts'
import { Budget, defaultLimits } from '../../../lib/template/index.ts'
import { describeError, joinOf, transitionsOf, waitsOf } from '../explain.ts'
import { evaluate, ExpressionError, ExpressionExhausted, type Scope } from '../expressions/index.ts'
import type { Rehearsal, RehearsedAction, RehearsedTask, WorkflowFailure } from '../types.ts'
import { emptyOutcome, type MockOutcome, type Mocks } from './mocks.ts'

/** More runs of actions are an endless loop, as a rule. */
export const MAX_RUNS = 10_000

/**
 * Actions end in the order of the time that they take, with equal times in that of their starts. A task without a mock
 * succeeds with an empty result.
 */
export function rehearse(either: Either, mocks: Mocks): Rehearsal {
  return new Stage(either, mocks).play()
}

/** An action on its way to its end. */
interface Waiting {
  readonly at: number
  readonly command: StartCommand
  readonly outcome: MockOutcome
  readonly shown: RehearsedAction
  /** Whether the inquiry is asked already. */
  readonly isAsked: boolean
}

const WORKFLOW_ID = '000000000000000000000001'
const EXECUTION_ID = '000000000000000000000002'

const usualContext = {
  svc: {
    action_execution_id: EXECUTION_ID,
    workflow_execution_id: WORKFLOW_ID,
    api_url: 'http://127.0.0.1:9101/v1',
    user: 'tester',
    pack: 'default',
    action: 'default.workflow',
    runner: 'orquesta',
  },
  parent: {},
}

type Environment = typeof usualContext

class Stage {
  readonly #definition: Definition
  readonly #mocks: Mocks
  readonly #conduct: (state: State, event: Event) => Outcome
  readonly #chain: Chain | undefined
  #state: State = emptyState()
  /** Seconds. */
  #clock = 0
  /** Of the workflow, on the clock. */
  #deadline = Infinity
  /** Sorted by time. */
  readonly #waiting: Waiting[] = []
  /** Actions that have not ended. */
  readonly #open = new Map<RehearsedAction, StartCommand>()
  #isLate = false
  #runs = 0
  readonly #results = new Map<string, unknown>()
  /** Task and item → runs. */
  readonly #counts = new Map<string, number>()
  readonly #tasks = new Map<number, RehearsedTask>()
  readonly #logs = new Map<number, LogEntry[]>()
  readonly #failures: WorkflowFailure[] = []
  readonly #times = new Map<number, { start: number; end: number | null }>()
  #refused: StartCommand[] = []
  readonly #withoutMock = new Set<string>()

  constructor({ definition, chain }: Either, mocks: Mocks) {
    this.#definition = definition
    this.#chain = chain
    this.#mocks = mocks
    const environment = {
      svc: { ...usualContext.svc, ...mocks.context['svc'] },
      parent: { ...usualContext.parent, ...mocks.context['parent'] },
    }
    if (chain === undefined) {
      const world = this.#worldOf(environment)
      this.#conduct = (state, event) => conduct(definition, state, event, world)
    } else {
      const world = this.#chainWorldOf(environment)
      this.#conduct = (state, event) => conductChain(chain, state, event, world)
    }
  }

  #worldOf(environment: Environment): World {
    const { workflow_execution_id: _, ...startVariables } = environment.svc
    return {
      evaluate: evaluateAtOnce,
      memory: createMemory(),
      explains: true,
      outside: {
        environment,
        startEnvironment: { ...environment, svc: startVariables },
        resultOf: (instance, item) => this.#resultOf(instance, item),
        recordOf: (instance) => this.#recordOf(instance),
        readKey: ({ scope, name }) => valueOf(this.#mocks.datastore, scope === 'system' ? `system.${name}` : name),
        whyRefused: (command) => this.#whyRefused(command),
      },
    }
  }

  #chainWorldOf({ svc, parent }: Environment): ChainWorld {
    const { datastore, context } = this.#mocks
    const system: [name: string, value: unknown][] = []
    const user: [name: string, value: unknown][] = []
    for (const [key, value] of entriesOf(datastore))
      if (key.startsWith('system.')) system.push([key.slice('system.'.length), value])
      else user.push([key, value])
    const variables = {
      svckv: { system: objectOf(system), user: objectOf(user) },
      system: objectOf(system),
      action_context: { user: svc.user, pack: svc.pack, parent },
      config_context: { ...context['config'] },
    }
    return {
      render: (value, scope) => renderValue(value, scope, new Budget(defaultLimits)),
      memory: createChainMemory(),
      explains: true,
      outside: {
        resultOf: (instance, item) => this.#resultOf(instance, item),
        hasAction: () => true,
        templates: () => ({ variables }),
        whyRefused: (command) => {
          const text = this.#whyRefused(command)
          return text === undefined ? undefined : { text, isConversion: false }
        },
      },
    }
  }

  #resultOf(instance: number, item: number | undefined): unknown {
    return this.#results.get(`${instance}/${item ?? ''}`) ?? null
  }

  play(): Rehearsal {
    this.#send({ kind: 'started', input: this.#mocks.input })
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (next.at > this.#deadline && this.#isUnderWay()) break
      this.#clock = next.at
      this.#act(next)
      if (this.#runs <= MAX_RUNS) continue
      return this.#report(
        `The workflow has run ${MAX_RUNS} actions and has not ended. Let a mock end its cycle: the last outcome of a list counts for all further runs.`,
      )
    }
    if (this.#deadline < Infinity && this.#isUnderWay()) this.#expire()
    return this.#report(null)
  }

  #isUnderWay(): boolean {
    return !isOver.has(this.#state.workflow.status)
  }

  /** The time of the workflow is up: its actions are canceled, also those that nobody would have ended. */
  #expire(): void {
    this.#clock = this.#deadline
    this.#isLate = true
    this.#send({ kind: 'cancel' })
    for (const [shown, command] of this.#open) this.#end(command, shown, 'canceled', {})
  }

  #act(waiting: Waiting): void {
    const { command, outcome, shown, isAsked } = waiting
    const action = placeOf(command)
    if (outcome.isPending && !isAsked) {
      shown.status = 'pending'
      this.#send({ kind: 'pending', ...action })
      const asked =
        outcome.hasEnd || command.timeout === undefined
          ? waiting
          : { ...waiting, ...lateEnd(command.timeout, this.#clock) }
      if (asked.outcome.hasEnd) this.#wait({ ...asked, isAsked: true })
      return
    }
    if (isAsked && outcome.status === 'succeeded') this.#send({ kind: 'answered', ...action })
    this.#end(command, shown, outcome.status, outcome.result)
  }

  #end(command: StartCommand, shown: RehearsedAction, status: EndStatus, result: unknown): void {
    this.#open.delete(shown)
    shown.status = status
    shown.result = result
    shown.ended_at = this.#clock
    this.#send({ kind: 'ended', ...placeOf(command), status, result })
  }

  #wait(waiting: Waiting): void {
    let place = this.#waiting.length
    while ((this.#waiting[place - 1]?.at ?? 0) > waiting.at) place -= 1
    this.#waiting.splice(place, 0, waiting)
  }

  #send(event: Event): void {
    this.#refused = []
    const outcome = this.#conduct(this.#state, event)
    if (outcome.changes === undefined) return
    this.#state = apply(this.#state, outcome.changes)
    for (const id of outcome.changes.instances.keys()) this.#note(id)
    for (const entry of outcome.log) this.#noteLog(entry)
    for (const command of this.#refused) this.#noteRefusal(command)
    for (const command of outcome.commands)
      if (command.kind === 'start') this.#start(command)
      else if (command.kind === 'deadline') this.#deadline = this.#clock + command.seconds
    // Until here the conductor has it from the event.
    if (event.kind === 'ended') this.#results.set(`${event.instance}/${event.item ?? ''}`, event.result)
    if (outcome.commands.some(({ kind }) => kind === 'continue')) this.#send({ kind: 'continue' })
  }

  /** Notes that an instance has started, or ended. */
  #note(id: number): void {
    const row = this.#state.instances.get(id)
    if (row === undefined || row.order === null) return
    const shown = this.#shownTask(row)
    if (shown === undefined) return
    shown.status = row.status
    shown.items = row.items?.count ?? shown.items
    const times = this.#times.get(id) ?? { start: this.#clock, end: null }
    times.end = isCompleted(row.status) ? (times.end ?? this.#clock) : null
    this.#times.set(id, times)
  }

  /** undefined: an engine command, or a name that is no task */
  #shownTask(row: InstanceRow): RehearsedTask | undefined {
    const known = this.#tasks.get(row.id)
    const task = this.#definition.tasks[row.task]
    if (known !== undefined || task?.kind !== 'task') return known
    const shown: RehearsedTask = {
      task: task.name,
      route: row.route,
      status: row.status,
      join: null,
      items: null,
      actions: [],
      transitions: [],
      failures: [],
    }
    this.#tasks.set(row.id, shown)
    return shown
  }

  #noteLog(entry: LogEntry): void {
    if (entry.kind === 'transition') {
      const log = this.#logs.get(entry.instance)
      if (log === undefined) this.#logs.set(entry.instance, [entry])
      else log.push(entry)
    }
    if (entry.kind !== 'error') return
    const row = entry.instance === undefined ? undefined : this.#state.instances.get(entry.instance)
    const shown = row === undefined ? undefined : this.#shownTask(row)
    const failure = {
      message: entry.message,
      task: shown?.task ?? null,
      route: shown?.route ?? null,
      ...describeError(entry),
    }
    ;(shown?.failures ?? this.#failures).push(failure)
  }

  #noteRefusal(command: StartCommand): void {
    const row = this.#state.instances.get(command.instance)
    if (row?.status !== 'failed') return
    const { refused } = this.#outcomeOf(command)
    this.#addAction(command, { status: 'refused', result: { error: refused }, ended_at: this.#clock })
  }

  #start(command: StartCommand): void {
    const outcome = this.#outcomeOf(command)
    const key = runKey(command)
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    this.#runs += 1
    const shown = this.#addAction(command, { status: 'running', result: null, ended_at: null })
    if (shown === undefined) return
    if (!shown.is_mocked) this.#withoutMock.add(command.task)
    this.#open.set(shown, command)
    const { timeout } = command
    const takes = outcome.takes ?? (outcome.status === 'timeout' ? timeout : undefined) ?? 0
    const end =
      timeout !== undefined && takes > timeout
        ? lateEnd(timeout, shown.started_at)
        : { at: shown.started_at + takes, outcome }
    this.#wait({ ...end, command, shown, isAsked: false })
  }

  #addAction(
    { instance, item, attempt, action, input, delay, timeout, task }: StartCommand,
    end: Pick<RehearsedAction, 'status' | 'result' | 'ended_at'>,
  ): RehearsedAction | undefined {
    const row = this.#state.instances.get(instance)
    const shown: RehearsedAction = {
      item: item ?? null,
      attempt: attempt + 1,
      action,
      input,
      delay,
      timeout: timeout ?? null,
      started_at: this.#clock + Math.max(0, delay),
      is_mocked: this.#isMocked(task, item),
      ...end,
    }
    if (row !== undefined) this.#shownTask(row)?.actions.push(shown)
    return shown
  }

  #isMocked(task: string, item: number | undefined): boolean {
    const mock = this.#mocks.tasks.get(task)
    return mock !== undefined && (mock.outcomes.length > 0 || (item !== undefined && mock.items.has(item)))
  }

  /** How the next run of the task, or of the item, ends. */
  #outcomeOf(command: StartCommand): MockOutcome {
    const mock = this.#mocks.tasks.get(command.task)
    const ownOutcomes = command.item === undefined ? undefined : mock?.items.get(command.item)
    const outcomes = ownOutcomes ?? mock?.outcomes ?? []
    return outcomes[this.#counts.get(runKey(command)) ?? 0] ?? outcomes.at(-1) ?? emptyOutcome
  }

  #whyRefused(command: StartCommand): string | undefined {
    const { refused } = this.#outcomeOf(command)
    if (refused !== undefined) this.#refused.push(command)
    return refused
  }

  #recordOf({ id, status }: InstanceRow): ReturnType<World['outside']['recordOf']> {
    const { start, end } = this.#times.get(id) ?? { start: this.#clock, end: null }
    return {
      id: id.toString(16).padStart(24, '0'),
      workflowExecution: WORKFLOW_ID,
      startTimestamp: timeAt(start),
      endTimestamp: isCompleted(status) ? timeAt(end ?? this.#clock) : null,
    }
  }

  #report(problem: string | null): Rehearsal {
    const { workflow, errors, instances } = this.#state
    const draft = new Draft(this.#state)
    for (const [id, shown] of this.#tasks) {
      const row = instances.get(id)
      const task = this.#definition.taskIndexes.get(shown.task)
      const compiled = task === undefined ? undefined : this.#definition.tasks[task]
      if (row === undefined || compiled === undefined) continue
      shown.join = joinOf(this.#definition, draft, row)
      shown.transitions = transitionsOf({}, compiled, this.#logs.get(id) ?? [])
    }
    const tasks = [...this.#tasks].sort(
      ([a], [b]) => (instances.get(a)?.order ?? Infinity) - (instances.get(b)?.order ?? Infinity) || a - b,
    )
    const ran = new Set(
      Array.from(this.#tasks.values()).flatMap(({ task, actions }) => (actions.length > 0 ? [task] : [])),
    )
    const entries = Array.from(errors.values(), ({ entry }) => entry)
    const output = this.#chain === undefined ? workflow.output : publishedBy(this.#chain, this.#state)
    return {
      status: this.#isLate ? 'timeout' : workflow.status,
      output: this.#isLate ? null : output,
      // As in the result of an execution: failures that were handled are none in the end.
      errors: this.#isLate || workflow.status === 'succeeded' || workflow.status === 'canceled' ? [] : entries,
      tasks: tasks.map(([, task]) => task),
      timed_out_after: this.#isLate ? this.#deadline : null,
      failures: this.#failures,
      waits_for: waitsOf({ definition: this.#definition, state: this.#state }).list,
      without_mock: [...this.#withoutMock],
      unused_mocks: [...this.#mocks.tasks.keys()].filter((name) => !ran.has(name)),
      problem,
    }
  }
}

/** What a chain has published; null: it has broken off */
function publishedBy(chain: Chain, state: State): Rehearsal['output'] {
  const result = chainResultOf(chain, state, () => ({ created_at: '', updated_at: '', child: undefined }))
  return 'published' in result ? (result.published ?? {}) : null
}

/** An action that its task gives no more time. */
function lateEnd(seconds: number, startedAt: number): Pick<Waiting, 'at' | 'outcome'> {
  const error = `The action took longer than the timeout of its task, ${seconds} seconds.`
  return { at: startedAt + seconds, outcome: { ...emptyOutcome, status: 'timeout', result: { error } } }
}

const isOver: ReadonlySet<State['workflow']['status']> = new Set([
  'succeeded',
  'failed',
  'canceled',
  'timeout',
  'canceling',
])

const placeOf = ({ instance, attempt, item }: StartCommand): { instance: number; attempt: number; item?: number } => ({
  instance,
  attempt,
  ...(item === undefined ? {} : { item }),
})

const runKey = ({ task, item }: StartCommand): string => `${task}/${item ?? ''}`

/** The rehearsal begins at the beginning of the year 2000. */
const START_MICROS = Date.UTC(2000, 0, 1) * 1000
/** Later times have more than four digits in their years. */
const MAX_SECONDS = 250_000_000_000
const timeAt = (seconds: number): string =>
  formatMicros(START_MICROS + Math.round(Math.min(seconds, MAX_SECONDS) * 1_000_000))

const valueOf = (object: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** With the whole budget at once, as nothing else waits here. */
function evaluateAtOnce(value: unknown, scope: Scope, readings: Parameters<World['evaluate']>[2]): unknown {
  const budget = new Budget(defaultLimits, 'the expression')
  try {
    return evaluate(value, scope, { budget, ...(readings === undefined ? {} : { readings }) })
  } catch (error) {
    if (error instanceof ExpressionExhausted) throw new ExpressionError(error.className, error.message)
    throw error
  }
}
