/** Plays a random workflow through the conductor and through the naive implementation, and compares what they do. */
import { isDeepStrictEqual } from 'node:util'
import { readJson, writeJson } from '../../src/lib/json/index.ts'
import {
  apply,
  conduct,
  ContextCache,
  createMemory,
  defaultLimits,
  Draft,
  emptyState,
  variablesOf,
  type EndStatus,
  type ErrorRow,
  type Event,
  type InstanceRow,
  type Memory,
  type Outcome,
  type StartCommand,
  type State,
} from '../../src/modules/workflows/conductor/index.ts'
import { readDefinition, type Definition } from '../../src/modules/workflows/definition/model.ts'
import { ExpressionError, type Scope } from '../../src/modules/workflows/expressions/index.ts'
import { createRandom, type Random } from '../helpers/random.ts'
import { readAgain } from '../helpers/workflow-rows.ts'
import { evaluate, Mistake } from './expressions.ts'
import { generateWorkflow, type WorkflowDocument } from './generate.ts'
import { NaiveRun, REFUSAL, type Action, type Instance } from './naive.ts'

const limits = { ...defaultLimits, maxIdleTurns: 12, maxInstances: 150 }
const MAX_EVENTS = 60
const MAX_RERUNS = 3

/** An action that both have started. */
interface Pair {
  readonly command: StartCommand
  readonly action: Action
  status: 'running' | 'pending' | 'paused'
}

/** The two disagree, or a workflow does not end. */
export class Disagreement extends Error {
  constructor(seed: number, where: string, details: Readonly<Record<string, unknown>>) {
    const lines = Object.entries(details).map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`)
    super(`seed ${seed}: ${where}\n${lines.join('\n')}`)
  }
}

/** @throws Disagreement */
export function play(seed: number): void {
  new Play(seed).run()
}

class Play {
  readonly #seed: number
  readonly #random: Random
  readonly #document: WorkflowDocument
  readonly #definition: Definition
  readonly #naive: NaiveRun
  readonly #results = new Map<string, unknown>()
  readonly #events: unknown[] = []
  #state: State = emptyState()
  #memory: Memory = createMemory()
  #pairs: Pair[] = []

  constructor(seed: number) {
    this.#seed = seed
    this.#random = createRandom(seed)
    this.#document = generateWorkflow(this.#random)
    this.#definition = readDefinition(this.#document)
    this.#naive = new NaiveRun(this.#document, limits)
  }

  run(): void {
    const input = this.#random.once(2) ? { a: 1, unknown: 2 } : { a: { a: { d: 1 } }, b: 3 }
    this.#send({ kind: 'started', input }, () => {
      this.#naive.begin(input)
    })
    for (let reruns = 0; ; reruns += 1) {
      this.#toTheEnd()
      if (reruns >= MAX_RERUNS || !this.#random.once(3)) return
      this.#rerun()
    }
  }

  /** Random events, then those that let a workflow end. */
  #toTheEnd(): void {
    for (let events = 0; !this.#isOver || this.#random.once(2); events += 1) {
      if (events > 10 * MAX_EVENTS) this.#fail('the workflow does not end', {})
      if (events > MAX_EVENTS && !this.#isOver && events % 20 === 0) this.#cancel()
      else if (!this.#step(events > MAX_EVENTS)) break
    }
    if (!this.#isOver) this.#fail('the workflow is stuck', { status: this.#naive.status })
  }

  get #isOver(): boolean {
    return ['succeeded', 'failed', 'canceled'].includes(this.#state.workflow.status)
  }

  /** @returns false: nothing can happen any more */
  #step(isHasty: boolean): boolean {
    const random = this.#random
    if (!isHasty && random.once(15)) this.#request(random.pick(['pause', 'resume', 'resume', 'pause', 'cancel']))
    else {
      const pair = this.#pairs[random.below(this.#pairs.length)]
      if (pair === undefined) {
        if (this.#isOver) return false
        // A workflow that waits for nothing but its user.
        if (!['paused', 'pausing'].includes(this.#state.workflow.status)) return false
        this.#request('resume')
      } else this.#advance(pair, isHasty)
    }
    return true
  }

  #advance(pair: Pair, isHasty: boolean): void {
    const random = this.#random
    const { command, action } = pair
    const isLate = action.attempt !== action.instance.retries
    const about = { ...identityOf(command), ...(!isLate && random.once(8) ? {} : { attempt: command.attempt }) }
    if (pair.status === 'running' && !isHasty && random.once(6)) {
      pair.status = random.pick(['pending', 'paused'])
      const kind = pair.status === 'pending' ? 'pending' : 'child paused'
      this.#send({ kind, ...about }, () => {
        this.#naive.hold(action, pair.status === 'pending' ? 'pending' : 'paused')
      })
      return
    }
    if (pair.status === 'paused' && random.once(2)) {
      pair.status = 'running'
      this.#send({ kind: 'child resumed', ...about }, () => {
        this.#naive.goOn(action)
      })
      return
    }
    if (pair.status === 'pending' && !random.once(4)) {
      this.#send({ kind: 'answered', ...about }, () => {
        this.#naive.answer(action)
      })
    }
    this.#pairs = this.#pairs.filter((each) => each !== pair)
    if (random.once(60)) {
      this.#send({ kind: 'refused', ...about, message: 'LateException: no' }, () => {
        this.#naive.refuse(action, 'LateException: no')
      })
      return
    }
    const status = this.#pickEnd()
    const result = random.pick<unknown>([random.below(3), { r: random.below(3) }, null, [1], 'text'])
    this.#send({ kind: 'ended', ...about, status, result }, () => {
      this.#naive.end(action, status, result)
    })
    if (random.once(20))
      this.#send({ kind: 'ended', ...about, attempt: command.attempt, status, result: 'again' }, () => {
        this.#naive.end(action, status, 'again')
      })
  }

  #pickEnd(): EndStatus {
    if (this.#random.once(40)) return 'canceled'
    if (this.#random.once(20)) return this.#random.pick(['timeout', 'abandoned'])
    return this.#random.once(4) ? 'failed' : 'succeeded'
  }

  #request(kind: 'pause' | 'resume' | 'cancel'): void {
    this.#send({ kind }, () => this.#naive[kind]())
  }

  #cancel(): void {
    this.#request('cancel')
  }

  #rerun(): void {
    const names = Object.keys(this.#document.tasks)
    const pick = (): string[] => names.filter(() => this.#random.once(2))
    const [tasks, reset] = [pick(), pick()]
    if (tasks.length === 0) return
    this.#send({ kind: 'rerun', tasks, reset }, () => this.#naive.rerun(tasks, reset))
  }

  /** Lets both handle an event, and compares. */
  #send(event: Event, tellNaive: () => unknown): void {
    this.#events.push(event)
    if (this.#random.once(6)) this.#restart()
    const outcome = conduct(this.#definition, this.#state, event, {
      evaluate: evaluateForConductor,
      memory: this.#memory,
      limits,
      outside: {
        environment: {},
        startEnvironment: {},
        resultOf: (instance, item) => this.#results.get(`${instance}/${item ?? ''}`) ?? null,
        recordOf: ({ id }) => ({ id: String(id), workflowExecution: 'w', startTimestamp: '', endTimestamp: null }),
        readKey: () => undefined,
        whyRefused: ({ action }) => (action === 'refused' ? REFUSAL : undefined),
      },
    })
    const { changes } = outcome
    if (changes !== undefined) {
      this.#state = apply(this.#state, changes)
      if (event.kind === 'ended') this.#results.set(`${event.instance}/${event.item ?? ''}`, event.result)
    }
    const isAdmitted = tellNaive() !== false
    if (!isAdmitted && changes !== undefined) this.#fail('only one refuses', {})
    this.#compare(outcome, isAdmitted)
  }

  /** Reads the rows as a server does after its start. */
  #restart(): void {
    this.#memory = createMemory()
    this.#state = readAgain(this.#state)
  }

  #compare({ commands }: Outcome, isAdmitted: boolean): void {
    const starts = commands.filter((command) => command.kind === 'start')
    const others = isAdmitted ? this.#naive.started : []
    const shown = (each: StartCommand | Action): unknown => {
      const { task, route, item = null, attempt, action, input, delay } = each
      return { task, route, item, attempt, action, input, delay }
    }
    this.#same('starts', starts.map(shown), others.map(shown))
    for (const [index, command] of starts.entries()) {
      const action = others[index]
      if (action !== undefined) this.#pairs.push({ command, action, status: 'running' })
    }
    const { workflow, errors } = this.#state
    this.#same('status', workflow.status, this.#naive.status)
    this.#same('errors', Array.from(errors.values(), withoutOwnWords), this.#naive.errors)
    this.#same('output', workflow.output, this.#naive.output)
    const started = [...this.#state.instances.values()].filter(({ order }) => order !== null)
    const naive = this.#naive.instances.filter(({ order }) => order !== undefined)
    this.#same(
      'instances',
      started.toSorted((a, b) => (a.order ?? 0) - (b.order ?? 0)).map((row) => this.#shownRow(row)),
      naive.toSorted((a, b) => (a.order ?? 0) - (b.order ?? 0)).map((instance) => this.#shownInstance(instance)),
    )
  }

  #shownRow(row: InstanceRow): unknown {
    const task = this.#definition.tasks[row.task]
    return {
      task: task?.name,
      route: row.route,
      status: row.status,
      retries: row.retries,
      isTerminal: row.isTerminal,
      taken: (row.taken ?? []).map((position) => task?.outgoing[position]?.id),
      variables: variablesOf(new Draft(this.#state), new ContextCache(), row.context ?? 0),
    }
  }

  #shownInstance(instance: Instance): unknown {
    const { task, route, status, retries, isTerminal, taken } = instance
    return { task, route, status, retries, isTerminal, taken, variables: this.#naive.variablesOf(instance) }
  }

  #same(what: string, conductor: unknown, naive: unknown): void {
    if (!isDeepStrictEqual(plain(conductor), plain(naive))) this.#fail(what, { conductor, naive })
  }

  #fail(where: string, details: Readonly<Record<string, unknown>>): never {
    const { tasks, ...others } = this.#document
    throw new Disagreement(this.#seed, where, { ...details, others, ...tasks, events: this.#events })
  }
}

const plain = (value: unknown): unknown => readJson(writeJson(value ?? null))

/** The words of the conductor's own errors do not count. */
const withoutOwnWords = ({ entry }: ErrorRow): unknown => ({
  ...entry,
  type: undefined,
  message: entry.message.replace(/^(ProgressError|LimitError): .*/s, '$1'),
})

function identityOf({ instance, item }: StartCommand): { instance: number; item?: number } {
  return { instance, ...(item === undefined ? {} : { item }) }
}

function evaluateForConductor(value: unknown, scope: Scope): unknown {
  try {
    return evaluate(value, {
      variable: (name) => scope.variable(name),
      status: scope.task?.status,
      result: () => scope.task?.result() ?? null,
      item: scope.item,
      statusOf: (task) => scope.taskStatus(task, undefined),
    })
  } catch (error) {
    throw error instanceof Mistake ? new ExpressionError('YaqlEvaluationException', error.message) : error
  }
}
