/**
 * The conductor of action chains: what follows from an event. A pure function over the same rows, events and commands as
 * the conductor of workflows. Nodes run one at a time.
 *
 * Context 0 has the parameters of the chain, context 1 its `vars`, each later one what a node has published. A later value
 * replaces an earlier one.
 */
import { Lru } from '../../../lib/cache/index.ts'
import { entriesOf, keysOf, objectOf } from '../../../lib/json/index.ts'
import { isNamespace, type Namespace, type TemplateScope } from '../../../lib/template/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import {
  defaultLimits,
  Draft,
  endOf,
  errorKey,
  type Command,
  type ContextRow,
  type EndStatus,
  type Event,
  type InstanceRow,
  type Limits,
  type LogEntry,
  type Outcome,
  type Outside,
  type StartCommand,
  type State,
  type Variables,
} from '../conductor/index.ts'
import {
  endedTaskStatus,
  isActive,
  isCompleted,
  isHeld,
  nextWorkflowStatus,
  type WorkflowEvent,
} from '../conductor/status.ts'
import { countContext, sizeOf } from '../conductor/sizes.ts'
import { ConductError, restUntilAnswered } from '../conductor/turn.ts'
import type { Transition } from '../definition/model.ts'
import type { Chain, Node } from './definition.ts'
import { brokenOff, FIRST_VARIABLES } from './result.ts'
import {
  nameOf,
  namesWithin,
  reasonOf,
  renderEntries,
  RenderError,
  type ChainScope,
  type RenderChainValue,
} from './template.ts'

export interface ChainOutside extends Pick<Outside, 'resultOf'> {
  /** Whether an action is registered. */
  hasAction(ref: string): boolean
  /**
   * `svckv` with `system` and `user`, `system`, `action_context` and `config_context`, and filters. Asked for only when
   * something is rendered.
   */
  templates(): TemplateScope
  /** Why an action cannot be started; undefined: it can. Whoever learns it only by asking repeats the call, as with `Outside`. */
  whyRefused?(command: StartCommand): ChainRefusal | undefined
}

export interface ChainRefusal {
  readonly text: string
  /** Whether a parameter cannot be converted to its type, which breaks the chain off. Any other refusal is a failed node. */
  readonly isConversion: boolean
}

export interface ChainWorld {
  readonly render: RenderChainValue
  readonly outside: ChainOutside
  /** What one call keeps for the next ones of the same run. Default: nothing. */
  readonly memory?: ChainMemory
  readonly limits?: Limits
  /** Whether the log says what could be seen where an error happened. Default: no. */
  readonly explains?: boolean
}

/** Variables, and at most how large they are with the parameters, by the latest context among them. */
export interface ChainMemory {
  readonly variables: Lru<ContextRow, Variables>
  readonly sizes: Lru<ContextRow, number>
}

const MAX_CACHED_CONTEXTS = 64
const MAX_CACHED_VARIABLES = 100_000

export function createChainMemory(): ChainMemory {
  return { variables: new Lru(MAX_CACHED_CONTEXTS, MAX_CACHED_VARIABLES), sizes: new Lru(MAX_CACHED_CONTEXTS) }
}

const PARAMETERS = 0

export interface Turn {
  readonly chain: Chain
  readonly draft: Draft
  readonly world: ChainWorld
  readonly memory: ChainMemory
  readonly limits: Limits
  readonly commands: Command[]
  readonly log: LogEntry[]
  /** The result that the event brought. */
  readonly news: { readonly instance: number; readonly result: unknown } | undefined
  /** Why nodes could not start; `known` is undefined until somebody asks. */
  readonly refusals: { known: Map<number, string> | undefined }
  /** Nodes that this call may still start. */
  starts: number
}

/** As `conduct`. Nodes of a chain cannot be re-run. */
export function conductChain(chain: Chain, state: State, event: Event, world: ChainWorld): Outcome {
  const draft = new Draft(state)
  const turn = openTurn(chain, draft, world, event.kind === 'ended' ? event : undefined)
  const refused = handle(turn, event)
  if (refused !== undefined)
    return { changes: undefined, commands: [], log: [], refused: refused === LATE ? undefined : refused }
  const { status, output } = draft.workflow
  if (isCompleted(status)) dropStaged(turn)
  if (status !== state.workflow.status) {
    turn.commands.push({ kind: 'status', status })
    if (isCompleted(status)) turn.commands.push({ kind: 'finish', status, output })
  }
  return { changes: draft.changes, commands: turn.commands, log: turn.log, refused: undefined }
}

export function openTurn(chain: Chain, draft: Draft, world: ChainWorld, news: Turn['news']): Turn {
  const limits = world.limits ?? defaultLimits
  return {
    chain,
    draft,
    world,
    memory: world.memory ?? createChainMemory(),
    limits,
    commands: [],
    log: [],
    news,
    refusals: { known: undefined },
    starts: limits.maxStartsPerTurn,
  }
}

/** The event is late: nothing follows from it. */
const LATE = ''

/** @returns why nothing follows; undefined: something may */
function handle(turn: Turn, event: Event): string | undefined {
  const { draft } = turn
  const isOver = isCompleted(draft.workflow.status)
  switch (event.kind) {
    case 'started':
      if (draft.workflow.status !== 'requested') return LATE
      begin(turn, event.input)
      return undefined
    case 'pause':
    case 'cancel':
      if (isOver) return 'completed'
      if (!tell(turn, event.kind)) return LATE
      draft.setWorkflow({ request: event.kind })
      turn.commands.push({ kind: 'cascade', request: event.kind })
      return undefined
    case 'resume':
      if (isOver) return 'completed'
      return resume(turn)
    case 'rerun':
      return isOver
        ? 'Nodes of an action chain cannot be re-run. Re-run the whole chain: leave out the names of the tasks.'
        : 'not completed'
    case 'continue':
      startStaged(turn)
      return undefined
    default: {
      const instance = draft.findInstance(event.instance)
      if (instance === undefined || (event.attempt ?? 0) !== 0 || isOver) return LATE
      if (!isActive(instance.status) && !isHeld(instance.status)) return LATE
      return handleAction(turn, instance, event)
    }
  }
}

type ActionEvent = Extract<Event, { readonly instance: number }>

function handleAction(turn: Turn, instance: InstanceRow, event: ActionEvent): string | undefined {
  const { draft } = turn
  switch (event.kind) {
    case 'pending':
    case 'child paused':
      draft.changeInstance(instance.id, { status: event.kind === 'pending' ? 'pending' : 'paused' })
      tell(turn, event.kind === 'pending' ? 'task pending' : 'task paused')
      return undefined
    case 'child resumed':
      draft.changeInstance(instance.id, { status: 'running' })
      tell(turn, 'task started')
      return undefined
    case 'answered':
      if (tell(turn, 'resume')) draft.setWorkflow({ request: null })
      return undefined
    case 'refused':
      couldNotStart(turn, instance, { text: event.message.replace(/^\w+: /, ''), isConversion: false })
      startStaged(turn)
      return undefined
    case 'ended': {
      const hasWaited = isHeld(instance.status)
      if (hasWaited && draft.workflow.request === null) tell(turn, 'task started')
      draft.changeInstance(instance.id, { status: endedTaskStatus[event.status] })
      // After a pause, a node that timed out is one that failed.
      endNode(turn, instance.id, hasWaited && event.status === 'timeout' ? 'failed' : event.status)
      startStaged(turn)
      return undefined
    }
  }
}

/** Tells the chain an event. @returns whether its status admits it */
function tell({ draft }: Turn, event: WorkflowEvent): boolean {
  const { status, active, held, ready } = draft.workflow
  const remainder = active > 0 ? 'active' : held > 0 ? 'held' : ready > 0 ? 'open' : 'done'
  const next = nextWorkflowStatus(status, event, remainder)
  if (next === undefined) return false
  if (next !== status) draft.setWorkflow({ status: next })
  return true
}

export const nodeOf = ({ chain }: Turn, { task }: Pick<InstanceRow, 'task'>): Node => {
  const node = chain.nodes[task]
  if (node === undefined) throw new Error(`the chain has no node ${task}`)
  return node
}

function begin(turn: Turn, input: Readonly<Record<string, unknown>>): void {
  const { chain, draft } = turn
  draft.addContext([], input)
  try {
    addVariables(turn, renderPart(turn, varsOf(turn)))
  } catch (error) {
    fail(turn, reasonOf(error))
    return
  }
  draft.setWorkflow({ status: 'running' })
  stage(turn, chain.first, undefined)
  startStaged(turn)
}

/** A chain that has paused goes on behind the node that ended last; one that waits for a child lets the child go on. */
function resume(turn: Turn): string | undefined {
  const { draft } = turn
  const { status, active, held, ready } = draft.workflow
  const isAtRest = active + held + ready === 0
  if (status === 'paused' && isAtRest) draft.setWorkflow({ status: 'resuming', request: null })
  else if (!tell(turn, 'resume')) return LATE
  draft.setWorkflow({ request: null })
  turn.commands.push({ kind: 'cascade', request: 'resume' })
  if (status === 'paused' && isAtRest) {
    const last = lastStarted(turn)
    if (last !== undefined) goOn(turn, last, last.status === 'succeeded' ? 'succeeded' : 'failed')
  }
  startStaged(turn)
  restUntilAnswered(draft)
  return undefined
}

function lastStarted({ draft }: Turn): InstanceRow | undefined {
  for (let id = draft.workflow.instances - 1; id >= 0; id--) {
    const instance = draft.findInstance(id)
    if (instance !== undefined && instance.order !== null) return instance
  }
  return undefined
}

/** Publishes what the node gives, and decides what follows. */
function endNode(turn: Turn, id: number, status: EndStatus): void {
  const { draft } = turn
  const instance = draft.instance(id)
  const isStopped = status === 'canceled' || draft.workflow.status === 'canceling'
  let published: Variables = {}
  try {
    published = publish(turn, instance)
  } catch (error) {
    const reason = reasonOf(error)
    if (!isStopped) {
      breakOff(turn, reason)
      return
    }
  }
  afterNode(turn, draft.instance(id), status, published)
}

function publish(turn: Turn, instance: InstanceRow): Variables {
  if (keysOf(nodeOf(turn, instance).publish).length === 0) return {}
  const values = renderPart(turn, publishedOf(turn, instance))
  addVariables(turn, values)
  return values
}

/** The bounds are those of workflows. @throws an error for `reasonOf` when there is too much */
function addVariables(turn: Turn, values: Variables): void {
  const { draft, memory } = turn
  const context = latestContext(turn)
  const own = sizeOf(values)
  const isFirst = context < FIRST_VARIABLES
  const parameters = (): number => sizeOf(draft.context(PARAMETERS).values)
  const before = (): number =>
    memory.sizes.get(draft.context(context)) ?? parameters() + sizeOf(variablesAt(turn, context))
  const exact = (): number => parameters() + sizeOf({ ...variablesAt(turn, context), ...values })
  const sizes = { own: isFirst ? parameters() + own : own, most: before() + own, exact }
  let size: number
  try {
    size = countContext(draft, turn.limits, sizes)
  } catch (error) {
    if (!(error instanceof ConductError)) throw error
    throw new RenderError(`${error.className}: ${error.message}`)
  }
  memory.sizes.set(draft.context(draft.addContext([context], values)), size)
}

/** Whatever a user, or the child, has asked for comes before what the definition says. */
function afterNode(turn: Turn, instance: InstanceRow, status: EndStatus, published: Variables = {}): void {
  const { draft } = turn
  if (status === 'canceled' || draft.workflow.status === 'canceling') draft.setWorkflow({ status: 'canceled' })
  else if (draft.workflow.request === 'pause') draft.setWorkflow({ status: 'paused' })
  else goOn(turn, instance, status, published)
}

/** Stages the node that follows, or ends the chain. */
function goOn(turn: Turn, instance: InstanceRow, status: EndStatus, published: Variables = {}): void {
  const { draft, chain } = turn
  const node = nodeOf(turn, instance)
  const position = status === 'succeeded' ? 0 : 1
  const target = position === 0 ? node.onSuccess : node.onFailure
  const task = chain.graph.tasks[instance.task]
  const transitions = task?.outgoing ?? []
  const taken = transitions.findIndex((transition) => transition.position === position)
  logWays(turn, instance, transitions, position, published)
  if (target === '') {
    draft.changeInstance(instance.id, { isTerminal: true })
    draft.setWorkflow({ status: status === 'succeeded' || status === 'timeout' ? status : 'failed' })
    return
  }
  const next = transitions[taken]?.to
  if (next === undefined) {
    fail(turn, `Failed to get next node "${node.name}".. Unable to find node with name "${target}".`, node.name)
    return
  }
  draft.changeInstance(instance.id, { taken: [taken] })
  stage(turn, next, { from: instance.id, transition: taken, context: latestContext(turn) })
}

/** Both ways out of a node that lead to a node, and the end of the chain. */
export function logWays(
  { log }: Turn,
  { id: instance }: InstanceRow,
  transitions: readonly Transition[],
  taken: number,
  values: Variables,
): void {
  const add = (transition: string, isTaken: boolean): void => {
    const published = isTaken ? values : {}
    log.push({ kind: 'transition', instance, transition, isTaken, value: isTaken, published, readings: [], errors: [] })
  }
  for (const { id, position } of transitions) add(id, position === taken)
  if (!transitions.some(({ position }) => position === taken)) add(endOf(taken), true)
}

function stage(turn: Turn, task: number, arrival: InstanceRow['previous'][number] | undefined): void {
  const { draft, limits } = turn
  if (draft.workflow.instances >= limits.maxInstances) {
    fail(turn, `The chain has started ${limits.maxInstances} nodes, the most that one run may have.`)
    return
  }
  draft.setInstance({
    id: draft.take('instances'),
    task,
    route: 0,
    status: 'staged',
    order: null,
    pass: 0,
    isReady: true,
    isCleanup: false,
    context: latestContext(turn),
    previous: arrival === undefined ? [] : [arrival],
    arrivals: 0,
    taken: [],
    retries: 0,
    retry: null,
    isTerminal: false,
    items: null,
  })
}

/** A part of a chain that has templates. */
export interface Part {
  /** undefined: none */
  readonly instance: InstanceRow | undefined
  readonly templates: Readonly<Record<string, unknown>>
  readonly scope: ChainScope
  /** Where a template is, as for `renderEntries`. */
  readonly what: string | undefined
  /** What users see of a template that fails. */
  readonly message: (reason: string) => string
}

export const varsOf = (turn: Turn): Part => ({
  instance: undefined,
  templates: turn.chain.vars,
  scope: varsScope(turn),
  what: undefined,
  message: (reason) => `Failed initializing \`\`vars\`\` in chain.. ${reason}`,
})

export function parametersOf(turn: Turn, instance: InstanceRow): Part {
  const { name, parameters } = nodeOf(turn, instance)
  return {
    instance,
    templates: parameters,
    scope: nodeScope(turn, instance.context ?? latestContext(turn)),
    what: `action parameter "%" in task "${name}"`,
    message: (reason) => `Failed to run task "${name}". Parameter rendering failed.. ${reason}`,
  }
}

/** What a node that has ended publishes. */
export function publishedOf(turn: Turn, instance: InstanceRow): Part {
  const { name, publish } = nodeOf(turn, instance)
  return {
    instance,
    templates: publish,
    scope: nodeScope(turn, latestContext(turn)),
    what: `publish parameter "%" in task "${name}"`,
    message: (reason) => reason,
  }
}

/** Of a failure, the log keeps the template and what it read. @throws an error for `reasonOf` */
export function renderPart(
  { world, log }: Turn,
  { instance, templates, scope, what, message }: Part,
): Record<string, unknown> {
  try {
    return renderEntries(templates, scope, world.render, what)
  } catch (error) {
    const failed = nameOf(error)
    const text = message(reasonOf(error))
    if (world.explains === true) {
      const template = failed === undefined ? undefined : templates[failed]
      log.push({
        kind: 'error',
        instance: instance?.id,
        message: text,
        expression: failed === undefined ? templates : objectOf([[failed, template]]),
        variables: valuesIn(template, scope),
        readings: [],
      })
    }
    throw new RenderError(text)
  }
}

/** The variables that a template names, without those that are more than data of the run. */
function valuesIn(template: unknown, scope: ChainScope): Variables {
  return objectOf(
    namesWithin(template).flatMap((name) => {
      const value = outsideRun.has(name) ? undefined : scope.variable(name)
      return value === undefined || (isObject(value) && isNamespace(value)) ? [] : [[name, value] as const]
    }),
  )
}

const outsideRun: ReadonlySet<string> = new Set(['svckv', 'system', 'config_context'])

function startStaged(turn: Turn): void {
  const { draft } = turn
  for (;;) {
    const { status } = draft.workflow
    const [instance] = draft.ready()
    if (instance === undefined || (status !== 'running' && status !== 'resuming')) return
    if (turn.starts <= 0) {
      turn.commands.push({ kind: 'continue' })
      return
    }
    turn.starts -= 1
    start(turn, instance)
  }
}

function start(turn: Turn, instance: InstanceRow): void {
  const { draft, world } = turn
  const { name, ref } = nodeOf(turn, instance)
  const failHere = (message: string): void => {
    draft.changeInstance(instance.id, { status: 'failed', isReady: false })
    fail(turn, message, name)
  }
  if (!world.outside.hasAction(ref)) {
    failHere(
      `Failed to run task "${name}". Action with reference "${ref}" doesn't exist.. Task :: ${name} - Action with ref ${ref} not registered.`,
    )
    return
  }
  let input: Record<string, unknown>
  try {
    input = renderPart(turn, parametersOf(turn, instance))
  } catch (error) {
    failHere(reasonOf(error))
    return
  }
  const command: StartCommand = {
    kind: 'start',
    instance: instance.id,
    task: name,
    route: instance.route,
    item: undefined,
    attempt: 0,
    action: ref,
    input,
    delay: 0,
    timeout: undefined,
  }
  const refusal = world.outside.whyRefused?.(command)
  if (refusal !== undefined) {
    couldNotStart(turn, instance, refusal)
    return
  }
  draft.changeInstance(instance.id, { status: 'running', isReady: false, order: draft.take('starts') })
  tell(turn, 'task started')
  turn.commands.push(command)
}

/** The action was refused. The node has failed, and what follows a failure runs. */
function couldNotStart(turn: Turn, instance: InstanceRow, { text, isConversion }: ChainRefusal): void {
  const { draft } = turn
  if (isConversion && draft.workflow.status !== 'canceling') {
    draft.changeInstance(instance.id, { status: 'failed', isReady: false })
    breakOff(turn, text)
    return
  }
  const { name } = nodeOf(turn, instance)
  const order = instance.order ?? draft.take('starts')
  draft.changeInstance(instance.id, { status: 'failed', isReady: false, order })
  noteError(turn, instance.id, `Failed running task "${name}".. ${text}`, name)
  afterNode(turn, draft.instance(instance.id), 'failed')
}

/** Fails the chain. Its result has the nodes that ran, too. */
function fail(turn: Turn, message: string, name?: string): void {
  noteError(turn, null, message, name)
  turn.draft.setWorkflow({ status: 'failed' })
}

/** Fails the chain with a result that has the error alone. */
function breakOff(turn: Turn, message: string): void {
  fail(turn, message)
  turn.draft.setWorkflow({ output: brokenOff(message) })
}

/** Each node that fails has an error of its own, however often it says the same. */
function noteError({ draft, refusals }: Turn, instance: number | null, message: string, name?: string): void {
  const entry = { type: 'error', message, ...(name === undefined ? {} : { task_id: name }) } as const
  draft.setError({ id: draft.take('errors'), instance, key: errorKey(entry), entry })
  if (instance !== null) refusals.known?.set(instance, message)
}

/** Why a node could not start. */
export function refusalOf({ draft, refusals }: Turn, instance: number): string | undefined {
  refusals.known ??= new Map(
    Array.from(draft.errors(), ({ instance: id, entry }) => [id ?? -1, entry.message] as const),
  )
  return refusals.known.get(instance)
}

/** A chain that is over starts nothing. */
function dropStaged({ draft }: Turn): void {
  for (const { id } of draft.ready()) draft.changeInstance(id, { status: 'canceled', isReady: false })
}

export const latestContext = ({ draft }: Turn): number => draft.workflow.contexts - 1

/** The variables of a context: `vars`, and all that was published before. */
function variablesAt({ draft, memory }: Turn, context: number): Variables {
  const missing: ContextRow[] = []
  let variables: Variables = {}
  for (let id = context; id >= FIRST_VARIABLES; id--) {
    const row = draft.context(id)
    const known = memory.variables.get(row)
    if (known !== undefined) {
      variables = known
      break
    }
    missing.push(row)
  }
  if (missing.length === 0) return variables
  const names = new Map(entriesOf(variables))
  for (const row of missing.toReversed()) for (const [name, value] of entriesOf(row.values)) names.set(name, value)
  variables = objectOf(names)
  const [row] = missing
  if (row !== undefined) memory.variables.set(row, variables, names.size)
  return variables
}

/** What `vars` see: parameters and the datastore. */
function varsScope({ draft, world }: Turn): ChainScope {
  const { variables, filters = {} } = world.outside.templates()
  const parameters = draft.context(PARAMETERS).values
  return {
    filters,
    variable: (name) => (name === 'svckv' ? variables['svckv'] : own(parameters, name)),
  }
}

/** What a node sees: also results and variables, and of the datastore the items of the system. */
function nodeScope(turn: Turn, context: number): ChainScope {
  const { draft, chain, world } = turn
  const { variables: given, filters = {} } = world.outside.templates()
  const parameters = draft.context(PARAMETERS).values
  const variables = variablesAt(turn, context)
  const resultAt = (index: number): unknown => {
    const instance = draft.latest(index, 0)
    return instance === undefined ? undefined : resultSeen(turn, instance)
  }
  const resultOf = (name: string): unknown => {
    const index = chain.graph.taskIndexes.get(name)
    return index === undefined ? undefined : resultAt(index)
  }
  const all = (): Record<string, unknown> => objectOf(namesInOrder(turn).map((name) => [name, resultOf(name)]))
  const results: Namespace = {
    get: resultOf,
    has: (name) => resultOf(name) !== undefined,
    value: all,
    typeName: 'dict',
  }
  return {
    filters,
    variable(name) {
      if (name === '__results') return results
      if (name === 'svckv') return { system: member(given['svckv'], 'system') }
      if (name === 'system' || name === 'action_context' || name === 'config_context') return own(given, name)
      if (Object.hasOwn(variables, name)) return variables[name]
      return resultOf(name) ?? own(parameters, name)
    },
  }
}

/** Names of nodes that have ended, in the order in which they first ran. */
function namesInOrder({ draft, chain }: Turn): string[] {
  const names = new Set<string>()
  for (let id = 0; id < draft.workflow.instances; id++) {
    const instance = draft.findInstance(id)
    const name = instance === undefined ? undefined : chain.nodes[instance.task]?.name
    if (name !== undefined && instance?.order !== null && isCompleted(instance?.status ?? 'staged')) names.add(name)
  }
  return [...names]
}

/** undefined: it has not ended */
function resultSeen(turn: Turn, { id, status }: InstanceRow): unknown {
  const { news, world } = turn
  if (!isCompleted(status)) return undefined
  if (news?.instance === id) return news.result ?? {}
  const result = world.outside.resultOf(id, undefined) ?? undefined
  if (result !== undefined) return result
  const refusal = refusalOf(turn, id)
  return refusal === undefined ? {} : brokenOff(refusal)
}

const own = (object: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

function member(value: unknown, name: string): unknown {
  if (!isObject(value)) return undefined
  return isNamespace(value) ? value.get(name) : own(value, name)
}
