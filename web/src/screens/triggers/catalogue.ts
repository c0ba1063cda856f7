/** Trigger types, their triggers and the rules that use them, put together and searched. No markup, no state. */
import { parametersLine } from '../../components/rules/trigger-line.ts'
import type { RuleRecord, TriggerRecord, TriggerTypeRecord } from '../../api/records.ts'
import { compareText, countText } from '../../text.ts'

export type CatalogueType = Pick<TriggerTypeRecord, 'ref' | 'pack' | 'name' | 'description'>
export type CatalogueTrigger = Pick<TriggerRecord, 'ref' | 'type' | 'parameters' | 'description'>
export type CatalogueRule = Pick<RuleRecord, 'ref' | 'enabled'> & {
  trigger: Pick<RuleRecord['trigger'], 'ref' | 'type'>
}

export interface Catalogue {
  /** In the order of pack and name. */
  types: readonly CatalogueType[]
  /** By the reference of their type, in the order of what they wait for. */
  triggers: ReadonlyMap<string, readonly CatalogueTrigger[]>
  triggerOf(ref: string): CatalogueTrigger | undefined
  /** By the reference of their trigger; undefined: the caller may not list rules. */
  rules: ReadonlyMap<string, readonly CatalogueRule[]> | undefined
}

/** @param rules undefined: the caller may not list them */
export function catalogueOf(
  types: readonly CatalogueType[],
  triggers: readonly CatalogueTrigger[],
  rules: readonly CatalogueRule[] | undefined,
): Catalogue {
  const byRef = new Map(triggers.map((trigger) => [trigger.ref, trigger]))
  const titled = triggers.map((trigger) => ({ trigger, words: parametersLine(trigger.type, trigger.parameters) }))
  titled.sort((a, b) => compareText(a.words, b.words) || compareText(a.trigger.ref, b.trigger.ref))
  return {
    types: types.toSorted((a, b) => compareText(a.pack, b.pack) || compareText(a.name, b.name)),
    triggers: Map.groupBy(
      titled.map(({ trigger }) => trigger),
      ({ type }) => type,
    ),
    triggerOf: (ref) => byRef.get(ref),
    rules: rules === undefined ? undefined : Map.groupBy(rules, ({ trigger }) => trigger.ref),
  }
}

export interface TypeRow {
  kind: 'type'
  type: CatalogueType
  triggers: number
  /** Undefined: nobody may know. */
  rules: number | undefined
}

export type CatalogueRow = { kind: 'pack'; pack: string; count: number } | TypeRow

const MAX_SEARCHED = 2000

/** Types with every word of a search in their reference, their description or what their triggers wait for, below their packs. */
export function catalogueRows({ types, triggers, rules }: Catalogue, search: string): CatalogueRow[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const rows: CatalogueRow[] = []
  let heading: Extract<CatalogueRow, { kind: 'pack' }> | undefined
  for (const type of types) {
    const own = triggers.get(type.ref) ?? []
    if (!fits(type, own, words)) continue
    if (heading?.pack !== type.pack) {
      heading = { kind: 'pack', pack: type.pack, count: 0 }
      rows.push(heading)
    }
    heading.count += 1
    rows.push({
      kind: 'type',
      type,
      triggers: own.length,
      rules: rules === undefined ? undefined : own.reduce((sum, { ref }) => sum + (rules.get(ref)?.length ?? 0), 0),
    })
  }
  return rows
}

function fits(
  { ref, description }: CatalogueType,
  own: readonly CatalogueTrigger[],
  words: readonly string[],
): boolean {
  if (words.length === 0) return true
  let text = `${ref} ${description.slice(0, MAX_SEARCHED)}`
  for (const { type, parameters } of own) {
    if (text.length > 10 * MAX_SEARCHED) break
    text += ` ${parametersLine(type, parameters)}`
  }
  const lower = text.toLowerCase()
  return words.every((word) => lower.includes(word))
}

/** `2 triggers, 3 rules`; empty where there is nothing to count. */
export function usageText({ triggers, rules }: TypeRow): string {
  const counts = [
    ...(triggers > 0 ? [countText(triggers, 'trigger')] : []),
    ...(rules !== undefined && rules > 0 ? [countText(rules, 'rule')] : []),
  ]
  return counts.join(', ')
}
