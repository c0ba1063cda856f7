import { ApiError, change, getTagged } from '../../api/client.ts'
import type { RuleRecord } from '../../api/records.ts'

/** Somebody may change the rule in the moment between reading and writing it. */
const MAX_ATTEMPTS = 3

/**
 * The whole rule is replaced, as the server has it now. Its secrets come masked and are sent back so: then they stay.
 *
 * @throws as `request`
 */
export async function switchRule(ref: string, enabled: boolean): Promise<RuleRecord> {
  const path = `rules/${encodeURIComponent(ref)}`
  for (let attempt = 1; ; attempt += 1) {
    const { record, tag } = await getTagged<RuleRecord>(path)
    try {
      return await change<RuleRecord>('PUT', path, { ...record, enabled }, undefined, ifMatch(tag))
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'CONTENT_CHANGED' || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

/** Only while the rule is what was read. */
export function ifMatch(tag: string | undefined): Record<string, string> | undefined {
  return tag === undefined ? undefined : { 'If-Match': tag }
}
