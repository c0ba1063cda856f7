/**
 * A second implementation of the semantics of workflows, as plain as can be: documents, copies, and a look at everything
 * whenever something happens. It is written from the specification, and shares nothing with the conductor.
 */
import { entriesOf, setOwn } from '../../src/lib/json/index.ts'
import { isObject } from '../../src/lib/schema/index.ts'
import type { Limits } from '../../src/modules/workflows/conductor/index.ts'
import { evaluate, Mistake, type Sight } from './expressions.ts'
import type { EntryDocument, TaskDocument, WorkflowDocument } from './generate.ts'

type Variables = Readonly<Record<string, unknown>>

interface Transition {
  readonly from: string
  readonly to: string
  readonly id: string
  readonly origin: string
  readonly entry: EntryDocument
  readonly position: number
}

interface Arrival {
  readonly from: Instance
  readonly origin: string
  readonly published: readonly Variables[]
}

interface Item {
  /** undefined: has not started */
  status?: string
  result?: unknown
}

/** A pass of a task on a route. */
export interface Instance {
  readonly number: number
  readonly task: string
  readonly route: number
  status: string
  order?: number
  isReady: boolean
  isCleanup: boolean
  arrivals: Arrival[]
  /** What has been published on its way, the oldest first. Undefined: its arrivals decide when it starts. */
  published?: readonly Variables[]
  taken: string[]
  retries: number
  retry?: { count: number; delay: number }
  isTerminal: boolean
  items?: Item[]
  /** Succeeded items of the instance that a re-run repeats. */
  kept?: Item[]
  concurrency?: number
  result?: unknown
}

/** An action that runs, or waits. */
export interface Action {
  readonly instance: Instance
  readonly task: string
  readonly route: number
  readonly item: number | undefined
  readonly attempt: number
  readonly action: unknown
  readonly input: unknown
  readonly delay: unknown
}

export type Report = Readonly<Record<string, unknown>>

/** As of the conductor. */
export type NaiveLimits = Pick<Limits, 'maxInstances' | 'maxIdleTurns'>

class Broken extends Error {}

const ACTIVE = ['running', 'pausing', 'canceling']
const HELD = ['pending', 'paused']
const OVER = ['succeeded', 'failed', 'canceled']
const ENGINE = ['continue', 'noop', 'fail']
const ALWAYS_RETRIED = 3
const MAX_ROUNDS = 1_000

export class NaiveRun {
  status = 'requested'
  output: unknown = null
  readonly errors: Report[] = []
  readonly instances: Instance[] = []
  /** What the last event has started. */
  started: Action[] = []
  readonly #document: WorkflowDocument
  readonly #transitions: readonly Transition[]
  readonly #limits: NaiveLimits
  #errorTasks: (string | undefined)[] = []
  #base: Variables = {}
  #request: 'pause' | 'cancel' | null = null
  #routes: (readonly string[])[] = [[]]
  #starts = 0
  #numbers = 0
  #idle = 0
  #publishes = 0
  /** `join/route/task`: the task has led to the join since it last started. */
  readonly #arrived = new Set<string>()
  /** Likewise: the join has started since then, so that the task is too late for it. */
  readonly #late = new Set<string>()

  constructor(document: WorkflowDocument, limits: NaiveLimits) {
    this.#document = document
    this.#limits = limits
    this.#transitions = entriesOf(document.tasks).flatMap(([name]) => this.#transitionsOf(name))
  }

  // ── Events ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  begin(input: Variables): void {
    this.#event()
    const inputs: Record<string, unknown> = {}
    let isBroken = false
    const assign = (name: string, value: unknown, to: Record<string, unknown>, seen: Variables): void => {
      try {
        setOwn(to, name, evaluate(value, this.#sight(seen)))
      } catch (error) {
        isBroken = true
        this.#error({ message: textOf(error) })
      }
    }
    for (const entry of this.#document.input) {
      const [name, value] = typeof entry === 'string' ? [entry, null] : onlyEntry(entry)
      if (Object.hasOwn(input, name)) setOwn(inputs, name, input[name])
      else assign(name, value, inputs, inputs)
    }
    const vars: Record<string, unknown> = {}
    for (const entry of this.#document.vars) assign(...onlyEntry(entry), vars, { ...inputs, ...vars })
    this.#base = { ...inputs, ...vars }
    if (isBroken) {
      this.#tell('failed')
      return
    }
    this.status = 'running'
    for (const name of Object.keys(this.#document.tasks).toSorted())
      if (!this.#transitions.some(({ to }) => to === name)) this.#stage(name, 0, true).published = []
    this.#startAll()
  }

  end(action: Action, status: string, result: unknown): void {
    const { instance, item } = action
    if (!this.#isListening(action)) return
    if (item !== undefined && !isOpen(instance.items?.[item]?.status)) return
    this.#event()
    if (HELD.includes(instance.status) && this.#request === null) this.#tell('started')
    if (status === 'failed') this.#failure(instance, result)
    const own = status === 'timeout' || status === 'abandoned' ? 'failed' : status
    if (item === undefined) {
      instance.result = result
      this.#change(instance, own)
    } else {
      instance.items?.splice(item, 1, { status: own, result })
      this.#change(instance, this.#statusOfItems(instance))
    }
    this.#startAll()
  }

  refuse(action: Action, message: string): void {
    if (!this.#isListening(action)) return
    this.#event()
    this.#refused(action.instance, message)
    this.#startAll()
  }

  hold(action: Action, status: 'pending' | 'paused'): void {
    this.#setWaiting(action, status)
  }

  goOn(action: Action): void {
    this.#setWaiting(action, 'running')
  }

  answer(action: Action): void {
    if (!this.#isListening(action)) return
    this.#event()
    if (!OVER.includes(this.status) && this.status !== 'canceling') {
      this.#tell('resume')
      this.#request = null
    }
    this.#startAll()
  }

  /** @returns whether it is admitted */
  pause(): boolean {
    if (OVER.includes(this.status) || this.status === 'canceling') return false
    this.#event()
    this.#tell('pause')
    this.#request = 'pause'
    this.#startAll()
    return true
  }

  resume(): boolean {
    if (OVER.includes(this.status) || this.status === 'canceling' || this.status === 'requested') return false
    this.#event()
    this.#tell('resume')
    this.#request = null
    if (OVER.includes(this.status)) this.#finish(true)
    this.#startAll()
    const waitsForPeople = ({ status, items = [] }: Instance): boolean =>
      items.length > 0 ? items.every((item) => item.status !== 'paused') : status === 'pending'
    const isResting = this.status === 'resuming' && this.#left() === 'held'
    if (isResting && this.instances.filter(({ status }) => HELD.includes(status)).every(waitsForPeople))
      this.status = 'paused'
    return true
  }

  cancel(): boolean {
    if (OVER.includes(this.status)) return false
    this.#event()
    this.#tell('cancel')
    this.#request = 'cancel'
    return true
  }

  /** @returns whether it is admitted */
  rerun(names: readonly string[], reset: readonly string[]): boolean {
    if (!OVER.includes(this.status)) return false
    const latest = (name: string): Instance[] =>
      this.#routes.map((_, route) => this.#latest(name, route)).filter((found) => found !== undefined)
    if (names.some((name) => latest(name).length === 0)) return false
    const wanted = [...new Set(names)].flatMap(latest)
    if (wanted.some(({ status }) => ACTIVE.includes(status) || status === 'paused')) return false
    const following = new Set<Instance>()
    const follow = (instance: Instance): void => {
      for (const each of this.#followersOf(instance))
        if (!following.has(each)) {
          following.add(each)
          follow(each)
        }
    }
    wanted.forEach(follow)
    const repeated = wanted.filter((instance) => !following.has(instance))
    if (this.#numbers + repeated.length > this.#limits.maxInstances) return false
    for (const instance of this.instances)
      if (
        instance.taken.length > 0 ||
        repeated.some((each) => each === instance || this.#followersOf(each).includes(instance))
      )
        instance.isTerminal = false
    this.#event()
    const tasks = new Set(repeated.map(({ task }) => task))
    for (let index = this.errors.length - 1; index >= 0; index -= 1) {
      const task = this.#errorTasks[index]
      if (task !== undefined && !tasks.has(task)) continue
      this.errors.splice(index, 1)
      this.#errorTasks.splice(index, 1)
    }
    this.status = 'running'
    this.#request = null
    this.output = null
    for (const instance of repeated.toSorted((a, b) => wanted.indexOf(a) - wanted.indexOf(b))) {
      const waiting = this.#stagedAt(instance.task, instance.route)
      if (waiting?.isReady === true) this.instances.splice(this.instances.indexOf(waiting), 1)
      const next = this.#stage(instance.task, instance.route, true)
      next.arrivals = [...instance.arrivals]
      if (instance.published !== undefined) next.published = instance.published
      if (!reset.includes(instance.task) && instance.items !== undefined)
        next.kept = instance.items.map((item) => (item.status === 'succeeded' ? item : {}))
    }
    this.#startAll()
    return true
  }

  /** What the workflow's expressions see in an instance. */
  variablesOf(instance: Instance): Variables {
    return (instance.published ?? []).reduce(merge, this.#base)
  }

  // ── Statuses ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #event(): void {
    this.started = []
    this.#idle = 0
  }

  #isListening({ instance, attempt }: Action): boolean {
    this.started = []
    return attempt === instance.retries && [...ACTIVE, ...HELD].includes(instance.status)
  }

  #setWaiting(action: Action, status: string): void {
    const { instance, item } = action
    if (!this.#isListening(action)) return
    if (item !== undefined) {
      if (!isOpen(instance.items?.[item]?.status)) return
      instance.items?.splice(item, 1, { status })
    }
    this.#event()
    this.#change(instance, item === undefined ? status : this.#statusOfItems(instance))
    if (status !== 'running') this.#startAll()
  }

  #left(): 'active' | 'held' | 'open' | 'done' {
    if (this.instances.some(({ status }) => ACTIVE.includes(status))) return 'active'
    if (this.instances.some(({ status }) => HELD.includes(status))) return 'held'
    return this.instances.some((instance) => this.#canStart(instance)) ? 'open' : 'done'
  }

  /** What the workflow becomes by something that happens in it, or that a user asks for. */
  #tell(
    what: 'started' | 'ended' | 'failed' | 'fail' | 'canceled' | 'pending' | 'paused' | 'pause' | 'resume' | 'cancel',
  ): void {
    const left = this.#left()
    const stopping = left === 'active' ? 'pausing' : 'paused'
    const canceling = left === 'active' ? 'canceling' : 'canceled'
    const { status } = this
    if (OVER.includes(status)) {
      if (status === 'succeeded' && what === 'fail') this.status = 'failed'
    } else if (status === 'canceling') {
      if (what !== 'started' && what !== 'cancel') this.status = canceling
    } else if (what === 'failed' || (what === 'fail' && status !== 'paused')) this.status = 'failed'
    else if (what === 'fail') return
    else if (what === 'cancel' || what === 'canceled') this.status = canceling
    else if (what === 'pending' || what === 'pause') this.status = status === 'paused' ? 'paused' : stopping
    else if (what === 'paused') {
      if (status !== 'paused') this.status = left === 'active' && status !== 'pausing' ? 'running' : stopping
    } else if (what === 'resume') {
      if (status === 'paused') this.status = left === 'done' ? 'succeeded' : 'resuming'
      else if (status === 'pausing') this.status = 'resuming'
    } else if (what === 'started') {
      if (status !== 'pausing') this.status = 'running'
    } else if (status === 'pausing') this.status = stopping
    else if (status !== 'paused')
      this.status = { active: 'running', held: 'paused', open: 'running', done: 'succeeded' }[left]
  }

  #statusOfItems({ items = [] }: Instance): string {
    const has = (...statuses: string[]): boolean => items.some(({ status = '' }) => statuses.includes(status))
    if (has('running')) {
      if (has('canceled') || this.#request === 'cancel') return 'canceling'
      return has(...HELD) || this.#request === 'pause' ? 'pausing' : 'running'
    }
    if (has('canceled')) return 'canceled'
    const isCanceled = this.#request === 'cancel' || (this.#request === null && this.status === 'canceling')
    const isOpenItem = items.some(({ status }) => status === undefined)
    if (isCanceled) return has(...HELD, 'failed') || isOpenItem ? 'canceled' : 'succeeded'
    if (has(...HELD)) return 'paused'
    if (has('failed')) return 'failed'
    if (!isOpenItem) return 'succeeded'
    const isPaused =
      this.#request === 'pause' || (this.#request === null && ['pausing', 'paused'].includes(this.status))
    return isPaused ? 'paused' : 'running'
  }

  #change(instance: Instance, status: string): void {
    instance.status = status
    if (!OVER.includes(status)) {
      if (status === 'running') this.#tell('started')
      if (status === 'pending') this.#tell('pending')
      if (status === 'paused') this.#tell('paused')
      if (status === 'canceling') this.#tell('canceled')
      if (!OVER.includes(this.status)) return
      instance.isTerminal = true
      this.#finish(true)
      return
    }
    if (this.#repeats(instance)) return
    const commands = this.#follow(instance)
    const wasOver = OVER.includes(this.status)
    const isHandled = instance.taken.some((id) => !id.startsWith('continue__'))
    this.#tell(status === 'canceled' ? 'canceled' : status === 'failed' && !isHandled ? 'failed' : 'ended')
    for (const command of commands) {
      command.order = this.#starts++
      command.isTerminal = true
      command.status = command.task === 'fail' ? 'failed' : 'succeeded'
      if (command.task === 'fail') this.#error({ message: FAILED, task_id: 'fail' }, 'fail')
      this.#tell(command.task === 'fail' ? 'fail' : 'ended')
    }
    if (this.#outgoing(instance.task).length === 0 || OVER.includes(this.status)) instance.isTerminal = true
    if (OVER.includes(this.status)) this.#finish(wasOver)
  }

  #repeats(instance: Instance): boolean {
    const { retry, status } = instance
    if (OVER.includes(this.status) || retry === undefined || instance.retries >= retry.count) return false
    const { when } = this.#retryOf(instance.task) ?? {}
    try {
      const wants = when === undefined ? status === 'failed' : isTruthy(this.#evaluate(when, instance, true))
      if (!wants) return false
    } catch (error) {
      this.#error({ message: textOf(error), task_id: instance.task, route: instance.route }, instance.task)
      this.#tell('failed')
      return false
    }
    instance.retries += 1
    instance.status = 'retrying'
    delete instance.items
    delete instance.kept
    this.#tell('ended')
    return true
  }

  #finish(hasReason: boolean): void {
    if (!hasReason) this.#findUnreachableJoins()
    this.#renderOutput()
  }

  /** Joins that have some arrivals and cannot get the rest. */
  #findUnreachableJoins(): void {
    const isAtRest = !this.instances.some((each) => ACTIVE.includes(each.status) || this.#canStart(each))
    for (const instance of this.instances) {
      const { task, route } = instance
      if (instance.status !== 'staged' || this.#task(task).join === undefined || instance.isReady) continue
      const mayComplete = !isAtRest && this.#inbound(task).some((source) => this.#latest(source, route) === undefined)
      if (mayComplete || this.status === 'canceled') continue
      const message = `UnreachableJoinError: The join task|route "${task}|${route}" is partially satisfied but unreachable.`
      this.#error({ message, task_id: task, route }, task)
      this.status = 'failed'
    }
  }

  #renderOutput(): void {
    const { output } = this.#document
    if (output === undefined || this.output !== null) return
    const terminal = this.instances
      .filter(({ isTerminal }) => isTerminal)
      .toSorted((a, b) => (a.order ?? 0) - (b.order ?? 0))
    const seen: Record<string, unknown> = {
      ...(terminal.length === 0 ? {} : terminal.flatMap((each) => each.published ?? []).reduce(merge, this.#base)),
    }
    const rendered: Record<string, unknown> = {}
    for (const entry of output) {
      const [name, value] = onlyEntry(entry)
      try {
        const result = evaluate(value, this.#sight(seen))
        setOwn(rendered, name, result)
        setOwn(seen, name, result)
      } catch (error) {
        this.#error({ message: textOf(error) })
        if (this.status === 'succeeded') this.status = 'failed'
      }
    }
    if (Object.keys(rendered).length > 0) this.output = rendered
  }

  #failure({ task }: Instance, result: unknown): void {
    this.#error({ message: FAILED, task_id: task, result }, task)
  }

  /** Equal errors are kept once. */
  #error(report: Report, task?: string): void {
    const text = JSON.stringify(report)
    if (this.errors.some((known) => JSON.stringify(known) === text)) return
    this.errors.push(report)
    this.#errorTasks.push(task)
  }

  #fail(instance: Instance, message: string): void {
    this.#error({ message, task_id: instance.task, route: instance.route }, instance.task)
    this.#tell('failed')
    if (OVER.includes(this.status)) this.#finish(true)
  }

  #refused(instance: Instance, message: string): void {
    instance.status = 'failed'
    instance.isReady = false
    this.#fail(instance, message)
  }

  // ── Transitions ────────────────────────────────────────────────────────────────────────────────────────────────────

  #follow(instance: Instance): Instance[] {
    const staged: Instance[] = []
    const commands: Instance[] = []
    const entries = new Map<EntryDocument, { isTaken: boolean; published: readonly Variables[]; errors: string[] }>()
    for (const transition of this.#outgoing(instance.task)) {
      const { entry, to, id, origin } = transition
      const known = entries.get(entry) ?? this.#evaluateEntry(instance, entry)
      entries.set(entry, known)
      if (known.isTaken) instance.taken.push(id)
      for (const message of known.errors)
        this.#error({ message, task_id: instance.task, route: instance.route, task_transition_id: id }, instance.task)
      if (known.errors.length > 0) this.#tell('failed')
      if (!known.isTaken || known.errors.length > 0) continue
      const route = this.#routeOf(transition, instance.route)
      const arrival = { from: instance, origin, published: known.published }
      try {
        if (ENGINE.includes(to)) {
          const command = this.#stage(to, route, false)
          command.arrivals.push(arrival)
          command.published = known.published
          commands.push(command)
        } else {
          const next = this.#arrive(to, route, arrival)
          if (next !== undefined) staged.push(next)
        }
      } catch (error) {
        const place = { task_id: instance.task, route: instance.route, task_transition_id: id }
        this.#error({ message: textOf(error), ...place }, instance.task)
        this.#tell('failed')
      }
    }
    if (commands.some(({ task }) => task === 'fail')) for (const next of staged) if (next.isReady) next.isCleanup = true
    return commands
  }

  #evaluateEntry(
    instance: Instance,
    { when, publish = [] }: EntryDocument,
  ): { isTaken: boolean; published: readonly Variables[]; errors: string[] } {
    const before = instance.published ?? []
    try {
      if (when !== undefined && !isTruthy(this.#evaluate(when, instance, true)))
        return { isTaken: false, published: before, errors: [] }
    } catch (error) {
      return { isTaken: false, published: before, errors: [textOf(error)] }
    }
    const values: Record<string, unknown> = {}
    const errors: string[] = []
    for (const assignment of publish) {
      const [name, value] = onlyEntry(assignment)
      try {
        const seen = { ...this.variablesOf(instance), ...values }
        setOwn(values, name, evaluate(value, this.#sight(seen, instance, true)))
      } catch (error) {
        errors.push(textOf(error))
      }
    }
    if (publish.length > 0 && errors.length === 0) this.#publishes += 1
    return { isTaken: true, published: publish.length === 0 ? before : [...before, values], errors }
  }

  #arrive(to: string, route: number, arrival: Arrival): Instance | undefined {
    const { join } = this.#task(to)
    if (join === undefined) {
      const staged = this.#stagedAt(to, route) ?? this.#stage(to, route, true)
      staged.arrivals.push(arrival)
      staged.isReady = true
      return staged
    }
    const place = `${to}/${route}/${arrival.from.task}`
    this.#arrived.add(place)
    if (this.#late.has(place) && !this.#isInCycle(to)) return undefined
    const staged = this.#stagedAt(to, route) ?? this.#stage(to, route, false)
    staged.arrivals.push(arrival)
    const inbound = this.#inbound(to)
    const need = join === 'all' ? inbound.length : join
    staged.isReady = inbound.filter((source) => this.#arrived.has(`${to}/${route}/${source}`)).length >= need
    return staged
  }

  #routeOf({ to, origin }: Transition, route: number): number {
    const isSplit =
      (ENGINE.includes(to) || this.#task(to).join === undefined) &&
      this.#transitions.filter((each) => each.to === to).length > 1 &&
      !this.#isInCycle(to)
    if (!isSplit) return route
    this.#routes.push([...(this.#routes[route] ?? []), origin])
    return this.#routes.length - 1
  }

  // ── Starts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #startAll(): void {
    for (let rounds = 0; ; rounds += 1) {
      if (rounds > MAX_ROUNDS) throw new Error('the start of tasks does not end')
      const isFailed = this.status === 'failed'
      if (!isFailed && !['running', 'resuming'].includes(this.status)) return
      const round = this.instances
        .filter((each) => this.#canStart(each) && (!isFailed || each.isCleanup))
        .toSorted((a, b) => (a.task < b.task ? -1 : a.task > b.task ? 1 : a.route - b.route || a.number - b.number))
      if (round.length === 0) return
      this.#startRound(round)
    }
  }

  /** All of a round start, or none. */
  #startRound(round: readonly Instance[]): void {
    const plans: { instance: Instance; begin: () => Action[] }[] = []
    for (const instance of round)
      try {
        plans.push({ instance, begin: this.#plan(instance) })
      } catch (error) {
        this.#fail(instance, textOf(error))
      }
    if (plans.length < round.length) {
      for (const instance of round) instance.isCleanup = false
      return
    }
    const begun = plans.map(({ instance, begin }) => ({ instance, actions: begin() }))
    let isRefused = false
    for (const { instance, actions } of begun) {
      const [first] = actions
      if (first !== undefined && first.instance !== instance) this.started.push(...actions)
      else if (isRefused) {
        instance.status = 'canceled'
        instance.isReady = false
      } else if (actions.length === 0) this.#endInPlace(instance)
      else if (actions.some(({ action }) => action === 'refused')) {
        isRefused = true
        const allowed = actions.findIndex(({ action }) => action === 'refused')
        this.started.push(...actions.slice(0, allowed))
        this.#refused(instance, REFUSAL)
      } else this.started.push(...actions)
    }
  }

  /** Evaluates what a start needs. @returns what starts it */
  #plan(instance: Instance): () => Action[] {
    const task = this.#task(instance.task)
    const isFirst = instance.order === undefined
    const published = instance.published ?? instance.arrivals.flatMap((arrival) => arrival.published)
    const seen: Instance = { ...instance, published }
    if (isFirst) {
      const retry = this.#retryOf(instance.task)
      if (retry !== undefined)
        seen.retry = {
          count: this.#integer(seen, retry.count, 'ValueError: The retry count'),
          delay: this.#integer(seen, retry.delay ?? 0, 'ValueError: The retry delay'),
        }
    }
    const latest = this.#latest(instance.task, instance.route)
    const running = isFirst && latest !== undefined && ACTIVE.includes(latest.status) ? latest : undefined
    const isAttempt = isFirst || instance.status === 'retrying'
    if (running?.items !== undefined)
      Object.assign(seen, { items: running.items.map((): Item => ({})), concurrency: running.concurrency })
    else if (task.with !== undefined && (isAttempt || instance.items === undefined)) this.#readItems(seen, task.with)
    const delay = !isAttempt ? 0 : instance.retries > 0 ? (seen.retry?.delay ?? 0) : this.#delayOf(seen)
    const indexes = seen.items === undefined ? [undefined] : this.#startableItems(seen)
    const requests =
      task.action === undefined
        ? []
        : indexes.map((item) => ({
            task: instance.task,
            route: instance.route,
            item,
            attempt: (running ?? instance).retries,
            action: task.action,
            input: this.#inputOf(running?.items === undefined ? seen : running, item),
            delay,
          }))
    return () =>
      running === undefined ? this.#begin(instance, seen, requests) : this.#again(instance, running, seen, requests)
  }

  #begin(instance: Instance, seen: Instance, requests: readonly Omit<Action, 'instance'>[]): Action[] {
    const isFirst = instance.order === undefined
    const { task, route } = instance
    if (isFirst) {
      for (const { to } of this.#outgoing(task))
        if (this.#arrived.delete(`${to}/${route}/${task}`)) this.#late.delete(`${to}/${route}/${task}`)
      if (this.#task(task).join !== undefined)
        for (const source of this.#inbound(task)) this.#late.add(`${task}/${route}/${source}`)
    }
    Object.assign(instance, seen, { order: instance.order ?? this.#starts++, status: 'running', isReady: false })
    for (const { item } of requests) if (item !== undefined) instance.items?.splice(item, 1, { status: 'running' })
    this.#tell('started')
    return requests.map((request) => ({ ...request, instance }))
  }

  /** A cycle has reached a task that still runs on the route: its action, or its items, start again. */
  #again(
    instance: Instance,
    running: Instance,
    { items }: Instance,
    requests: readonly Omit<Action, 'instance'>[],
  ): Action[] {
    this.instances.splice(this.instances.indexOf(instance), 1)
    if (items !== undefined) running.items = items
    for (const { item } of requests) if (item !== undefined) running.items?.splice(item, 1, { status: 'running' })
    return requests.map((request) => ({ ...request, instance: running }))
  }

  #endInPlace(instance: Instance): void {
    const before = this.#publishes
    this.#change(instance, 'succeeded')
    this.#idle = this.#publishes > before ? 0 : this.#idle + (this.#isInCycle(instance.task) ? 1 : 0)
    if (this.#idle < this.#limits.maxIdleTurns) return
    this.#fail(instance, IDLE)
    for (const each of this.instances) each.isCleanup = false
  }

  #canStart(instance: Instance): boolean {
    const { status, items = [] } = instance
    if (status === 'staged') return instance.isReady
    if (status === 'retrying') return true
    if (status !== 'running' && status !== 'paused') return false
    return this.#startableItems(instance).length > 0 && items.length > 0
  }

  #startableItems({ items = [], concurrency = Infinity }: Instance): number[] {
    const free = concurrency - items.filter(({ status }) => status === 'running').length
    return items.flatMap(({ status }, index) => (status === undefined ? [index] : [])).slice(0, Math.max(0, free))
  }

  #readItems(instance: Instance, { items, concurrency }: NonNullable<TaskDocument['with']>): void {
    const list = this.#list(instance)
    if (!Array.isArray(list)) throw new Broken(`TypeError: The value of "${listOf(items)}" is not type of list.`)
    instance.items = list.map((_, index): Item => instance.kept?.[index] ?? {})
    const most = this.#evaluate(concurrency ?? null, instance, false)
    if (most !== null && typeof most !== 'number')
      throw new Broken('TypeError: The value of concurrency is not type of integer.')
    if (most === null) delete instance.concurrency
    else instance.concurrency = Math.max(1, most)
  }

  #list(instance: Instance): unknown {
    const { with: form } = this.#task(instance.task)
    return form === undefined ? [] : this.#evaluate(listOf(form.items), instance, false)
  }

  #inputOf(instance: Instance, item: number | undefined): unknown {
    return this.#evaluate(this.#task(instance.task).input ?? null, instance, false, this.#itemAt(instance, item))
  }

  #itemAt(instance: Instance, index: number | undefined): unknown {
    if (index === undefined) return undefined
    const item = (this.#list(instance) as readonly unknown[])[index]
    const isNamed = this.#task(instance.task).with?.items.startsWith('x in ') === true
    return isNamed ? { x: item } : item
  }

  #delayOf(instance: Instance): number {
    const { delay } = this.#task(instance.task)
    if (delay === undefined) return 0
    const value = this.#evaluate(delay, instance, false)
    if (typeof value === 'number') return value
    throw new Broken('TypeError: The value of task delay is not type of integer.')
  }

  #integer(instance: Instance, value: unknown, what: string): number {
    const result = evaluate(value, this.#sight(this.variablesOf(instance)))
    if (typeof result === 'number') return result
    throw new Broken(`${what} for task "${instance.task}" is not an integer.`)
  }

  // ── Expressions ────────────────────────────────────────────────────────────────────────────────────────────────────

  #evaluate(value: unknown, instance: Instance, hasEnded: boolean, item?: unknown): unknown {
    return evaluate(value, this.#sight(this.variablesOf(instance), instance, hasEnded, item))
  }

  #sight(variables: Variables, instance?: Instance, hasEnded = false, item?: unknown): Sight {
    return {
      variable: (name) => (Object.hasOwn(variables, name) ? variables[name] : undefined),
      status: instance?.status,
      result: () => (hasEnded && instance !== undefined ? resultOf(instance) : null),
      item,
      statusOf: (task) => this.#visible(task, instance?.route ?? 0)?.status,
    }
  }

  /** On the route, else on the next lower one whose transitions all lie on the way of the route. */
  #visible(task: string, route: number): Instance | undefined {
    const own = this.#routes[route] ?? []
    for (let each = route; each >= 0; each -= 1) {
      const isOnTheWay = each === route || (this.#routes[each] ?? []).every((origin) => own.includes(origin))
      const found = isOnTheWay ? this.#latest(task, each) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }

  // ── Graph ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  #task(name: string): TaskDocument {
    return this.#document.tasks[name] ?? {}
  }

  #retryOf(name: string): { count: unknown; delay?: unknown; when?: unknown } | undefined {
    const command = (this.#task(name).next ?? []).findLast((entry) => entry.do?.includes('retry') === true)
    return command === undefined ? this.#task(name).retry : { count: ALWAYS_RETRIED, when: command.when ?? true }
  }

  #transitionsOf(from: string): Transition[] {
    const keys = new Map<string, number>()
    return (this.#task(from).next ?? []).flatMap((entry, position) =>
      (entry.do ?? ['continue'])
        .filter((to) => to !== 'retry')
        .map((to): Transition => {
          const key = keys.get(to) ?? 0
          keys.set(to, key + 1)
          return { from, to, id: `${to}__t${key}`, origin: `${from}__t${key}`, entry, position }
        }),
    )
  }

  #outgoing(name: string): Transition[] {
    return this.#transitions
      .filter(({ from }) => from === name)
      .toSorted((a, b) => (a.to < b.to ? -1 : a.to > b.to ? 1 : a.position - b.position))
  }

  #inbound(name: string): string[] {
    return [...new Set(this.#transitions.filter(({ to }) => to === name).map(({ from }) => from))]
  }

  #isInCycle(name: string): boolean {
    const seen = new Set<string>()
    const open = [name]
    for (let task = open.pop(); task !== undefined; task = open.pop())
      for (const { to } of this.#outgoing(task)) {
        if (to === name) return true
        if (!seen.has(to)) open.push(to)
        seen.add(to)
      }
    return false
  }

  #stage(task: string, route: number, isReady: boolean): Instance {
    if (this.#numbers >= this.#limits.maxInstances) throw new Broken(TOO_MANY)
    const instance: Instance = {
      number: this.#numbers++,
      task,
      route,
      status: 'staged',
      isReady,
      isCleanup: false,
      arrivals: [],
      taken: [],
      retries: 0,
      isTerminal: false,
    }
    this.instances.push(instance)
    return instance
  }

  #stagedAt(task: string, route: number): Instance | undefined {
    return this.instances.find((each) => each.task === task && each.route === route && each.status === 'staged')
  }

  #latest(task: string, route: number): Instance | undefined {
    return this.instances
      .filter((each) => each.task === task && each.route === route && each.order !== undefined)
      .toSorted((a, b) => (a.order ?? 0) - (b.order ?? 0))
      .at(-1)
  }

  #followersOf(instance: Instance): Instance[] {
    return this.instances.filter(({ arrivals }) => arrivals.some(({ from }) => from === instance))
  }
}

const FAILED = 'Execution failed. See result for details.'
export const REFUSAL = 'RefusedException: no'
export const IDLE = 'ProgressError'
export const TOO_MANY = 'LimitError'

const isOpen = (status: string | undefined): boolean => status === 'running' || HELD.includes(status ?? '')

const listOf = (items: string): string => items.replace(/^x in /, '')

const isTruthy = (value: unknown): boolean =>
  isObject(value) ? Object.keys(value).length > 0 : Array.isArray(value) ? value.length > 0 : Boolean(value)

function textOf(error: unknown): string {
  if (error instanceof Mistake) return `YaqlEvaluationException: ${error.message}`
  if (error instanceof Broken) return error.message
  throw error
}

function onlyEntry(entry: Variables): [string, unknown] {
  const [first] = entriesOf(entry)
  if (first === undefined) throw new Error('an assignment without a name')
  return first
}

function resultOf({ items, result }: Instance): unknown {
  if (items === undefined) return result ?? null
  return items.map((item) => (isOpen(item.status) ? null : (item.result ?? null)))
}

/** Objects merge, at any depth; everything else replaces. */
function merge(variables: Variables, others: Variables): Variables {
  const merged: Record<string, unknown> = { ...variables }
  for (const [name, value] of entriesOf(others)) {
    const before = Object.hasOwn(merged, name) ? merged[name] : undefined
    setOwn(merged, name, isObject(before) && isObject(value) ? merge(before, value) : value)
  }
  return merged
}
