/**
 * What an action chain is, once read: nodes that run one at a time, and where each leads (contract 08, 8.2).
 */
import { JsonNumber, entriesOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { shown, type MetadataDocument } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'
import { findCycles, findReachable } from '../definition/graph.ts'
import type { Definition, NextEntry, Task, Transition } from '../definition/model.ts'
import { MAX_TASKS, readDocument } from '../definition/read.ts'
import { inspectChainShape, isHarmless, withoutEmptyKeys } from './schema.ts'

export interface Chain {
  /** The nodes as tasks, each with its transitions: the form that displays of workflows know. Same indexes as `nodes`. */
  readonly graph: Definition
  /** Of several nodes of one name, only the first: no other can be reached. */
  readonly nodes: readonly Node[]
  /** Index of the node that runs first. */
  readonly first: number
  /** Templates of variables, by name. */
  readonly vars: Readonly<Record<string, unknown>>
}

export interface Node {
  readonly name: string
  /** Of the action. */
  readonly ref: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly publish: Readonly<Record<string, unknown>>
  /** Names of nodes; empty: the chain ends. */
  readonly onSuccess: string
  readonly onFailure: string
  /** As in the definition, for the context of the child. */
  readonly document: Readonly<Record<string, unknown>>
}

export interface ChainSource {
  /** Name of the action that runs the chain. */
  readonly action: string
  /** The definition, as messages name it: the path within the pack. */
  readonly file: string
}

/** Why a definition is no chain that can run. */
export interface ChainProblem {
  /** A whole message. */
  readonly problem: string
  /** Line of the definition; undefined: not known, or all of it. */
  readonly line: number | undefined
}

/** Text that contains one of these is a template. */
export const hasTemplate = (text: string): boolean => text.includes('{{') || text.includes('{%')

/** Keys that `<<` brings into a chain, as into other metadata. */
const MAX_MERGE_KEYS = 2_000

/** The YAML document of a chain; or why there is none, without a period. */
export function loadChain(text: string): MetadataDocument | { problem: string; line: number | undefined } {
  const document = readDocument(text, MAX_MERGE_KEYS)
  if (!('problem' in document)) return document
  if (document.isEmpty === true) return { problem: wrongKind(null), line: undefined }
  const { message, line, key } = document.problem
  return { problem: key === undefined ? message : `${key}: ${message}`, line }
}

/** Reads the text of a definition, at most 1 MiB with at most 10,000 nodes. */
export function readChain(text: string, { action, file }: ChainSource): Chain | ChainProblem {
  const failed = (reason: string, line?: number): ChainProblem => ({
    problem: `Failed to parse action chain definition from "${file}": ${reason}`,
    line,
  })
  const loaded = loadChain(text)
  if ('problem' in loaded) return failed(loaded.problem, loaded.line)
  const { value, lineOf } = loaded
  if (!isObject(value) || value instanceof JsonNumber) return failed(wrongKind(value))
  const document = withoutEmptyKeys(value)
  const size = Array.isArray(document['chain']) ? document['chain'].length : 0
  if (size > MAX_TASKS)
    return failed(`it has ${size} nodes and ${MAX_TASKS} are the limit. Move nodes into chains that it calls`)
  const shape = findShapeProblem(document)
  if (shape !== undefined) return { problem: shape.message, line: lineOf(stepsOf(shape.spec_path)) }
  const documents = document['chain'] as Record<string, unknown>[] // the shape says so
  const clash = documents.findIndex(hasBothParameters)
  if (clash !== -1)
    return {
      problem: 'Either "params" or "parameters" attribute needs to be provided, but not both',
      line: lineOf(['chain', String(clash), 'params']),
    }
  const nodes = documents.map(readNode)
  if (nodes.length === 0) return { problem: `Failed to find default node in ${action}.`, line: lineOf(['chain']) }
  const named = typeof document['default'] === 'string' ? document['default'] : ''
  const mistake = findReferenceMistakes(nodes, named).find(({ isFatal }) => isFatal)
  if (mistake !== undefined) return { problem: mistake.message, line: lineOf(mistake.path) }
  const vars = isObject(document['vars']) ? document['vars'] : {}
  return compile(nodes, named === '' ? findFirst(nodes) : named, vars)
}

/** As Python names the type. */
function wrongKind(value: unknown): string {
  const kind =
    value === null
      ? 'NoneType'
      : Array.isArray(value)
        ? 'list'
        : typeof value === 'boolean'
          ? 'bool'
          : typeof value === 'string'
            ? 'str'
            : Number.isInteger(value) || (value instanceof JsonNumber && value.isWhole)
              ? 'int'
              : 'float'
  return `Expected "dict", got "${kind}"`
}

/** The problem that lies least deep; of several, the first. A missing key lies where the key would. */
function findShapeProblem(document: unknown): InspectionEntry | undefined {
  let found: { entry: InspectionEntry; depth: number } | undefined
  for (const entry of inspectChainShape(document)) {
    if (isHarmless(entry)) continue
    const depth = stepsOf(entry.spec_path).length + (entry.schema_path?.endsWith('required') === true ? 1 : 0)
    if (found === undefined || depth < found.depth) found = { entry, depth }
  }
  return found?.entry
}

/** `chain[0].name` → `chain`, `0`, `name`. */
const stepsOf = (path: string | null): string[] => path?.split(/[[\].]+/).filter(Boolean) ?? []

const isFilled = (value: unknown): boolean => isObject(value) && Object.keys(value).length > 0

/** `params` is the older name of `parameters`. */
export function hasBothParameters({ params, parameters }: Readonly<Record<string, unknown>>): boolean {
  return isFilled(params) && isFilled(parameters)
}

export function readNode(document: Readonly<Record<string, unknown>>): Node {
  const textAt = (key: string): string => {
    const value = document[key]
    return typeof value === 'string' ? value : ''
  }
  const objectAt = (key: string): Record<string, unknown> => {
    const value = document[key]
    return isObject(value) ? value : {}
  }
  return {
    name: textAt('name'),
    ref: textAt('ref'),
    parameters: isFilled(document['parameters']) ? objectAt('parameters') : objectAt('params'),
    publish: objectAt('publish'),
    onSuccess: textAt('on-success'),
    onFailure: textAt('on-failure'),
    document,
  }
}

/** A name that leads nowhere. */
export interface ReferenceMistake {
  readonly message: string
  readonly path: readonly string[]
  /** Whether the chain cannot start. Otherwise it fails when it gets there. */
  readonly isFatal: boolean
}

export function findReferenceMistakes(nodes: readonly Node[], start: string): ReferenceMistake[] {
  const names = new Set(nodes.map(({ name }) => name))
  const mistakes: ReferenceMistake[] = []
  const find = (target: string, place: string, path: readonly string[], isFatal: boolean): void => {
    if (target === '' || names.has(target)) return
    const message = `Unable to find node with name "${shown(target)}" referenced in ${place}.`
    mistakes.push({ message, path, isFatal })
  }
  for (const [index, { name, onSuccess, onFailure }] of nodes.entries()) {
    for (const [key, target] of [
      ['on-success', onSuccess],
      ['on-failure', onFailure],
    ] as const) {
      const path = ['chain', String(index), key]
      find(target, `"${key}" in task "${shown(name)}"`, path, !hasTemplate(target))
    }
  }
  find(start, '"default"', ['default'], true)
  return mistakes
}

/** The first node that no node leads to, else the first of all. */
export function findFirst(nodes: readonly Node[]): string {
  const targets = new Set(nodes.flatMap(({ onSuccess, onFailure }) => [onSuccess, onFailure]))
  return nodes.find(({ name }) => !targets.has(name))?.name ?? nodes[0]?.name ?? ''
}

function compile(all: readonly Node[], start: string, vars: Chain['vars']): Chain {
  const byName = new Map<string, Node>()
  for (const node of all) if (!byName.has(node.name)) byName.set(node.name, node)
  const nodes = [...byName.values()]
  const indexes = new Map(nodes.map(({ name }, index) => [name, index]))
  const first = indexes.get(start) ?? 0
  const outgoing = nodes.map((node, from) => readTransitions(node, from, indexes))
  const isReachable = findReachable([first], outgoing)
  const isInCycle = findCycles(outgoing)
  const inbound = nodes.map((): number[] => [])
  for (const { from, to } of outgoing.flat()) if (inbound[to]?.at(-1) !== from) inbound[to]?.push(from)
  const tasks = nodes.map((node, index): Task => ({
    index,
    name: node.name,
    kind: 'task',
    action: node.ref,
    input: node.parameters,
    items: undefined,
    delay: undefined,
    timeout: undefined,
    retry: undefined,
    join: undefined,
    joinNeed: undefined,
    next: readNext(node),
    outgoing: outgoing[index] ?? [],
    inbound: inbound[index] ?? [],
    isSplit: false,
    isInCycle: isInCycle[index] === true,
    isReachable: isReachable[index] === true,
  }))
  const graph: Definition = {
    input: [],
    vars: [],
    output: undefined,
    tasks,
    taskIndexes: indexes,
    starts: [first],
    timeout: undefined,
  }
  return { graph, nodes, first, vars }
}

/** Both ways out, whether or not they lead on: the conditions are their names. */
function readNext({ onSuccess, onFailure, publish }: Node): NextEntry[] {
  const published = entriesOf(publish).map(([name, value]) => ({ name, value }))
  return [
    { when: 'on-success', publish: published, targets: onSuccess === '' ? [] : [onSuccess] },
    { when: 'on-failure', publish: published, targets: onFailure === '' ? [] : [onFailure] },
  ]
}

/** `position`: 0 on success, 1 on failure, as in `readNext`. */
function readTransitions(
  { name, onSuccess, onFailure }: Node,
  from: number,
  indexes: ReadonlyMap<string, number>,
): Transition[] {
  return [onSuccess, onFailure].flatMap((target, position): Transition[] => {
    const to = indexes.get(target)
    if (to === undefined) return []
    const key = position === 1 && target === onSuccess ? 1 : 0
    return [{ from, to, position, key, id: `${target}__t${key}`, origin: `${name}__t${key}` }]
  })
}
