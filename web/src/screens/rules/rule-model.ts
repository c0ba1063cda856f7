/** From the definition of a rule to what the form of it holds, and back. No markup, no state. */
import { noOperators, type Operators } from '../../components/rules/criteria-text.ts'
import { holdsMask } from '../../components/form/form-model.ts'
import { readJsonText, mistakeText } from '../../components/form/json-text.ts'
import { SHOWN_MASK } from '../../components/form/mask.ts'
import type { RuleDefinition, RuleRecord } from '../../api/records.ts'
import { isObject, writeJson } from '../../json.ts'

export interface CriterionRow {
  /** Of the row on the page. */
  readonly id: string
  key: string
  type: string
  /** How `pattern` is read; `rows`: it is `items`; `none`: there is none. */
  as: 'text' | 'json' | 'rows' | 'none'
  pattern: string
  /** Of `search`; empty: there is none. */
  condition: string
  items: readonly CriterionRow[]
  /** What else somebody wrote there. */
  others: Readonly<Record<string, unknown>>
}

/** What the form holds besides the parameters of trigger and action. */
export interface RuleDraft {
  name: string
  pack: string
  description: string
  enabled: boolean
  type: string
  triggerType: string
  criteria: readonly CriterionRow[]
  actionRef: string
  /** What the form does not show, and keeps: tags, descriptions of trigger and action. */
  others: {
    rule: Readonly<Record<string, unknown>>
    type: Readonly<Record<string, unknown>>
    trigger: Readonly<Record<string, unknown>>
    action: Readonly<Record<string, unknown>>
  }
}

export interface DraftWithParameters {
  draft: RuleDraft
  triggerParameters: Record<string, unknown>
  actionParameters: Record<string, unknown>
}

/** Part of the form → what is wrong with it; of a criterion the id of its row. */
export type Problems = ReadonlyMap<string, string>

export const emptyRule: RuleDefinition = {
  name: '',
  pack: 'default',
  description: '',
  enabled: true,
  trigger: { type: '', parameters: {} },
  criteria: {},
  action: { ref: '', parameters: {} },
}

let lastId = 0

export function newRow(key = '', type = 'equals'): CriterionRow {
  lastId += 1
  return { id: `row-${lastId}`, key, type, as: 'text', pattern: '', condition: '', items: [], others: {} }
}

/** What an author may write besides, and the form does not show. */
const otherKeys: readonly string[] = ['notify', 'expect', 'keep']

/** What an author writes of a rule, as `svc rule create` reads it: what the server sets is left out. */
export function definitionOfRecord(rule: RuleRecord): RuleDefinition {
  const { name, pack, description, enabled, type, trigger, criteria, action, tags } = rule
  return {
    name,
    pack,
    description,
    enabled,
    type: { ref: type.ref, ...(isEmpty(type.parameters) ? {} : { parameters: type.parameters }) },
    trigger: {
      type: trigger.type,
      parameters: trigger.parameters,
      ...(trigger.description === undefined ? {} : { description: trigger.description }),
    },
    criteria,
    // All of an action is its author's.
    action: { ...action },
    ...(tags.length === 0 ? {} : { tags }),
    ...Object.fromEntries(Object.entries(rule).filter(([key]) => otherKeys.includes(key))),
  }
}

/**
 * For a new rule, which has no secret that a mask could stand for.
 *
 * @returns `left`: names of the parameters that are not copied
 */
export function copyOfDefinition(definition: RuleDefinition): { definition: RuleDefinition; left: string[] } {
  const { trigger, action, name } = definition
  const left = [...maskedIn(trigger.parameters), ...maskedIn(action.parameters)]
  const without = (parameters: unknown): Record<string, unknown> =>
    Object.fromEntries(Object.entries(objectOf(parameters)).filter(([, value]) => !holdsMask(value)))
  return {
    definition: {
      ...definition,
      name: `${name}_copy`,
      enabled: false,
      trigger: { ...trigger, parameters: without(trigger.parameters) },
      action: { ...action, parameters: without(action.parameters) },
    },
    left,
  }
}

/**
 * A mask stands for a secret that the stored rule has in this place, and for nothing anywhere else.
 *
 * @param given what somebody wrote, which need not be a rule @param stored undefined: it is a new rule
 * @returns what is wrong, in words
 */
export function maskProblemOf(given: RuleDefinition, stored: RuleRecord | undefined): string | undefined {
  const [trigger, action] = [objectOf(given.trigger), objectOf(given.action)]
  const names = [
    ...(stored !== undefined && stored.trigger.type === trigger['type'] ? [] : maskedIn(trigger['parameters'])),
    ...(stored !== undefined && stored.action.ref === action['ref'] ? [] : maskedIn(action['parameters'])),
  ]
  if (names.length === 0) return undefined
  return `Enter or remove the secret of ${names.join(', ')}: ${SHOWN_MASK} only masks the old one.`
}

function maskedIn(parameters: unknown): string[] {
  return Object.entries(objectOf(parameters))
    .filter(([, value]) => holdsMask(value))
    .map(([name]) => name)
}

/** Of criteria side by side: an object cannot hold both. */
export function doubledKeys({ criteria }: Pick<RuleDraft, 'criteria'>): string[] {
  const look = (rows: readonly CriterionRow[]): string[] => {
    const keys = rows.map(({ key }) => key)
    return [...keys.filter((key, i) => keys.indexOf(key) !== i), ...rows.flatMap(({ items }) => look(items))]
  }
  return look(criteria)
}

const NO_RULE = 'Enter a rule as an object: { "name": …, "trigger": …, "action": … }.'

/** What somebody wrote as JSON: an object, of which the server says whether it is a rule. @returns what is wrong, in words */
export function readRule(text: string): { definition: RuleDefinition } | { problem: string } {
  const { value, mistake } = readJsonText(text)
  if (mistake !== undefined) return { problem: mistakeText(mistake) }
  return isObject(value) ? { definition: value as unknown as RuleDefinition } : { problem: NO_RULE } // as said above
}

/** @param given what somebody wrote @returns what keeps it from being shown as a form, in words */
export function draftOf(given: unknown): DraftWithParameters | { problem: string } {
  if (!isObject(given)) return { problem: NO_RULE }
  const { name, pack, description, enabled, type, trigger, criteria, action, ...rule } = given
  for (const [title, text] of Object.entries({ name, pack, description })) {
    if (!isNothing(text) && typeof text !== 'string') return { problem: `"${title}" must be a string.` }
  }
  if (!isNothing(enabled) && typeof enabled !== 'boolean') return { problem: '"enabled" must be true or false.' }
  for (const [title, part] of Object.entries({ type, trigger, criteria, action })) {
    if (!isNothing(part) && !isObject(part)) return { problem: `"${title}" must be an object.` }
  }
  const { ref: typeRef, ...typeOthers } = objectOf(type)
  const { type: triggerType, parameters: triggerParameters, ...triggerOthers } = objectOf(trigger)
  const { ref: actionRef, parameters: actionParameters, ...actionOthers } = objectOf(action)
  const refs = { 'type.ref': typeRef, 'trigger.type': triggerType, 'action.ref': actionRef }
  for (const [title, text] of Object.entries(refs)) {
    if (!isNothing(text) && typeof text !== 'string') return { problem: `"${title}" must be a string.` }
  }
  const parameters = { 'trigger.parameters': triggerParameters, 'action.parameters': actionParameters }
  for (const [title, part] of Object.entries(parameters)) {
    if (!isNothing(part) && !isObject(part)) return { problem: `"${title}" must be an object.` }
  }
  const rows = rowsOf(objectOf(criteria))
  if ('problem' in rows) return rows
  return {
    draft: {
      name: textIn(name),
      pack: textIn(pack),
      description: textIn(description),
      enabled: enabled === true,
      type: textIn(typeRef) || 'standard',
      triggerType: textIn(triggerType),
      criteria: rows.rows,
      actionRef: textIn(actionRef),
      others: { rule, type: typeOthers, trigger: triggerOthers, action: actionOthers },
    },
    triggerParameters: objectOf(triggerParameters),
    actionParameters: objectOf(actionParameters),
  }
}

function rowsOf(criteria: Readonly<Record<string, unknown>>): { rows: CriterionRow[] } | { problem: string } {
  const rows: CriterionRow[] = []
  for (const [key, criterion] of Object.entries(criteria)) {
    if (!isObject(criterion)) return { problem: `The criterion "${key}" must be an object with type and pattern.` }
    const { type, pattern, condition, ...others } = criterion
    if (!isNothing(type) && typeof type !== 'string') {
      return { problem: `The type of the criterion "${key}" must be the name of an operator.` }
    }
    if (condition !== undefined && typeof condition !== 'string') {
      return { problem: `The condition of the criterion "${key}" must be a string.` }
    }
    const row: CriterionRow = { ...newRow(key, textIn(type)), condition: condition ?? '', others }
    if (type === 'search' && isObject(pattern)) {
      const inner = rowsOf(pattern)
      if ('problem' in inner) return inner
      rows.push({ ...row, as: 'rows', items: inner.rows })
    } else if (pattern === undefined) rows.push({ ...row, as: 'none' })
    else if (typeof pattern === 'string') rows.push({ ...row, as: 'text', pattern })
    else rows.push({ ...row, as: 'json', pattern: writeJson(pattern) })
  }
  return { rows }
}

/**
 * @param lenient what cannot be read stands in it as the text that was typed: for showing it as JSON, where nothing shall be
 *   lost. Only of two criteria with one key the later would be: then there is a problem all the same
 */
export function definitionOf(
  { draft, triggerParameters, actionParameters }: DraftWithParameters,
  { lenient = false, operators = noOperators }: { lenient?: boolean; operators?: Operators } = {},
): { definition: RuleDefinition; problems: Problems } {
  const problems = new Map<string, string>()
  const { name, pack, description, enabled, type, triggerType, actionRef, others } = draft
  if (name.trim() === '') problems.set('name', 'Enter a name.')
  if (triggerType.trim() === '') problems.set('trigger', 'Choose a trigger type.')
  if (actionRef.trim() === '') problems.set('action', 'Choose an action.')
  const criteria = criteriaOf(draft.criteria, problems, { lenient, operators, isWithinSearch: false })
  return {
    definition: {
      name,
      ...(pack === '' ? {} : { pack }),
      description,
      enabled,
      // The server says which there are.
      type: { ref: type as RuleRecord['type']['ref'], ...others.type },
      trigger: { type: triggerType, parameters: triggerParameters, ...others.trigger },
      criteria,
      action: { ref: actionRef, parameters: actionParameters, ...others.action },
      ...others.rule,
    },
    problems,
  }
}

interface Reading {
  lenient: boolean
  operators: Operators
  isWithinSearch: boolean
}

function criteriaOf(
  rows: readonly CriterionRow[],
  problems: Map<string, string>,
  reading: Reading,
): Record<string, unknown> {
  const seen = new Set<string>()
  const pairs: [string, unknown][] = []
  for (const row of rows) {
    const { id, key, type, condition, others } = row
    if (key.trim() === '') {
      const example = reading.isWithinSearch ? 'item.name' : 'trigger.body.kind'
      problems.set(id, `Enter the path of a value, such as ${example}.`)
    } else if (seen.has(key)) {
      problems.set(id, `Another criterion has this key. To check the same value twice, add a tag: ${key}#2`)
    }
    seen.add(key)
    if (type === '' && !problems.has(id)) problems.set(id, 'Choose an operator.')
    const pattern = patternOf(row, problems, reading)
    pairs.push([
      key,
      {
        type,
        ...(pattern === undefined ? {} : { pattern: pattern.value }),
        ...(condition === '' ? {} : { condition }),
        ...others,
      },
    ])
  }
  return Object.fromEntries(pairs)
}

function patternOf(row: CriterionRow, problems: Map<string, string>, reading: Reading): { value: unknown } | undefined {
  const { id, type, as, pattern, items } = row
  const { lenient, operators } = reading
  if (as === 'none') return undefined
  if (as === 'rows') {
    if (items.length === 0 && !problems.has(id)) problems.set(id, 'Add a criterion for the items.')
    return { value: criteriaOf(items, problems, { ...reading, isWithinSearch: true }) }
  }
  if (as === 'text' || operators.get(type)?.pattern === 'none') {
    const isJson = as === 'json' && readJsonText(pattern).mistake === undefined
    return { value: isJson ? readJsonText(pattern).value : pattern }
  }
  if (pattern.trim() === '') {
    if (!problems.has(id)) problems.set(id, 'Enter a pattern.')
    return lenient ? { value: '' } : undefined
  }
  const { value, mistake } = readJsonText(pattern)
  if (mistake === undefined) return { value }
  if (!problems.has(id)) problems.set(id, `The pattern is not valid JSON. ${mistakeText(mistake)}`)
  return lenient ? { value: pattern } : undefined
}

/** What a text says as JSON when that is no text: somebody may have meant the number. Undefined: nothing. */
export function valueOfPattern({ type, as, pattern }: CriterionRow, operators: Operators): unknown {
  if (as !== 'text' || operators.get(type)?.pattern !== 'any') return undefined
  const text = pattern.trim()
  if (!/^(-?\d|true$|false$|null$|\[|\{(?!\{))/.test(text) || text.length > 10_000) return undefined
  const { value, mistake } = readJsonText(text)
  return mistake === undefined ? value : undefined
}

/** With the row at an index one place further up, or down; the same rows where there is none. */
export function withMoved(rows: readonly CriterionRow[], index: number, step: -1 | 1): readonly CriterionRow[] {
  const [one, other] = [rows[index], rows[index + step]]
  if (one === undefined || other === undefined) return rows
  return rows.map((row) => (row === one ? other : row === other ? one : row))
}

/** With the operator changed: what was typed stays where it makes sense. */
export function withType(row: CriterionRow, type: string): CriterionRow {
  const isSearch = type === 'search'
  if (isSearch && row.as !== 'rows') {
    return { ...row, type, as: 'rows', condition: row.condition || 'any', items: row.items }
  }
  if (!isSearch && row.as === 'rows') return { ...row, type, as: 'text', condition: '' }
  return { ...row, type, as: row.as === 'none' ? 'text' : row.as }
}

/** Attribute of the draft → what its problems are called, where that is another word. */
const placeOf: Readonly<Record<string, string>> = { triggerType: 'trigger', actionRef: 'action' }

/** Those that are not about what has been changed since. */
export function ruleProblemsAfter(problems: Problems, changed: Partial<RuleDraft>): Problems {
  const places = Object.keys(changed).map((name) => placeOf[name] ?? name)
  return new Map(
    [...problems].filter(([place]) => !places.includes(place) && !('criteria' in changed && place.startsWith('row-'))),
  )
}

/**
 * Which part of the form a refusal of the server is about.
 *
 * @param path in the definition of the rule, of the field that is refused
 * @returns undefined: none
 */
export function placeOfRefusal(path: readonly string[], draft: RuleDraft): string | undefined {
  const [part = '', key] = path
  switch (part) {
    case 'criteria':
      return rowAt(draft.criteria, path.slice(1))?.id
    case 'trigger':
    case 'action':
      return key === 'parameters' ? `${part}Parameters` : part
    default:
      return ['name', 'pack', 'description', 'type'].includes(part) ? part : undefined
  }
}

/** @param path keys of a criterion, of one within its `search`, and so on, each after the attribute `pattern` */
function rowAt(rows: readonly CriterionRow[], [key, , ...inner]: readonly string[]): CriterionRow | undefined {
  const row = rows.find((one) => one.key === key)
  return (row === undefined || inner.length === 0 ? undefined : rowAt(row.items, inner)) ?? row
}

/** Whether two definitions say the same, whatever the order in which they say it. */
export function isSameDefinition(a: unknown, b: unknown): boolean {
  return writeJson(ordered(a)) === writeJson(ordered(b))
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, ordered(inner)]),
  )
}

function isNothing(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

function objectOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isEmpty(value: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(value).length === 0
}
