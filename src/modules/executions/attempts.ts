/** How executions stand among the attempts of what is tried again. */
import { isObject } from '../../lib/schema/index.ts'
import type { Execution } from './types.ts'

/** 1 for the first. */
export function attemptOf({ liveaction, context }: Pick<Execution, 'liveaction' | 'context'>): number {
  if (liveaction.attempt !== undefined) return liveaction.attempt
  // Retries of policies that earlier versions have made. Only the server writes this part of the context.
  const { policies } = context
  const retry = isObject(policies) ? policies['retry'] : undefined
  const count = isObject(retry) ? retry['retry_count'] : undefined
  return typeof count === 'number' && count > 0 ? count + 1 : 1
}
