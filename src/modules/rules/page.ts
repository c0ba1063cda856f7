/** The rules of a list that its caller can view. */
import { ruleResource } from '../../core/permissions.ts'
import { slicePage, type Found, type Page, type Rights } from '../../http/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { inOrder } from './in-order.ts'
import { parseRuleFilter, type RuleQuery } from './list.ts'
import { resourceOf } from './service.ts'
import type { RuleStore } from './store.ts'
import type { Rule } from './types.ts'

export interface RulePage {
  /** See `ruleFilters`. */
  query: RuleQuery
  rights: Rights
  page: Page
  /** Only these rules, by their ids. */
  among?: readonly string[]
  /** Called with the rules of each read. */
  readonly onRead?: (rules: readonly Rule[]) => void
}

/** By pack and name. */
export type FindRules = (wanted: RulePage) => Promise<Found<Rule>>

export function createFindRules(deps: { store: RuleStore; triggers: Pick<Triggers, 'find'> }): FindRules {
  const { store, triggers } = deps
  return async ({ query, rights, page, among, onRead }) => {
    const asked = parseRuleFilter(query, (ref) => {
      const trigger = triggers.find(ref)
      return trigger?.ref === ref ? trigger.id : undefined
    })
    const both = asked.ids === undefined ? among : among?.filter((id) => asked.ids?.includes(id) === true)
    const filter = among === undefined ? asked : { ...asked, ids: both }
    let ids: string[]
    let total: number
    if (rights.may('rule_view')) {
      total = store.count(filter)
      ids = await store.page(filter, page)
    } else {
      const visible = (await store.keys(filter)).filter((rule) => rights.may('rule_view', ruleResource(rule)))
      total = visible.length
      ids = slicePage(visible, page).map(({ id }) => id)
    }
    function find(some: readonly string[]): Rule[] {
      const rules = store.findByIds(some)
      onRead?.(rules)
      return rules
    }
    function* records(): Generator<Rule> {
      for (const rule of inOrder(ids, find)) {
        if (rights.may('rule_view', resourceOf(rule))) yield rule
      }
    }
    return { records: records(), total }
  }
}
