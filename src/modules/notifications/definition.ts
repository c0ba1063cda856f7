/** What a file of a destination may say. Pure functions. */
import { readDuration } from '../../lib/calendar/index.ts'
import { compileSchema, isObject, type JsonSchema, type SchemaProblem } from '../../lib/schema/index.ts'
import {
  conditionsOf,
  destinationName,
  onSchema,
  withOn,
  type Condition,
  type ConditionName,
} from '../../core/notify.ts'
import { channels, findChannel, readAppriseUrl, UrlProblem, type Channel, type Settings } from './channels/index.ts'
import { rateLimitSchema } from './types.ts'

export interface Destination {
  /** As rules name it; of a pack `<pack>.<name>`. */
  readonly name: string
  readonly description: string
  readonly channel: Channel
  readonly pack?: string
  /** Relative to the base path, or to the pack. */
  readonly file: string
  /** Undefined: the default of the configuration. */
  readonly on: readonly ConditionName[] | undefined
  readonly message: string | undefined
  readonly rateLimit: { count: number; perSeconds: number } | undefined
  /** As written, with `url` in the place of what it stands for. */
  readonly settings: Settings
  readonly warnings: readonly string[]
}

const common: Record<string, JsonSchema> = {
  name: destinationName,
  description: { type: ['string', 'null'], maxLength: 4096 },
  channel: { type: 'string' },
  enabled: { type: 'boolean' },
  on: onSchema,
  message: { type: 'string', minLength: 1, maxLength: 4096 },
  rate_limit: rateLimitSchema,
  url: { type: 'string', minLength: 1, maxLength: 4096 },
}

const anyTemplate = /\{\{|\{%/

export const isTemplated = (value: unknown): boolean => anyTemplate.test(typeof value === 'string' ? value : '')

/** The schema of each channel, for files; compiled once. */
const schemas = new Map<Channel, JsonSchema>(
  channels.map((channel) => [
    channel,
    {
      type: 'object',
      additionalProperties: false,
      required: ['name'],
      properties: { ...common, ...mapValues(channel.settings, orTemplate) },
    },
  ]),
)

function mapValues(from: Readonly<Record<string, JsonSchema>>, by: (schema: JsonSchema) => JsonSchema) {
  return Object.fromEntries(Object.entries(from).map(([name, schema]) => [name, by(schema)]))
}

/** A template gives the value only when a message is sent. */
function orTemplate(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: 'string', pattern: anyTemplate.source, maxLength: 4096 }] }
}

/** Settings without templates, as a channel gets them. */
const settingsSchemas = new Map<Channel, JsonSchema>(
  channels.map((channel) => [
    channel,
    { type: 'object', required: [...channel.required], properties: channel.settings, additionalProperties: false },
  ]),
)

/**
 * Reads a definition.
 *
 * @param given what its file says
 * @returns undefined: it is disabled
 */
export function readDestination(
  given: unknown,
  file: string,
  pack: string | undefined,
): { destination: Destination | undefined } | { problems: SchemaProblem[] } {
  const definition = withOn(given)
  if (!isObject(definition))
    return { problems: [{ path: [], message: 'an object with "name" and "channel" is needed' }] }
  const found = channelOf(definition)
  if ('message' in found) return { problems: [found] }
  const { channel } = found
  const problem = compileSchema(schemas.get(channel) ?? {}).find(definition)
  if (problem !== undefined) return { problems: [problem] }
  const own = Object.fromEntries(Object.entries(definition).filter(([name]) => name in channel.settings))
  const { url } = definition
  const settings: Settings = url === undefined ? own : { ...own, url }
  const wrong = problemOfSettings(channel, settings) ?? problemOfRate(definition['rate_limit'])
  if (wrong !== undefined) return { problems: [wrong] }
  if (definition['enabled'] === false) return { destination: undefined }
  const { name, on, message, description } = definition
  return {
    destination: {
      name: pack === undefined ? String(name) : `${pack}.${String(name)}`,
      description: typeof description === 'string' ? description : '',
      channel,
      ...(pack === undefined ? {} : { pack }),
      file,
      on: on === undefined ? undefined : ([on].flat() as ConditionName[]), // has passed its schema
      message: typeof message === 'string' ? message : undefined,
      rateLimit: rateLimitOf(definition['rate_limit']),
      settings,
      warnings: literalSecrets(channel, settings).map(
        (setting) =>
          `"${setting}" is a secret that stands in the file; keep it in the datastore: {{ svckv.system.NAME | decrypt_kv }}`,
      ),
    },
  }
}

function channelOf({ channel: kind, url }: Record<string, unknown>): { channel: Channel } | SchemaProblem {
  const kinds = channels.map((channel) => channel.kind).join(', ')
  if (kind !== undefined) {
    const named = typeof kind === 'string' ? kind : ''
    const channel = findChannel(named)
    return channel === undefined
      ? { path: ['channel'], message: `there is no channel "${named.slice(0, 100)}"; use one of ${kinds}` }
      : { channel }
  }
  if (typeof url !== 'string') return { path: ['channel'], message: `"channel" is needed: one of ${kinds}` }
  const scheme = (/^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1] ?? '').toLowerCase()
  const channel = channels.find(({ schemes }) => schemes.includes(scheme))
  if (channel !== undefined) return { channel }
  const known = channels.flatMap(({ schemes }) => schemes.map((each) => `${each}://`)).join(', ')
  return {
    path: ['url'],
    message: isTemplated(url)
      ? '"channel" is needed, because the whole URL is a template'
      : `"${scheme}://" is the URL of no channel; svc knows ${known}. For others, use the channel "webhook"`,
  }
}

/** Undefined: they can be used, as far as can be said before templates are rendered. */
function problemOfSettings(channel: Channel, settings: Settings): SchemaProblem | undefined {
  const { url, ...own } = settings
  if (isTemplated(url)) return undefined
  try {
    const whole = { ...fromUrl(channel, url), ...own }
    const literal = Object.fromEntries(Object.entries(whole).filter(([, value]) => !isTemplated(value)))
    const missing = channel.required.find((name) => !(name in whole))
    if (missing !== undefined)
      return { path: [missing], message: `"${missing}" is needed by the channel ${channel.kind}` }
    const needed = { ...settingsSchemas.get(channel), required: [] }
    return compileSchema(needed).find(withoutTemplates(literal))
  } catch (error) {
    if (error instanceof UrlProblem) return { path: ['url'], message: `the URL ${error.message}` }
    throw error
  }
}

function withoutTemplates(settings: Settings): Settings {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      Array.isArray(value) && value.some(isTemplated) ? value.map((item) => (isTemplated(item) ? 'x' : item)) : value,
    ]),
  )
}

function fromUrl(channel: Channel, url: unknown): Settings {
  if (typeof url !== 'string') return {}
  const parsed = readAppriseUrl(url)
  if (!channel.schemes.includes(parsed.scheme)) {
    throw new UrlProblem(`begins with "${parsed.scheme}://", which is not of the channel ${channel.kind}`)
  }
  return channel.fromUrl(parsed)
}

/**
 * What a channel gets.
 *
 * @param rendered without templates
 * @returns the problem says which setting is wrong, without its value
 */
export function finishSettings(channel: Channel, rendered: Settings): { settings: Settings } | { problem: string } {
  const { url, ...own } = rendered
  try {
    const settings = { ...fromUrl(channel, url), ...own }
    const problem = compileSchema(settingsSchemas.get(channel) ?? {}).find(settings)
    return problem === undefined
      ? { settings }
      : { problem: `the setting "${problem.path.join('.') || 'url'}" cannot be used once its template is rendered` }
  } catch (error) {
    if (error instanceof UrlProblem) return { problem: `the URL ${error.message}` }
    throw error
  }
}

function literalSecrets({ secrets }: Channel, settings: Settings): string[] {
  const isLiteral = (value: unknown): boolean =>
    typeof value === 'string'
      ? !isTemplated(value)
      : typeof value === 'object' && value !== null && Object.values(value).some(isLiteral)
  return [...secrets, 'url'].filter((name) => isLiteral(settings[name]))
}

function rateOf(given: unknown): { count: number; per: ReturnType<typeof readDuration> } | undefined {
  if (!isObject(given)) return undefined
  return { count: Number(given['count']), per: readDuration(given['per'] as string | number) }
}

function problemOfRate(given: unknown): SchemaProblem | undefined {
  const per = rateOf(given)?.per
  if (per === undefined || ('seconds' in per && per.seconds > 0)) return undefined
  return { path: ['rate_limit', 'per'], message: 'problem' in per ? per.problem : 'more than 0 seconds are needed' }
}

function rateLimitOf(given: unknown): Destination['rateLimit'] {
  const rate = rateOf(given)
  return rate !== undefined && 'seconds' in rate.per ? { count: rate.count, perSeconds: rate.per.seconds } : undefined
}

/** The conditions of which a destination hears, unless a rule says it. */
export const conditionsOfDestination = (
  { on }: Pick<Destination, 'on'>,
  byDefault: readonly ConditionName[],
): ReadonlySet<Condition> => conditionsOf(on ?? byDefault)

/** Whether a text is one template that reads the datastore, and nothing else. */
export const isSingleTemplate = (value: unknown): boolean =>
  typeof value === 'string' && /^\s*\{\{\s*svckv\.[\w.]+\s*(\|\s*decrypt_kv\s*)?\}\}\s*$/.test(value)
