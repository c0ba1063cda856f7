/** Inspection of an action chain (contract 08, 8.2): every mistake that the text shows without running it. */
import { entriesOf, keysOf } from '../../../lib/json/index.ts'
import { isObject, represent } from '../../../lib/schema/index.ts'
import { callableNames, callsOf, TemplateError } from '../../../lib/template/index.ts'
import { shown } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'
import {
  findFirst,
  findReferenceMistakes,
  hasBothParameters,
  inspectChainShape,
  isHarmless,
  loadChain,
  NODE_SCHEMA_PATH,
  readNode,
  withoutEmptyKeys,
  type Node,
} from '../chain/index.ts'
import { MAX_TASKS, refuse } from '../definition/read.ts'
import type { ActionUse, Place } from './content.ts'
import { Findings } from './findings.ts'
import { Hints } from './hints.ts'
import type { TextInspection } from './inspection.ts'
import { textsIn } from './texts.ts'

/** Only a text with such a key can be a chain. */
const chainKey = /(?:^|[\s{,])["']?chain["']?\s*:/

/**
 * @param isChain whether the text must be a chain
 * @returns undefined: it need not be one, and is no mapping with the key `chain`, or one with `tasks` as well
 */
export function inspectChain(text: string, hasHints: boolean, isChain: boolean): TextInspection | undefined {
  if (!isChain && !chainKey.test(text)) return undefined
  const loaded = loadChain(text)
  if ('problem' in loaded) return isChain || /^chain\s*:/m.test(text) ? refuse(loaded.problem, loaded.line) : undefined
  const { value, lineOf } = loaded
  if (!isObject(value)) {
    const reason = `it is ${represent(value)}, and a mapping with the key "chain" is needed`
    return isChain ? refuse(reason) : undefined
  }
  if (!isChain && (!Object.hasOwn(value, 'chain') || Object.hasOwn(value, 'tasks'))) return undefined
  const document = withoutEmptyKeys(value)
  const items = Array.isArray(document['chain']) ? (document['chain'] as unknown[]) : []
  if (items.length > MAX_TASKS) {
    const size = `it has ${items.length} nodes and ${MAX_TASKS} are the limit`
    return refuse(`${size}. Move nodes into chains that it calls`, lineOf(['chain']))
  }
  return inspectDocument(document, items, new Hints(hasHints))
}

const nodePlace = (index: number, key: string): Place => ({
  spec_path: `chain[${index}].${key}`,
  schema_path: `${NODE_SCHEMA_PATH}.properties.${key}`,
})

function inspectDocument(
  document: Readonly<Record<string, unknown>>,
  items: readonly unknown[],
  hints: Hints,
): TextInspection {
  const findings = new Findings()
  for (const entry of inspectChainShape(document))
    findings.addAll([isHarmless(entry) ? { ...entry, type: 'warning' } : entry])
  const nodes = items.map((item) => readNode(isObject(item) ? item : {}))
  findings.addAll(inspectSemantics(document, nodes, hints))
  const actions: ActionUse[] = []
  findings.addAll(inspectTemplates(document['vars'], { spec_path: 'vars', schema_path: 'properties.vars' }, hints))
  for (const [index, node] of nodes.entries()) {
    const isOld = Object.hasOwn(node.document, 'params') && !Object.hasOwn(node.document, 'parameters')
    const inputPlace = nodePlace(index, isOld ? 'params' : 'parameters')
    if (node.ref !== '')
      actions.push({
        actionPlace: nodePlace(index, 'ref'),
        inputPlace,
        ref: node.ref,
        isReference: node.ref.includes('.'),
        input: keysOf(node.parameters),
      })
    findings.addAll(inspectTemplates(node.parameters, inputPlace, hints))
    findings.addAll(inspectTemplates(node.publish, nodePlace(index, 'publish'), hints))
  }
  const { entries, hasMore } = findings
  return { entries, hasMore, actions, defaults: [] }
}

function* inspectSemantics(
  document: Readonly<Record<string, unknown>>,
  nodes: readonly Node[],
  hints: Hints,
): Generator<InspectionEntry, void> {
  const semantic = (message: string, place: Place): InspectionEntry => ({ type: 'semantic', message, ...place })
  if (Array.isArray(document['chain']) && nodes.length === 0)
    yield semantic('The chain has no node.', { spec_path: 'chain', schema_path: 'properties.chain' })
  const named = typeof document['default'] === 'string' ? document['default'] : ''
  const names = nodes.map(({ name }) => name)
  for (const { message, path, isFatal } of findReferenceMistakes(nodes, named)) {
    const [key = '', index, inner = ''] = path
    const place =
      index === undefined ? { spec_path: key, schema_path: `properties.${key}` } : nodePlace(Number(index), inner)
    const target = index === undefined ? named : String(nodes[Number(index)]?.document[inner])
    const why = isFatal ? '' : ' Templates are not rendered here.'
    yield { ...semantic(`${message}${why}`, place), ...(isFatal ? hints.of(target, () => names) : {}) }
  }
  for (const [index, node] of nodes.entries()) {
    if (hasBothParameters(node.document))
      yield semantic(
        'Either "params" or "parameters" attribute needs to be provided, but not both',
        nodePlace(index, 'params'),
      )
  }
  yield* findUnused(nodes, named === '' ? findFirst(nodes) : named)
}

/** Nodes that never run. The chain runs all the same. */
function* findUnused(nodes: readonly Node[], start: string): Generator<InspectionEntry, void> {
  const warning = (message: string, index: number): InspectionEntry => ({
    type: 'warning',
    message,
    ...nodePlace(index, 'name'),
  })
  const byName = new Map<string, Node>()
  for (const [index, node] of nodes.entries()) {
    if (node.name === '') continue
    if (byName.has(node.name))
      yield warning(`The name "${shown(node.name)}" belongs to an earlier node. This node never runs.`, index)
    else byName.set(node.name, node)
  }
  const reached = new Set<string>()
  const open = [start]
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const node = byName.get(name)
    if (node === undefined || reached.has(name)) continue
    reached.add(name)
    open.push(node.onSuccess, node.onFailure)
  }
  if (reached.size === 0) return
  for (const [index, node] of nodes.entries())
    if (byName.get(node.name) === node && !reached.has(node.name))
      yield warning(`No other node leads to "${shown(node.name)}". It never runs.`, index)
}

/** The server adds it for templates of chains. */
const serverFilters: ReadonlySet<string> = new Set(['decrypt_kv'])

/** Texts that cannot be parsed, and calls of what is unknown. */
function* inspectTemplates(value: unknown, place: Place, hints: Hints): Generator<InspectionEntry, void> {
  if (!isObject(value)) return
  for (const [name, template] of entriesOf(value)) {
    const spec_path = `${place.spec_path}.${shown(name)}`
    for (const text of textsIn(template)) {
      if (!/\{[{%#]/.test(text)) continue
      const calls = callsIn(text)
      if (typeof calls === 'string') {
        yield { type: 'expression', message: calls, ...place, spec_path, language: 'jinja', expression: text }
      } else if (hints.areWanted) {
        for (const call of calls.filter((each) => !callableNames.has(each) && !serverFilters.has(each)))
          yield {
            type: 'warning',
            message: `The function "${shown(call)}" is unknown.`,
            ...place,
            spec_path,
            ...hints.of(call, () => [...callableNames]),
          }
      }
    }
  }
}

/** The functions and filters that a template calls; a text: why it cannot be parsed */
function callsIn(text: string): string[] | string {
  try {
    return callsOf(text, 'template')
  } catch (error) {
    if (error instanceof TemplateError) return error.message
    throw error
  }
}
