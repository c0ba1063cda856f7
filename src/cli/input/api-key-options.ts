/** Parses the command line options for scopes, expiry and metadata of an API key. */
import { InvalidArgumentError } from 'commander'
import { formatMicros, parseTimestamp } from '../../core/time.ts'
import { readJson } from '../../lib/json/index.ts'

/** As the server takes it (`scopes` of an API key). */
export interface ApiKeyScopeInput {
  permission_types: string[]
  resource_uid?: string
}

/** `permission[,permission][@resource_uid]`. @returns the scopes before, and this one @throws InvalidArgumentError */
export function parseScope(text: string, before: readonly ApiKeyScopeInput[] = []): ApiKeyScopeInput[] {
  const at = text.indexOf('@')
  const names = (at === -1 ? text : text.slice(0, at)).split(',').map((name) => name.trim())
  const wrong = names.find((name) => !/^[a-z][a-z_]*$/.test(name))
  if (wrong !== undefined) {
    throw new InvalidArgumentError(
      `"${wrong}" is not a permission type. Use a form such as webhook_send@webhook:sample.`,
    )
  }
  if (at === -1) return [...before, { permission_types: names }]
  const uid = text.slice(at + 1).trim()
  if (!/^[a-z_]+:./.test(uid)) {
    throw new InvalidArgumentError(
      `"${uid}" is not the uid of a resource. Use a form such as action_execute@action:core:local.`,
    )
  }
  return [...before, { permission_types: names, resource_uid: uid }]
}

/** The scopes of a record as `--scope` takes them, one a line; without scopes: `all`. */
export function scopeText(scopes: unknown): string {
  if (!Array.isArray(scopes)) return 'all'
  return (scopes as ApiKeyScopeInput[])
    .map(({ permission_types: types, resource_uid: uid }) => `${types.join(',')}${uid === undefined ? '' : `@${uid}`}`)
    .join('\n')
}

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/**
 * A time in UTC, or how long from now such as `30d`, as wire text.
 *
 * @param nowMs milliseconds since the epoch
 * @throws InvalidArgumentError
 */
export function parseExpiry(text: string, nowMs: number = Date.now()): string {
  const [, count, unit = ''] = /^([1-9]\d{0,8})([smhdw])$/.exec(text) ?? []
  const seconds = secondsOf[unit]
  if (count !== undefined && seconds !== undefined) {
    const endMs = nowMs + Number(count) * seconds * 1000
    // Times of the wire have years of four digits.
    if (endMs >= Date.UTC(9999, 0)) throw new InvalidArgumentError('It must be before the year 9999.')
    return formatMicros(Math.floor(endMs) * 1000)
  }
  const time = parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)
  if (time === undefined) {
    throw new InvalidArgumentError(
      'It must be a time such as 2030-01-31T12:00:00Z, or a duration such as 45m, 12h, 30d, 8w.',
    )
  }
  return time
}

/** @throws InvalidArgumentError unless it is a JSON object */
export function parseMetadata(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = readJson(text)
  } catch {
    value = undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError(`It must be a JSON object such as '{"used_by": "deploy"}'.`)
  }
  return { ...value }
}
