/** The rows that one event changes, laid over a state that stays as it is. */
import {
  arrivalKey,
  itemKey,
  placeKey,
  sourceKey,
  type ArrivalRow,
  type ContextRow,
  type ErrorRow,
  type InstanceRow,
  type Indexes,
  type ItemRow,
  type JoinRow,
  type JoinSourceRow,
  type Rows,
  type RouteRow,
  type State,
  type WorkflowRow,
} from './state.ts'
import { addNumber, numberBelow } from './numbers.ts'
import { isActive, isHeld } from './status.ts'
import { EMPTY_WAY, wayBehind } from './ways.ts'

/** A table and the rows that differ from it. */
class Overlay<Key, Row> {
  readonly #base: ReadonlyMap<Key, Row>
  /** undefined: removed */
  readonly changed = new Map<Key, Row | undefined>()

  constructor(base: ReadonlyMap<Key, Row>) {
    this.#base = base
  }

  get(key: Key): Row | undefined {
    return this.changed.has(key) ? this.changed.get(key) : this.#base.get(key)
  }

  set(key: Key, row: Row): void {
    this.changed.set(key, row)
  }

  delete(key: Key): void {
    if (this.#base.has(key)) this.changed.set(key, undefined)
    else this.changed.delete(key)
  }

  *keys(): Generator<Key> {
    for (const key of this.#base.keys()) if (!this.changed.has(key)) yield key
    for (const [key, row] of this.changed) if (row !== undefined) yield key
  }

  *values(): Generator<Row> {
    for (const [key, row] of this.#base) if (!this.changed.has(key)) yield row
    for (const row of this.changed.values()) if (row !== undefined) yield row
  }
}

type Changed<Tables> = {
  readonly [Name in keyof Tables]: Tables[Name] extends ReadonlyMap<infer Key, infer Row>
    ? ReadonlyMap<Key, Row | undefined>
    : never
}

/** Rows that differ; undefined in the place of a row: it is removed. */
export interface Changes extends Changed<Rows> {
  readonly workflow: WorkflowRow
  /** For `apply`, not to be stored. */
  readonly indexes: Changed<Indexes>
}

export class Draft {
  #workflow: WorkflowRow
  readonly #instances
  readonly #arrivals
  readonly #items
  readonly #contexts
  readonly #joins
  readonly #sources
  readonly #routes
  readonly #errors
  readonly #latest
  readonly #staged
  readonly #ready
  readonly #terminal
  readonly #routesOf
  readonly #routeCounts
  readonly #ways
  readonly #startedOn
  readonly #errorKeys

  constructor(state: State) {
    this.#workflow = state.workflow
    this.#instances = new Overlay(state.instances)
    this.#arrivals = new Overlay(state.arrivals)
    this.#items = new Overlay(state.items)
    this.#contexts = new Overlay(state.contexts)
    this.#joins = new Overlay(state.joins)
    this.#sources = new Overlay(state.sources)
    this.#routes = new Overlay(state.routes)
    this.#errors = new Overlay(state.errors)
    this.#latest = new Overlay(state.latest)
    this.#staged = new Overlay(state.staged)
    this.#ready = new Overlay(state.ready)
    this.#terminal = new Overlay(state.terminal)
    this.#routesOf = new Overlay(state.routesOf)
    this.#routeCounts = new Overlay(state.routeCounts)
    this.#ways = new Overlay(state.ways)
    this.#startedOn = new Overlay(state.startedOn)
    this.#errorKeys = new Overlay(state.errorKeys)
  }

  get workflow(): WorkflowRow {
    return this.#workflow
  }

  setWorkflow(change: Partial<WorkflowRow>): void {
    this.#workflow = { ...this.#workflow, ...change }
  }

  /** The next number of a kind of row. */
  take(counter: 'instances' | 'contexts' | 'routes' | 'errors' | 'starts'): number {
    const number = this.#workflow[counter]
    this.setWorkflow({ [counter]: number + 1 })
    return number
  }

  instance(id: number): InstanceRow {
    const row = this.#instances.get(id)
    if (row === undefined) throw new Error(`the workflow has no task instance ${id}`)
    return row
  }

  findInstance(id: number): InstanceRow | undefined {
    return this.#instances.get(id)
  }

  instances(): Iterable<InstanceRow> {
    return this.#instances.values()
  }

  setInstance(given: InstanceRow): InstanceRow {
    const before = this.#instances.get(given.id)
    const row = given.order === null || given.pass > 0 ? given : { ...given, pass: this.#nextPass(given) }
    this.#instances.set(row.id, row)
    this.#indexInstance(row, before)
    const change = (counts: (instance: InstanceRow) => boolean): number =>
      Number(counts(row)) - Number(before !== undefined && counts(before))
    const { active, held, succeeded, failed, canceled, ready, cleanups } = this.#workflow
    this.setWorkflow({
      active: active + change(({ status }) => isActive(status)),
      held: held + change(({ status }) => isHeld(status)),
      succeeded: succeeded + change(({ status }) => status === 'succeeded'),
      failed: failed + change(({ status }) => status === 'failed'),
      canceled: canceled + change(({ status }) => status === 'canceled'),
      ready: ready + change(({ isReady }) => isReady),
      cleanups: cleanups + change(({ isReady, isCleanup }) => isReady && isCleanup),
    })
    return row
  }

  /** Takes an engine command that has ended with a status out of the counts of tasks. */
  countCommand(status: 'succeeded' | 'failed'): void {
    const { commands, [status]: count } = this.#workflow
    this.setWorkflow({ commands: commands + 1, [status]: count - 1 })
  }

  #nextPass({ task, route }: InstanceRow): number {
    return (this.latest(task, route)?.pass ?? 0) + 1
  }

  changeInstance(id: number, change: Partial<InstanceRow>): InstanceRow {
    return this.setInstance({ ...this.instance(id), ...change })
  }

  /** Only an instance that has not started. */
  removeStaged(row: InstanceRow): void {
    this.setInstance({ ...row, isReady: false })
    this.#unstage(row)
    this.#instances.delete(row.id)
  }

  /** Puts a stored row back: counters are stored too. */
  loadInstance(row: InstanceRow): void {
    this.#instances.set(row.id, row)
    this.#indexInstance(row, undefined)
  }

  #indexInstance(row: InstanceRow, before: InstanceRow | undefined): void {
    const place = placeKey(row.task, row.route)
    if (row.status === 'staged') this.#indexStaged(place, row.id)
    else if (before?.status === 'staged') this.#unstage(row)
    if (row.order !== null && (before === undefined || before.order === null)) {
      const latest = this.#latest.get(place)
      if (latest === undefined) {
        const count = this.#routeCounts.get(row.task) ?? 0
        this.#routesOf.set(placeKey(row.task, count), row.route)
        this.#routeCounts.set(row.task, count + 1)
        addNumber(this.#startedOn, placeKey(row.task, this.way(row.route)), row.route)
      }
      if (latest === undefined || (this.instance(latest).order ?? 0) < row.order) this.#latest.set(place, row.id)
    }
    if (row.isReady) this.#ready.set(row.id, true)
    else if (before?.isReady === true) this.#ready.delete(row.id)
    if (row.isTerminal) this.#terminal.set(row.id, true)
    else if (before?.isTerminal === true) this.#terminal.delete(row.id)
  }

  /** A re-run stages a second instance in the place of a join that waits: arrivals go to the first. */
  #indexStaged(place: string, id: number): void {
    if (this.#staged.get(place) === undefined) this.#staged.set(place, id)
  }

  #unstage({ id, task, route }: InstanceRow): void {
    const place = placeKey(task, route)
    if (this.#staged.get(place) === id) this.#staged.delete(place)
  }

  /** The latest instance of the task on the route that has started. */
  latest(task: number, route: number): InstanceRow | undefined {
    const id = this.#latest.get(placeKey(task, route))
    return id === undefined ? undefined : this.instance(id)
  }

  staged(task: number, route: number): InstanceRow | undefined {
    const id = this.#staged.get(placeKey(task, route))
    return id === undefined ? undefined : this.instance(id)
  }

  /** All that wait to start, joins that lack arrivals too; in the order of their numbers. */
  allStaged(): InstanceRow[] {
    return [...this.#staged.values()].sort((a, b) => a - b).map((id) => this.instance(id))
  }

  ready(): InstanceRow[] {
    return Array.from(this.#ready.keys(), (id) => this.instance(id))
  }

  terminal(): InstanceRow[] {
    return Array.from(this.#terminal.keys(), (id) => this.instance(id))
  }

  /** Routes on which the task has started, in no order. */
  *routesOf(task: number): Generator<number> {
    const count = this.routeCount(task)
    for (let index = 0; index < count; index++) yield this.#routesOf.get(placeKey(task, index)) ?? 0
  }

  addArrival(row: ArrivalRow): void {
    this.#arrivals.set(arrivalKey(row.instance, row.index), row)
  }

  arrival(instance: number, index: number): ArrivalRow | undefined {
    return this.#arrivals.get(arrivalKey(instance, index))
  }

  item(instance: number, index: number): ItemRow | undefined {
    return this.#items.get(itemKey(instance, index))
  }

  setItem(row: ItemRow): void {
    this.#items.set(itemKey(row.instance, row.index), row)
  }

  removeItem(instance: number, index: number): void {
    this.#items.delete(itemKey(instance, index))
  }

  context(id: number): ContextRow {
    const row = this.#contexts.get(id)
    if (row === undefined) throw new Error(`the workflow has no context ${id}`)
    return row
  }

  findContext(id: number): ContextRow | undefined {
    return this.#contexts.get(id)
  }

  addContext(parents: readonly number[], values: ContextRow['values']): number {
    const id = this.take('contexts')
    this.#contexts.set(id, { id, parents, values })
    return id
  }

  loadContext(row: ContextRow): void {
    this.#contexts.set(row.id, row)
  }

  join(task: number, route: number): JoinRow {
    return this.#joins.get(placeKey(task, route)) ?? { task, route, arrived: 0, fired: 0 }
  }

  setJoin(row: JoinRow): void {
    this.#joins.set(placeKey(row.task, row.route), row)
  }

  source(task: number, route: number, source: number): JoinSourceRow | undefined {
    return this.#sources.get(sourceKey(task, route, source))
  }

  setSource(row: JoinSourceRow): void {
    this.#sources.set(sourceKey(row.task, row.route, row.source), row)
  }

  route(id: number): RouteRow | undefined {
    return this.#routes.get(id)
  }

  setRoute(row: RouteRow): void {
    this.#routes.set(row.id, row)
    this.#ways.set(row.id, wayBehind(this.way(row.parent), row.origin))
  }

  /** The number of the set of transitions that lie on the way of a route. */
  way(route: number): number {
    return this.#ways.get(route) ?? EMPTY_WAY
  }

  routeCount(task: number): number {
    return this.#routeCounts.get(task) ?? 0
  }

  /** The greatest route below another with a certain way on which the task has started. */
  routeBelow(task: number, way: number, route: number): number | undefined {
    return numberBelow(this.#startedOn, placeKey(task, way), route)
  }

  hasError(key: string): boolean {
    return this.#errorKeys.get(key) !== undefined
  }

  setError(row: ErrorRow): void {
    this.#errors.set(row.id, row)
    this.#errorKeys.set(row.key, row.id)
  }

  removeError(row: ErrorRow): void {
    this.#errors.delete(row.id)
    this.#errorKeys.delete(row.key)
  }

  errors(): Iterable<ErrorRow> {
    return this.#errors.values()
  }

  get changes(): Changes {
    return {
      workflow: this.#workflow,
      instances: this.#instances.changed,
      arrivals: this.#arrivals.changed,
      items: this.#items.changed,
      contexts: this.#contexts.changed,
      joins: this.#joins.changed,
      sources: this.#sources.changed,
      routes: this.#routes.changed,
      errors: this.#errors.changed,
      indexes: {
        latest: this.#latest.changed,
        staged: this.#staged.changed,
        ready: this.#ready.changed,
        terminal: this.#terminal.changed,
        routesOf: this.#routesOf.changed,
        routeCounts: this.#routeCounts.changed,
        ways: this.#ways.changed,
        startedOn: this.#startedOn.changed,
        errorKeys: this.#errorKeys.changed,
      },
    }
  }
}

/**
 * Puts stored rows into a state that is loaded part by part, and belongs to the caller. Routes come first, then instances,
 * each in order.
 */
export function addRows(state: State, rows: Partial<StoredRows>): State {
  const draft = new Draft(state)
  for (const row of rows.routes?.toSorted((a, b) => a.id - b.id) ?? []) draft.setRoute(row)
  for (const row of rows.instances?.toSorted((a, b) => a.id - b.id) ?? []) draft.loadInstance(row)
  for (const row of rows.arrivals ?? []) draft.addArrival(row)
  for (const row of rows.items ?? []) draft.setItem(row)
  for (const row of rows.contexts ?? []) draft.loadContext(row)
  for (const row of rows.joins ?? []) draft.setJoin(row)
  for (const row of rows.sources ?? []) draft.setSource(row)
  for (const row of rows.errors?.toSorted((a, b) => a.id - b.id) ?? []) draft.setError(row)
  return apply(state, draft.changes)
}

export type StoredRows = {
  readonly [Name in keyof Rows]: Rows[Name] extends ReadonlyMap<unknown, infer Row> ? readonly Row[] : never
}

/** Puts the changes into the state, which belongs to the caller. The returned state shares the tables of the given one. */
export function apply(state: State, changes: Changes): State {
  for (const name of tableNames) putInto(state[name], changes[name])
  for (const name of indexNames) putInto(state[name], changes.indexes[name])
  return { ...state, workflow: changes.workflow }
}

const tableNames = ['instances', 'arrivals', 'items', 'contexts', 'joins', 'sources', 'routes', 'errors'] as const
const indexNames = [
  'latest',
  'staged',
  'ready',
  'terminal',
  'routesOf',
  'routeCounts',
  'ways',
  'startedOn',
  'errorKeys',
] as const

function putInto(table: ReadonlyMap<unknown, unknown>, changed: ReadonlyMap<unknown, unknown>): void {
  const rows = table as Map<unknown, unknown>
  for (const [key, row] of changed)
    if (row === undefined) rows.delete(key)
    else rows.set(key, row)
}
