/** Looks through the stored rules after the start: an older version has accepted criteria that this one rejects. */
import { isAppError } from '../../core/errors.ts'
import type { Log } from '../../lib/log/index.ts'
import { checkCriteria } from './criteria/criteria.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import { readRule, type RuleStore } from './store.ts'

/** Rules read together. */
const PAGE = 50
/** Rules that are named in the log. */
const MAX_NAMED = 20

/** Warns about enabled rules that never or always fire. Yields to the event loop. @param isActive false: stops */
export async function reviewRules(deps: {
  store: Pick<RuleStore, 'enabledAfter'>
  log: Log
  readonly isActive: () => boolean
}): Promise<void> {
  const { store, log, isActive } = deps
  const pause = createPause()
  let found = 0
  let after = ''
  while (isActive()) {
    const page = store.enabledAfter(after, PAGE)
    for (const { id, record } of page) {
      after = id
      const { ref, criteria } = readRule(record)
      const problem = problemOf(criteria)
      if (problem !== undefined) {
        found += 1
        if (found <= MAX_NAMED) {
          const message = `The criteria of rule "${ref}" need a change, else it never or always fires: ${problem}`
          log.warning('rules.criteria', message, { rule: ref })
        }
      }
      await pause()
      if (!isActive()) return
    }
    if (page.length < PAGE) break
  }
  if (found > MAX_NAMED) {
    log.warning('rules.criteria', `The criteria of ${found - MAX_NAMED} more rules need a change`, { rules: found })
  }
}

function problemOf(criteria: Readonly<Record<string, unknown>>): string | undefined {
  try {
    checkCriteria(criteria)
    return undefined
  } catch (error) {
    if (!isAppError(error)) throw error
    return error.message
  }
}
