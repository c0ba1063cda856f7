/** Which rules are shown. No markup, no state. */
import type { RuleRecord, RuleView } from '../../api/records.ts'
import { triggerLine } from '../../components/rules/trigger-line.ts'
import { compareText } from '../../text.ts'

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
    .toSorted((a, b) => compareText(a.pack, b.pack) || compareText(a.name, b.name))
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
