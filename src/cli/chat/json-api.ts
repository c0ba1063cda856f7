/** Requests to a chat system that speaks JSON. */
import { setTimeout as delay } from 'node:timers/promises'
import { readJson, writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { ChatFailure } from './adapter.ts'

/** JSON; an empty object for what is none. */
export type JsonAnswer = Record<string, unknown> | unknown[]

export interface JsonCall {
  /** Begins the sentence of a failure: `The homeserver`. */
  name: string
  url: string
  method: string
  headers: Record<string, string>
  body: unknown
  /** Milliseconds that an answer 429 asks to wait, if it says so in its own way. */
  readonly waitMs: (answer: Record<string, unknown>) => number | undefined
  signal: AbortSignal
}

const REQUEST_MS = 60_000
const MIN_WAIT_MS = 500
const MAX_WAIT_MS = 60_000
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Attempts while the chat system asks to wait. */
const MAX_ATTEMPTS = 10

/** @throws ChatFailure */
export async function callJson({ name, url, method, headers, body, waitMs, signal }: JsonCall): Promise<JsonAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    let response: Response
    let text: string
    try {
      response = await fetch(url, {
        method,
        headers: { ...headers, 'Content-Type': 'application/json' },
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
        ...(body === undefined ? {} : { body: writeJson(body) }),
      })
      text = await readBounded(response)
    } catch (error) {
      if (signal.aborted) throw error
      throw new ChatFailure(`${name} cannot be reached: ${error instanceof Error ? error.message : 'unknown'}`, false)
    }
    const answer = parse(text)
    if (response.ok) return answer
    const said = Array.isArray(answer) ? {} : answer
    if (response.status === 429 && attempt < MAX_ATTEMPTS) {
      const wait = waitMs(said) ?? Number(response.headers.get('Retry-After')) * 1000
      await delay(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, wait || 0)), undefined, { signal })
      continue
    }
    const reason = said['error'] ?? said['message']
    throw new ChatFailure(
      `${name} answers ${response.status}: ${typeof reason === 'string' ? reason.slice(0, 300) : response.statusText}`,
      response.status >= 400 && response.status < 500 && response.status !== 429,
    )
  }
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): JsonAnswer {
  try {
    const value = readJson(text)
    return isObject(value) || Array.isArray(value) ? value : {}
  } catch {
    return {}
  }
}
