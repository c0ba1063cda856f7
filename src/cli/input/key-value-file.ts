/** Files of key-value pairs, as `svc key load` takes them: what `svc key list -j` prints (contract 05, 5.11). */
import { parseTimestamp, microsOf, nowMicros } from '../../core/time.ts'
import { holdsMoreThan, readEntryFile } from './entry-file.ts'
import type { Json } from '../output/print.ts'
import { writeFiniteJson } from '../../lib/json/index.ts'

const MAX_VALUES = 65_536

export interface PairEntry {
  name: string
  /** What is sent. */
  body: Json
  /** The expiry time has passed. */
  isExpired: boolean
}

/**
 * Reads and checks all entries.
 *
 * @param converts whether values that are no text become their JSON
 * @throws CliFailure (2)
 */
export function readPairFile(path: string, converts: boolean): Promise<PairEntry[]> {
  return readEntryFile(path, {
    kind: 'key-value pair',
    required: ['name', 'value'],
    toEntry: (entry, report) => toEntry(entry, report, converts),
  })
}

function toEntry(entry: Json, report: (problem: string) => void, converts: boolean): PairEntry {
  const { name, scope, user, secret, encrypted, ttl, expire_timestamp: expiry } = entry
  const given = typeof name === 'string' && name !== '' ? name : undefined
  if (given === undefined) report('name is missing or not text')
  const optional = { scope: 'string', user: 'string', description: 'string', secret: 'boolean', encrypted: 'boolean' }
  for (const [attribute, type] of Object.entries(optional)) {
    const value = entry[attribute] ?? undefined
    // The server accepts nothing else, and nothing is sent if any entry is invalid.
    if (value !== undefined && typeof value !== type) {
      report(`${attribute} must be ${type === 'boolean' ? 'true or false' : 'text'}, or be omitted`)
    }
  }
  if ((ttl ?? undefined) !== undefined && (!Number.isSafeInteger(ttl) || Number(ttl) < 1)) {
    report('ttl must be a whole number of seconds, 1 or more, or be omitted')
  }
  const expiresAt = typeof expiry === 'string' ? parseTimestamp(expiry) : undefined
  if ((expiry ?? undefined) !== undefined && expiresAt === undefined) {
    report('expire_timestamp must be a time such as 2030-01-31T12:00:00Z, or be omitted')
  }
  const secondsLeft = expiresAt === undefined ? undefined : Math.ceil((microsOf(expiresAt) - nowMicros()) / 1_000_000)
  const body = {
    name,
    value: valueOf(entry, report, converts),
    scope,
    user,
    description: entry['description'],
    secret,
    encrypted,
    ttl: ttl ?? secondsLeft,
  }
  return {
    name: given ?? '',
    body: Object.fromEntries(Object.entries(body).filter(([, value]) => (value ?? undefined) !== undefined)),
    isExpired: (ttl ?? undefined) === undefined && secondsLeft !== undefined && secondsLeft < 1,
  }
}

function valueOf(entry: Json, report: (problem: string) => void, converts: boolean): unknown {
  const { value } = entry
  if (value === undefined) report('value is missing')
  else if (typeof value === 'string') return value
  else if (!converts) report('value is not text; to convert it to JSON, use -c/--convert')
  else if (holdsMoreThan(MAX_VALUES, value)) report(`value contains more than ${MAX_VALUES} values`)
  else {
    try {
      return writeFiniteJson(value)
    } catch (error) {
      report(`value ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return undefined
}
