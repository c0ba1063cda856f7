/** When to say that a session is about to end. */

const MAX_LEAD_MS = 5 * 60_000

/**
 * Some minutes before the end; a quarter of the time that was left for a session that is short.
 *
 * @param startedAt when it was known first, and
 * @param endsAt when it ends, in milliseconds since the epoch
 */
export function warnAt(startedAt: number, endsAt: number): number {
  return endsAt - Math.min(MAX_LEAD_MS, Math.max(0, endsAt - startedAt) / 4)
}
