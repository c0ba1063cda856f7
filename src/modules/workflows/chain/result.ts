/** What users see of a run of a chain: the result of its execution, and what its children get besides parameters. */
import { entriesOf, objectOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { InstanceRow, State, Variables } from '../conductor/index.ts'
import { isCompleted, isHeld } from '../conductor/status.ts'
import type { Chain, Node } from './definition.ts'

/** The context of the first variables, `vars`; those after it have what nodes published. */
export const FIRST_VARIABLES = 1
const FIRST_PUBLISHED = 2

/** A type, because the records of a result are plain objects. */
export type Failure = { readonly error: string; readonly traceback: string }

/**
 * The result of a chain, or of a node, that could not run.
 *
 * @param line of the definition
 */
export function brokenOff(error: string, line?: number): Failure {
  return { error, traceback: line === undefined ? error : `${error}\nSee line ${line} of the definition.` }
}

/** What the caller knows of a run of a node. */
export interface NodeRun {
  /** ISO 8601 */
  readonly created_at: string
  /** ISO 8601 */
  readonly updated_at: string
  /** undefined: the action could not be started */
  readonly child: ChildRecord | undefined
}

export interface ChildRecord {
  readonly execution_id: string
  readonly liveaction_id: string
  /** Reference of the action, if it is a chain itself. */
  readonly workflow: string | null
  /** Status of the execution. */
  readonly state: string
  readonly result: unknown
}

export interface NodeResult {
  readonly id: string
  readonly name: string
  readonly execution_id: string | null
  readonly liveaction_id: string | null
  readonly workflow: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly state: string
  readonly result: unknown
}

/** A type, because a result is a plain object. */
export type ChainResult = {
  readonly tasks: readonly NodeResult[]
  /** Absent with `display_published: false`. */
  readonly published?: Variables
  readonly error?: string
  readonly traceback?: string
}

/**
 * The result of the execution of a chain: also while it runs or is paused. A node that runs is not among its tasks.
 *
 * @param runOf asked once for each node that has ended, or waits
 * @param displayPublished the runner parameter `display_published`
 */
export function resultOf(
  chain: Chain,
  state: State,
  runOf: (instance: InstanceRow) => NodeRun,
  displayPublished = true,
): ChainResult | Failure {
  const { output } = state.workflow
  if (output !== null) return output as Failure // `brokenOff` made it
  const shown = [...state.instances.values()]
    .filter(({ order, status }) => order !== null && (isCompleted(status) || isHeld(status)))
    .sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
  const errors = [...state.errors.values()]
  const refusals = new Map(errors.map(({ instance, entry }) => [instance, entry.message]))
  const failure = refusals.get(null)
  const tasks = shown.map((instance): NodeResult => {
    const { created_at, updated_at, child } = runOf(instance)
    const name = chain.nodes[instance.task]?.name ?? ''
    return {
      id: name,
      name,
      execution_id: child?.execution_id ?? null,
      liveaction_id: child?.liveaction_id ?? null,
      workflow: child?.workflow ?? null,
      created_at,
      updated_at,
      state: child?.state ?? 'failed',
      result: child === undefined ? brokenOff(refusals.get(instance.id) ?? '') : child.result,
    }
  })
  return {
    tasks,
    ...(displayPublished ? { published: variablesFrom(state, FIRST_PUBLISHED) } : {}),
    ...(failure === undefined ? {} : brokenOff(failure)),
  }
}

/** What the contexts from `first` on have: a later value replaces an earlier one. */
export function variablesFrom(state: State, first: number): Variables {
  const names = new Map<string, unknown>()
  for (let id = first; id < state.workflow.contexts; id++)
    for (const [name, value] of entriesOf(state.contexts.get(id)?.values ?? {})) names.set(name, value)
  return objectOf(names)
}

/** What the child of a node gets besides the parameters. */
export interface NodeRequest {
  /** `chain` in the context of the child. */
  readonly chain: Readonly<Record<string, unknown>>
  /** undefined: none */
  readonly notify: Readonly<Record<string, unknown>> | undefined
}

/**
 * @param notify of the chain's own execution: that of a node without one
 * @param skipNotify names of nodes without any: the runner parameter `skip_notify`
 */
export function requestOf(
  { nodes }: Chain,
  { task }: Pick<InstanceRow, 'task'>,
  notify: NodeRequest['notify'],
  skipNotify: readonly string[] = [],
): NodeRequest {
  const node = nodes[task]
  if (node === undefined) throw new Error(`the chain has no node ${task}`)
  const { name, ref, document } = node
  const at = (key: string): unknown => document[key] ?? null
  return {
    chain: {
      name,
      ref,
      params: at('params'),
      parameters: at('parameters'),
      on_success: at('on-success'),
      on_failure: at('on-failure'),
      publish: at('publish'),
      notify: at('notify'),
    },
    notify: skipNotify.includes(name) ? undefined : (notifyOf(node) ?? notify),
  }
}

const sections = ['on-complete', 'on-success', 'on-failure']

/** Without what nobody reads. */
function notifyOf({ document: { notify } }: Node): NodeRequest['notify'] {
  if (!isObject(notify)) return undefined
  const known = entriesOf(notify).filter(([name, section]) => sections.includes(name) && isObject(section))
  return known.length === 0 ? undefined : objectOf(known)
}
