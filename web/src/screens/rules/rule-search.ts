/** Which rules are shown, and what each does in one line. No markup, no state. */
import type { RuleRecord, RuleView } from '../../api/records.ts'

/** What the list knows of a rule. */
export type ListedRule = Pick<
  RuleRecord,
  'id' | 'ref' | 'pack' | 'name' | 'description' | 'enabled' | 'type' | 'trigger'
> & { action: Pick<RuleRecord['action'], 'ref'> } & Pick<RuleView, 'last_enforcement'>

export const listedAttributes = 'id,ref,pack,name,description,enabled,type,trigger,action.ref,last_enforcement'

export interface RuleFilter {
  /** Words; each has to be somewhere in the rule. */
  search: string
  /** `true`, `false`, or empty: both. */
  enabled: string
  /** Reference of the trigger type, or empty. */
  trigger: string
  /** Reference of the action, or empty. */
  action: string
}

export type RuleRow = { kind: 'pack'; pack: string; count: number } | { kind: 'rule'; rule: ListedRule }

const MAX_SEARCHED = 2000

/** In the order of packs and names, below the names of their packs. */
export function ruleRows(rules: readonly ListedRule[], filter: RuleFilter): RuleRow[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean)
  const found = rules
    .filter(({ enabled }) => filter.enabled === '' || String(enabled) === filter.enabled)
    .filter(({ trigger }) => filter.trigger === '' || trigger.type === filter.trigger)
    .filter(({ action }) => filter.action === '' || action.ref === filter.action)
    .filter((rule) => words.every((word) => textOf(rule).includes(word)))
    .toSorted((a, b) => compare(a.pack, b.pack) || compare(a.name, b.name))
  const rows: RuleRow[] = []
  let heading: { kind: 'pack'; pack: string; count: number } | undefined
  for (const rule of found) {
    if (heading?.pack !== rule.pack) {
      heading = { kind: 'pack', pack: rule.pack, count: 0 }
      rows.push(heading)
    }
    heading.count += 1
    rows.push({ kind: 'rule', rule })
  }
  return rows
}

function textOf(rule: ListedRule): string {
  const { ref, description, trigger, action } = rule
  return `${ref} ${description.slice(0, MAX_SEARCHED)} ${triggerLine(trigger)} ${action.ref}`.toLowerCase()
}

/** Of the parameters of a trigger as many as one line tells. */
const MAX_LINE = 80

/** `core.svc.webhook orders`, `core.svc.IntervalTimer every 5 minutes` */
export function triggerLine({ type, parameters }: Pick<RuleRecord['trigger'], 'type' | 'parameters'>): string {
  const said = parametersLine(type, parameters)
  return said === '' ? type : `${type} ${said}`
}

/** The parameters of a trigger in a few words; empty: it has none. */
export function parametersLine(type: string, parameters: Readonly<Record<string, unknown>>): string {
  if (type === 'core.svc.webhook' && typeof parameters['url'] === 'string') return cut(parameters['url'])
  if (type === 'core.svc.IntervalTimer') {
    return cut(`every ${shown(parameters['delta'])} ${shown(parameters['unit'])}`)
  }
  if (type === 'core.svc.DateTimer') return cut(`on ${shown(parameters['date'])}`)
  const pairs: string[] = []
  let length = 0
  for (const [name, value] of Object.entries(parameters)) {
    const pair = `${name}=${shown(value)}`
    pairs.push(pair)
    length += pair.length
    if (length > MAX_LINE) break
  }
  return cut(pairs.join(' '))
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_LINE) : cut(JSON.stringify(value) ?? '')
}

function cut(text: string): string {
  return text.length > MAX_LINE ? `${text.slice(0, MAX_LINE).toWellFormed()}…` : text
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
