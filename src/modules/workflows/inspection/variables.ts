/** Whether the variables in expressions have a value when they are evaluated. */
import { keysOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'
import { compareText } from '../definition/graph.ts'
import { readInlineParameters } from '../definition/inline.ts'
import { engineCommands, type Definition, type Task } from '../definition/model.ts'
import { ourVariable } from '../expressions/index.ts'
import type { Hints } from './hints.ts'
import { taskParts, transitionParts, workflowPart, type Part } from './parts.ts'
import { textsIn, type Texts } from './texts.ts'
import { walk, type Walk } from './walk.ts'

type Entries = Generator<InspectionEntry, void>

interface Look {
  readonly texts: Texts
  /** A hint at names like one that has no value. */
  readonly suggest: (name: string) => { hint?: string }
}

/** Whether a variable has a value at some place. */
type Scope = (name: string) => boolean

/**
 * A variable has a value if all tasks know it (input and `vars`), or if tasks publish it: before each transition that
 * leads to the place, or before one of them at a join. The output sees what any task publishes.
 *
 * @param variables names that have a value before the input
 */
export function* inspectVariables(
  definition: Definition,
  document: Readonly<Record<string, unknown>>,
  texts: Texts,
  variables: readonly string[],
  hints: Hints,
): Entries {
  const shared = new Set(variables)
  const isShared: Scope = (name) => shared.has(name)
  const published = new Published(walk(definition, targetsInOrder(definition)))
  const look: Look = {
    texts,
    suggest: (name) =>
      shared.has(name) || published.names.has(name) ? {} : hints.of(name, () => [...shared, ...published.names]),
  }
  yield* inspectAssignments(workflowPart(document, 'input'), look, isShared, (name) => shared.add(name))
  yield* inspectAssignments(workflowPart(document, 'vars'), look, isShared, (name) => shared.add(name))
  yield* inspectPart(workflowPart(document, 'timeout'), look, isShared)

  const documents = isObject(document['tasks']) ? document['tasks'] : {}
  for (const task of published.walk.visits) {
    if ((engineCommands as readonly string[]).includes(task.name)) continue
    const before = published.before(task)
    const isKnown: Scope = (name) => shared.has(name) || published.has(before, name)
    yield* inspectTask(task, documents[task.name], look, isKnown)
  }

  const late = new Set<string>()
  const isPublished: Scope = (name) => shared.has(name) || published.names.has(name) || late.has(name)
  yield* inspectAssignments(workflowPart(document, 'output'), look, isPublished, (name) => late.add(name))
}

function targetsInOrder({ taskIndexes }: Definition): (task: Task) => number[] {
  return ({ next }) => next.flatMap(({ targets }) => targets.map((target) => taskIndexes.get(target) ?? -1))
}

function* inspectTask(task: Task, document: unknown, look: Look, isKnown: Scope): Entries {
  for (const part of taskParts(task, document)) {
    if (part.hasCheckedVariables) yield* inspectPart(part, look, isKnown)
  }
  for (const position of task.next.keys()) {
    const parts = transitionParts(task, document, position)
    const names = new Set<string>()
    const isKnownThen: Scope = (name) => names.has(name) || isKnown(name)
    yield* inspectPart(parts.when, look, isKnown)
    yield* inspectAssignments(parts.publish, look, isKnownThen, (name) => names.add(name))
    yield* inspectPart(parts.do, look, isKnownThen)
  }
}

/** A list in which each item gives variables a value. Later items see them. */
function* inspectAssignments(part: Part, look: Look, isKnown: Scope, assign: (name: string) => void): Entries {
  if (!Array.isArray(part.value)) return
  for (const [index, item] of (part.value as unknown[]).entries()) {
    yield* inspectValue({ ...part, value: item, spec_path: `${part.spec_path}[${index}]` }, look, isKnown)
    if (typeof item === 'string') assign(item)
    else if (isObject(item)) keysOf(item).forEach(assign)
  }
}

/** A text that has the form of inline parameters is looked at as their list. */
function* inspectPart(part: Part, look: Look, isKnown: Scope): Entries {
  const pairs = typeof part.value === 'string' ? readInlineParameters(part.value) : []
  const list = pairs.length > 0 ? pairs.map(([name, value]) => ({ [name]: value })) : part.value
  if (!Array.isArray(list)) yield* inspectValue(part, look, isKnown)
  else {
    for (const [index, value] of (list as unknown[]).entries()) {
      yield* inspectValue({ ...part, value, spec_path: `${part.spec_path}[${index}]` }, look, isKnown)
    }
  }
}

interface Reference {
  readonly language: 'yaql' | 'jinja'
  readonly text: string
  readonly name: string
}

function* inspectValue({ value, spec_path, schema_path }: Part, look: Look, isKnown: Scope): Entries {
  for (const { language, text, name } of referencesIn(value, look.texts)) {
    const entry = (message: string): InspectionEntry => ({
      type: 'context',
      message: `Variable "${shown(name)}" ${message}`,
      spec_path,
      schema_path,
      language,
      expression: text,
    })
    if (name.startsWith('__')) {
      yield entry('that is prefixed with double underscores is considered a private variable and cannot be referenced.')
    }
    if (isKnown(name)) continue
    const ours = ourVariable(name)
    if (ours === undefined) yield { ...entry('is referenced before assignment.'), ...look.suggest(name) }
    else yield entry(`is referenced before assignment. Its name here is "${ours}".`)
  }
}

/** The variables in the texts of a value, each once per text, sorted by name. Statements of templates are left out. */
function referencesIn(value: unknown, texts: Texts): Reference[] {
  const references: Reference[] = []
  for (const text of new Set(textsIn(value))) {
    const blocks = texts.find(text).expressions.filter((block) => !block.text.startsWith('{%'))
    const names = new Set(blocks.flatMap(({ variables }) => variables))
    for (const name of names) references.push({ language: blocks[0]?.language ?? 'yaql', text, name })
  }
  return references.sort((a, b) => compareText(a.name, b.name))
}

/** Sets of published variables. A set is a number with a bit for each: a union costs one instruction for 64 variables. */
class Published {
  readonly walk: Walk
  readonly names: ReadonlySet<string>
  readonly #bits: ReadonlyMap<string, bigint>
  readonly #after = new Map<number, readonly bigint[]>()

  constructor(order: Walk) {
    this.walk = order
    const names = order.visits.flatMap(({ next }) => next.flatMap(({ publish }) => publish.map(({ name }) => name)))
    this.names = new Set(names)
    this.#bits = new Map(Array.from(this.names, (name, index) => [name, BigInt(index)]))
  }

  has(set: bigint, name: string): boolean {
    const bit = this.#bits.get(name)
    return bit !== undefined && ((set >> bit) & 1n) === 1n
  }

  /** The set before a task. Call it for each task in the order of the walk. */
  before(task: Task): bigint {
    const { inbound, isForward, isBetweenCycles } = this.walk
    const isJoin = task.join !== undefined && task.join !== 0
    const sets = inbound(task)
      .filter((transition) => isForward(transition) || (isJoin && isBetweenCycles(transition)))
      .map(({ from, position }) => this.#after.get(from)?.[position] ?? 0n)
    const set = sets.reduce((all, one) => (isJoin ? all | one : all & one), sets[0] ?? 0n)
    const after = task.next.map(({ publish }) => publish.reduce((all, { name }) => all | this.#bitOf(name), set))
    this.#after.set(task.index, after)
    return set
  }

  #bitOf(name: string): bigint {
    return 1n << (this.#bits.get(name) ?? 0n)
  }
}
