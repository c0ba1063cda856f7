/** What notifications implement for modules beside them; `app.ts` connects them. */

/** A run of a rule that did not succeed in time. */
export interface MissedRun {
  rule: { id: string; ref: string }
  /** Wire timestamp: when it was due. */
  due: string
  /** As the rule says it. */
  expect: unknown
  /** Wire timestamp of its last success; null: never. */
  lastSuccess: string | null
  traceId?: string
}
