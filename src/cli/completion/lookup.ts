/** Looks up completions on the server: names of resources and parameters of actions, with the available credentials. */
import { mustBeGiven, parametersOf, type ActionParameter } from '../action-parameters.ts'
import { createClient, segment, type Client, type Query } from '../connection/client.ts'
import { listIn, recordIn, textOrEmpty } from '../connection/responses.ts'
import { createTimeLimit } from '../connection/time-limit.ts'
import type { NameSource } from '../names.ts'
import type { ConnectionFlags } from '../connection/setting-rows.ts'
import { attributeOf } from '../output/print.ts'
import { loadSettings, type Settings } from '../connection/settings.ts'
import type { Candidate, Completion, Flags, Lookup } from './engine.ts'
import { writeJson } from '../../lib/json/index.ts'

const MAX_NAMES = 1000
/** No server refuses a page of this size. */
const PAGE_SIZE = 100
const MAX_BYTES = 8 * 1024 * 1024

const nothing: Completion = { candidates: [], files: false, isPart: false }

export interface OpenLookup extends Lookup {
  close(): void
}

/** A lookup that fails silently. @param flags options on the line */
export async function openLookup(flags: Flags, env: NodeJS.ProcessEnv): Promise<OpenLookup> {
  const given: ConnectionFlags = { ...flags, debug: false }
  const { settings } = loadSettings(given, env)
  const token = settings.credential === undefined ? await storedToken(settings) : undefined
  const client = createClient({
    settings,
    login: token,
    interrupted: createTimeLimit(),
    warn: () => undefined,
    debug: () => undefined,
    env,
  })
  return {
    names: (names, word, options) => orElse([], () => findNames(client, names, word, options)),
    parameters: (of, id, word, words) => orElse(nothing, () => findParameters(client, of, id, word, words)),
    close: () => client.close(),
  }
}

/** Uses the stored token of a login. It never logs in with a password, because it would have to store the new token. */
async function storedToken({ account, cachesToken, folder, authUrl }: Settings) {
  if (account === undefined || !cachesToken) return undefined
  const { readCachedToken } = await import('../connection/token-cache.ts')
  const value = readCachedToken({ folder, user: account.username, authUrl }, () => undefined)
  if (value === undefined) return undefined
  const credential = { header: 'X-Auth-Token', value } as const
  return { find: () => Promise.resolve(credential), renew: () => Promise.resolve(undefined), advice: '' }
}

async function orElse<T>(otherwise: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch {
    return otherwise
  }
}

async function findNames(client: Client, names: NameSource, word: string, flags: Flags): Promise<Candidate[]> {
  const { name, about = [], query } = names
  const queries = [query?.(word, flags) ?? {}].flat()
  const records = (await Promise.all(queries.map((each) => askPages(client, names, each)))).flat()
  return records.map((record) => ({
    text: textOrEmpty(attributeOf(record, name)),
    about: about
      .map((attribute) => textOrEmpty(attributeOf(record, attribute)))
      .filter((text) => text !== '')
      .join(', '),
  }))
}

async function askPages(
  client: Client,
  { path, name, about = [], limit: maxNames = MAX_NAMES }: NameSource,
  query: Query,
) {
  // A server that cannot leave out attributes of such a list sends it whole.
  const common = { ...query, include_attributes: [name, ...about].join(',') }
  const page = (offset: number) => askList(client, path, { ...common, limit: Math.min(PAGE_SIZE, maxNames), offset })
  const first = await page(0)
  const total = Math.min(maxNames, first.total)
  const offsets: number[] = []
  for (let offset = PAGE_SIZE; offset < total; offset += PAGE_SIZE) offsets.push(offset)
  const others = await Promise.all(offsets.map(page))
  return [first, ...others].flatMap(({ records }) => records).slice(0, maxNames)
}

async function askList(client: Client, path: string, query: Query) {
  const answer = await client.call('GET', path, { query, maxBytes: MAX_BYTES })
  const records = listIn(answer)
  return { records, total: Number(answer.headers['x-total-count'] ?? records.length) }
}

async function findParameters(
  client: Client,
  of: 'action' | 'execution',
  id: string,
  word: string,
  words: readonly string[],
): Promise<Completion> {
  const ref = of === 'action' ? id : await actionOf(client, id)
  const answer = await client.call('GET', `/actions/views/parameters/${segment(ref)}`, { maxBytes: MAX_BYTES })
  // Parameters with other names cannot be written as a word.
  const parameters = parametersOf(recordIn(answer)).filter(({ name }) => /^\w+$/.test(name))
  const [, marker = '', name = '', equals] = /^(@?)([^=]*)(=?)/.exec(word) ?? []
  if (equals === '=') {
    if (marker === '@') return { ...nothing, files: true }
    const schema = parameters.find((each) => each.name === name)?.schema ?? {}
    const values = valuesOf(schema).map((value) => ({ text: `${name}=${value}`, about: '' }))
    return { ...nothing, candidates: values.filter(({ text }) => text.startsWith(word)) }
  }
  const candidates = parameters
    .filter(({ name: each, schema }) => isGatherable(schema) || !words.some((given) => nameIn(given) === each))
    .map((parameter) => ({ text: `${marker}${parameter.name}=`, about: describe(parameter) }))
    .filter(({ text }) => text.startsWith(word))
  // Any other word begins the command that the action runs.
  return candidates.length === 0 && word !== ''
    ? { ...nothing, files: true }
    : { candidates, files: false, isPart: true }
}

async function actionOf(client: Client, id: string): Promise<string> {
  const query = { include_attributes: 'action.ref' }
  const answer = await client.call('GET', `/executions/${segment(id)}`, { query, maxBytes: MAX_BYTES })
  return textOrEmpty(attributeOf(recordIn(answer), 'action.ref'))
}

function nameIn(assignment: string): string | undefined {
  return /^@?(\w+)=/.exec(assignment)?.[1]
}

/** Whether a parameter may be given again: lists and objects grow with each assignment. */
function isGatherable({ type }: ActionParameter['schema']): boolean {
  return type === 'array' || type === 'object'
}

function valuesOf({ type, enum: values }: ActionParameter['schema']): string[] {
  if (Array.isArray(values)) return values.map((value) => (typeof value === 'string' ? value : writeJson(value)))
  return type === 'boolean' ? ['true', 'false'] : []
}

function describe(parameter: ActionParameter): string {
  return [textOrEmpty(parameter.schema['description']), mustBeGiven(parameter) ? '(required)' : '']
    .filter((text) => text !== '')
    .join(' ')
}
