/** Files of key-value pairs, as `svc key load` takes them: what `svc key list -j` prints (contract 05, 5.11). */
import { refuseInfinite } from '../../lib/text/index.ts'
import { parseTimestamp, microsOf, nowMicros } from '../../core/time.ts'
import { holdsMoreThan, readEntryFile } from './entry-file.ts'
import type { Json } from '../output/print.ts'

const MAX_VALUES = 65_536

export interface PairEntry {
  name: string
  /** What is sent. */
  body: Json
  /** The time until which it was to be kept has passed. */
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
  if (given === undefined) report('name is missing, or no text')
  const optional = { scope: 'string', user: 'string', description: 'string', secret: 'boolean', encrypted: 'boolean' }
  for (const [attribute, type] of Object.entries(optional)) {
    const value = entry[attribute] ?? undefined
    // The server takes nothing else, and nothing shall be sent when it refuses a part of the file.
    if (value !== undefined && typeof value !== type) {
      report(`${attribute} must be ${type === 'boolean' ? 'true or false' : 'text'}, or left out`)
    }
  }
  if ((ttl ?? undefined) !== undefined && (!Number.isSafeInteger(ttl) || Number(ttl) < 1)) {
    report('ttl must be a whole number of seconds from 1 on, or left out')
  }
  const expiresAt = typeof expiry === 'string' ? parseTimestamp(expiry) : undefined
  if ((expiry ?? undefined) !== undefined && expiresAt === undefined) {
    report('expire_timestamp must be a time such as 2030-01-31T12:00:00Z, or left out')
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
  else if (!converts) report('value is no text; -c/--convert makes JSON of it')
  else if (holdsMoreThan(MAX_VALUES, value)) report(`value holds more than ${MAX_VALUES} values`)
  else {
    try {
      return JSON.stringify(value, refuseInfinite)
    } catch (error) {
      report(`value ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return undefined
}
