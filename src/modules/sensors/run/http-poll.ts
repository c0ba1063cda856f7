/** One run of a sensor that asks an HTTP server: no process, one request after another until one fails. */
import { createHash } from 'node:crypto'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { LONGEST_TIMER_MS } from '../../../core/clock.ts'
import type { Database } from '../../../db/index.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'
import { canonical, isObject } from '../../../lib/schema/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import {
  adopt,
  Budget,
  defaultLimits,
  parseJsonPath,
  plainValue,
  render,
  select,
  type JsonPathStep,
} from '../../../lib/template/index.ts'
import { HttpProblem, type HttpGet } from '../../../runners/index.ts'
import type { HttpPollDefinition, Sensor } from '../types.ts'
import type { Dispatches } from './dispatches.ts'
import type { OutputLog } from './output.ts'
import type { Run, RunEnd, RunInput, RunListener } from './process.ts'
import type { RunStore } from './store.ts'

export interface HttpPollDeps {
  database: Database
  store: RunStore
  dispatches: Dispatches
  /** Refuses private networks as http-request actions do. */
  readonly get: HttpGet
  maskSecrets: boolean
}

/** Bytes of an answer, after decompression. */
export const MAX_ANSWER_BYTES = 1024 * 1024
/** Items of an answer. */
const MAX_ANSWER_ITEMS = 2_000
/** Items that are stored at once. */
const MAX_OPEN = 64
/** Longer keys are remembered by their hash. */
const MAX_KEY_LENGTH = 200
/** Longest value of `ETag` and `Last-Modified` that is sent back. */
const MAX_VALIDATOR_LENGTH = 1024
/** Longest time that `Retry-After` may ask for. */
const MAX_RETRY_AFTER_SECONDS = 86_400
/**
 * Items that are in the answer again are remembered anew when this many dispatches are newer. With it and the limit of
 * items, an item in the answer is never one of those that are forgotten.
 */
const REMEMBER_AGAIN_AFTER = 2_000
/** Of what templates in the metadata may spend: they run on the event loop. */
const templateLimits = { ...defaultLimits, maxSteps: 10_000, maxTextLength: 65_536, maxMilliseconds: 200 }
/** As for requests to the API. */
const answerLimits = { maxDepth: 100, maxValues: 100_000, refusedKey: '__proto__' }
const pathLimits = { ...defaultLimits, maxMilliseconds: 500 }

/** Why a poll has failed, and how long the server asks to wait. */
class PollProblem extends Error {
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, retryAfterSeconds?: number) {
    super(message)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

interface Item {
  key: string
  payload: Record<string, unknown>
}

/** @param turn resolves when the sensor may start */
export function startHttpPoll(
  deps: HttpPollDeps,
  { sensor, config, unfit }: Pick<RunInput, 'sensor' | 'config' | 'unfit'>,
  output: OutputLog,
  listener: RunListener,
  turn: Promise<void>,
): Run {
  const { database, store, dispatches } = deps
  const stopping = new AbortController()
  const secrets = deps.maskSecrets ? createSecretValues(config.secrets) : undefined
  const mask = (text: string): string => secrets?.maskText(text) ?? text
  const maskMessage = (text: string): string => secrets?.maskMessage(text) ?? text
  /** Headers with which the server says whether anything has changed. */
  let validators = new Map<string, string>()

  async function poll(definition: HttpPollDefinition, request: { url: URL; headers: Map<string, string> }) {
    const { url } = request
    const where = `${url.origin}${mask(url.pathname).slice(0, 200)}`
    const limit = AbortSignal.timeout(definition.timeout * 1000)
    const answer = await deps
      .get(url, {
        maxBytes: MAX_ANSWER_BYTES,
        signal: AbortSignal.any([stopping.signal, limit]),
        allowsHttp: true,
        followsRedirects: true,
        headers: new Map([...request.headers, ...validators]),
      })
      .catch((error: unknown) => {
        if (limit.aborted) throw new PollProblem(`No complete answer from ${where} within ${definition.timeout} s.`)
        throw error instanceof HttpProblem ? new PollProblem(`${error.message}.`) : error
      })
    const { statusCode, body, headers = {} } = answer
    const header = (wanted: string): string | undefined =>
      Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1]
    if (statusCode === 304 && validators.size > 0) return
    if (statusCode < 200 || statusCode > 299) {
      throw new PollProblem(`${where} has answered with status ${statusCode}.`, secondsOf(header('retry-after')))
    }
    const items = statusCode === 204 ? [] : itemsOf(sensor, definition, body, where)
    await take(definition, items)
    // Only now: what is not stored has to come again.
    validators = new Map()
    for (const [from, to] of [
      ['etag', 'if-none-match'],
      ['last-modified', 'if-modified-since'],
    ] as const) {
      const value = header(from)
      if (value !== undefined && value.length <= MAX_VALIDATOR_LENGTH && isHeaderValue(value)) validators.set(to, value)
    }
  }

  async function take(definition: HttpPollDefinition, items: readonly Item[]): Promise<void> {
    const isFirst = !store.hasDispatches(sensor.id)
    const known = new Map<string, number>()
    for (let at = 0; at < items.length; at += 200) {
      const keys = items.slice(at, at + 200).map(({ key }) => key)
      for (const { id, seq } of store.dispatchesOf(sensor.id, keys)) known.set(id, seq)
      // oxlint-disable-next-line no-await-in-loop -- other work has its turn
      await setImmediate()
    }
    const oldest = store.newestDispatch() - REMEMBER_AGAIN_AFTER
    const steps = [...known].flatMap(([id, seq]) => (seq < oldest ? [store.rememberAgain(sensor.id, id)] : []))
    // A row without a trigger instance: the item, or the first poll itself, is known and has not been dispatched.
    const skipped = isFirst && definition.skip_first ? new Set(items.map(({ key }) => key)) : new Set<string>()
    if (isFirst) for (const key of ['', ...skipped]) steps.push(store.insertDispatch(sensor.id, key, ''))
    if (steps.length > 0) await database.write({ steps, facts: [] })
    if (skipped.size > 0) output.add('other', `svc: The first poll skips ${skipped.size} items that are there.\n`)
    const fresh = items.filter(({ key }) => !known.has(key) && !skipped.has(key))
    const wrong = new Map<string, string>()
    for (let at = 0; at < fresh.length; at += MAX_OPEN) {
      const some = fresh.slice(at, at + MAX_OPEN).map(async ({ key: id, payload }) => {
        const wanted = { id, trigger: definition.trigger, payload, trace_tag: undefined, trace_id: undefined }
        const outcome = await dispatches.store(sensor, wanted, { signal: stopping.signal, mask })
        if ('problem' in outcome) wrong.set(id, outcome.problem)
        else if (!outcome.isRepeated) listener.dispatched()
      })
      // oxlint-disable-next-line no-await-in-loop -- bounds how many wait
      await Promise.all(some)
      // oxlint-disable-next-line no-await-in-loop -- wrong items wait for nothing
      await setImmediate()
    }
    // An item that stays in the answer is dropped once.
    const problems = [...wrong].flatMap(([key, problem]) => (unfit.has(key) ? [] : [problem]))
    unfit.clear()
    for (const key of wrong.keys()) unfit.add(key)
    if (problems.length === 0) return
    const said = maskMessage(`Items were dropped: ${problems.length}. ${problems[0]}.`)
    listener.dropped(problems.length)
    listener.explained(said)
    output.add('other', `svc: ${said}\n`)
  }

  async function run(): Promise<RunEnd> {
    const { http_poll: definition, poll_interval: interval } = sensor
    if (definition === undefined || interval === undefined) throw new PollProblem('The sensor has no "http_poll".')
    const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
    await Promise.race([turn, stopped])
    const request = requestOf(sensor.pack, definition, config.values)
    for (;;) {
      stopping.signal.throwIfAborted()
      // oxlint-disable-next-line no-await-in-loop -- one poll after another
      await poll(definition, request)
      listener.ready()
      // oxlint-disable-next-line no-await-in-loop -- the time between two polls
      await setTimeout(Math.min(interval * 1000, LONGEST_TIMER_MS), undefined, { signal: stopping.signal, ref: false })
    }
  }

  const ended = run().catch((error: unknown): RunEnd => {
    if (stopping.signal.aborted) return { problem: 'It was stopped.' }
    const problem = maskMessage(error instanceof Error ? error.message : String(error))
    const after = error instanceof PollProblem ? error.retryAfterSeconds : undefined
    return { problem, ...(after === undefined ? {} : { retryAfterSeconds: after }) }
  })
  return {
    ended,
    // The trigger is the one of the metadata.
    tell: () => undefined,
    async stop() {
      stopping.abort()
      await ended
      await output.flush()
    },
  }
}

/** The request with the values of the configuration. @throws PollProblem */
function requestOf(
  pack: string,
  definition: HttpPollDefinition,
  values: Record<string, unknown>,
): { url: URL; headers: Map<string, string> } {
  const budget = new Budget(templateLimits)
  // A key of the datastore that does not exist is null, which a template would print as `None`.
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
  const filled = (name: string, text: string): string => {
    try {
      return String(render(text, { config_context: given }, { budget, isStrict: true, isText: true }))
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      throw new PollProblem(`Could not render ${name}: ${why}. Check the configuration: svc pack config ${pack}.`)
    }
  }
  const text = filled('http_poll.url', definition.url)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new PollProblem('http_poll.url is not an http or https URL.')
  const headers = new Map([['accept', 'application/json']])
  if (url.username !== '' || url.password !== '') {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
    url.username = ''
    url.password = ''
  }
  url.hash = ''
  for (const [given, value] of Object.entries(definition.headers)) {
    const name = given.toLowerCase()
    const content = filled(`http_poll.headers.${given}`, value)
    if (!isHeaderName(name) || !isHeaderValue(content))
      throw new PollProblem(`http_poll.headers.${given} is no valid header.`)
    headers.set(name, content)
  }
  return { url, headers }
}

/** @throws PollProblem */
function itemsOf(sensor: Sensor, definition: HttpPollDefinition, body: Buffer, where: string): Item[] {
  let data: unknown
  try {
    data = readJson(body.toString('utf8'), answerLimits)
  } catch (error) {
    throw new PollProblem(`The answer of ${where} is no JSON: ${error instanceof Error ? error.message : ''}`)
  }
  try {
    const budget = new Budget(pathLimits, 'http_poll')
    const found = definition.items === undefined ? [data] : valuesAt(data, parseJsonPath(definition.items), budget)
    // One list stands for its items.
    const values: unknown[] = found.length === 1 && Array.isArray(found[0]) ? found[0] : found
    if (values.length > MAX_ANSWER_ITEMS) {
      throw new PollProblem(
        `The answer of ${where} has ${values.length} items, more than ${MAX_ANSWER_ITEMS}. Ask for fewer in http_poll.url.`,
      )
    }
    const path = definition.key === undefined ? undefined : parseJsonPath(definition.key)
    return values.map((value) => {
      const payload = isObject(value) ? value : { value }
      const [given = value] = path === undefined ? [] : valuesAt(value, path, budget)
      return { key: keyOf(path === undefined ? value : given), payload }
    })
  } catch (error) {
    if (error instanceof PollProblem) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new PollProblem(`Could not find the items of ${sensor.ref} in the answer of ${where}: ${why}.`)
  }
}

function valuesAt(data: unknown, path: readonly JsonPathStep[], budget: Budget): unknown[] {
  return select([adopt(data)], path, budget).map((value) => plainValue(value, budget))
}

/** What is remembered of an item: its key, or the hash of what is no short text or number. */
function keyOf(value: unknown): string {
  const text = typeof value === 'string' ? value : isObject(value) || Array.isArray(value) ? '' : writeJson(value)
  if (text !== '' && text.length <= MAX_KEY_LENGTH) return text
  return `sha256:${createHash('sha256').update(canonical(value)).digest('hex')}`
}

/** Of the header `Retry-After`: seconds or a date. */
function secondsOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(Math.ceil(seconds), MAX_RETRY_AFTER_SECONDS) : undefined
}

function isHeaderValue(value: string): boolean {
  try {
    validateHeaderValue('x', value)
    return true
  } catch {
    return false
  }
}

function isHeaderName(name: string): boolean {
  try {
    validateHeaderName(name)
    return true
  } catch {
    return false
  }
}
