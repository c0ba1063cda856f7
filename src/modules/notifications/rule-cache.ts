/** Whom rules notify: asked at the end of each execution, so that the rows are read once. */
import type { Bus } from '../../bus/index.ts'
import type { NotifyingRule } from './plan.ts'

const MAX_RULES = 10_000

/** @param read undefined: there is no such rule */
export function createRuleCache(
  bus: Pick<Bus, 'subscribe'>,
  read: (id: string) => NotifyingRule | undefined,
): (id: string) => NotifyingRule | undefined {
  const known = new Map<string, NotifyingRule | undefined>()
  bus.subscribe('rule.changed', ({ id }) => void known.delete(id))
  return (id) => {
    if (known.has(id)) return known.get(id)
    if (known.size >= MAX_RULES) known.clear()
    const rule = read(id)
    known.set(id, rule)
    return rule
  }
}
