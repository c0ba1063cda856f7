/**
 * Masks secret values anywhere in text or data (contract 00, 0.15), for example in the output of a command that prints
 * its password.
 *
 * Finds a value as it is and as programs encode, escape and quote it (`encodings.ts`), and each longer line of a value
 * with several lines. Ignores values shorter than `MIN_LENGTH`: masking every "1" would leave nothing to read.
 */
import { setImmediate } from 'node:timers/promises'
import { MASK } from '../schema/index.ts'
import { Everything, Filter, type CutFilter } from './filter.ts'
import { createSearch, MAX_LENGTH_TOGETHER, MAX_VALUES, MIN_LENGTH } from './search.ts'
import { entriesOf, JsonNumber, objectOf, toNumeric } from '../json/index.ts'

export interface SecretValues {
  /** Whether the text contains a secret. */
  isIn(text: string): boolean
  /** Masks a short text, such as a message. */
  maskText(text: string): string
  /** Masks a message that repeats values cut before a `…`: there also what can be the start of a secret. */
  maskMessage(message: string): string
  /** A copy with masked texts and keys; the value itself if it contains no secret. */
  maskValue(value: unknown): unknown
  /**
   * Like `maskValue`, but yields to the event loop, because a result can be 20 MB.
   *
   * @param isCut whether the text of this key was cut: then a possible start of a secret at its end is masked too
   */
  maskLater(
    value: unknown,
    isCut?: (key: string, owner: Readonly<Record<string, unknown>>) => boolean,
  ): Promise<unknown>
  /** The error, or a masked copy if it contains a secret. */
  maskError<E>(error: E): E
  /** Masks a text that arrives in chunks. */
  stream(): CutFilter
}

/** Levels of lists and objects. Deeper values are masked completely, because reading them could overflow the stack. */
const MAX_DEPTH = 500
/** What messages write behind a value that they cut. */
const CUT = '…'
/** UTF-16 units masked before yielding to the event loop. */
const SLICE_LENGTH = 64 * 1024
const SLICE_MS = 5

/**
 * Undefined: no secrets, the usual case, which costs nothing.
 *
 * @param values all texts and numbers in them, at any depth, are secrets; property names are not
 */
export function createSecretValues(values: Iterable<unknown>): SecretValues | undefined {
  const texts = new Set<string>()
  const numbers = new Set<number | bigint>()
  let length = 0
  const add = (text: string): void => {
    if (text.length < MIN_LENGTH || texts.has(text)) return
    texts.add(text)
    length += text.length
  }
  const isTooMuch = (): boolean => length > MAX_LENGTH_TOGETHER || texts.size > MAX_VALUES
  const walk = (value: unknown): void => {
    if (isTooMuch()) return
    if (typeof value === 'string') add(value)
    else if (typeof value === 'number' || value instanceof JsonNumber) {
      const text = String(value)
      add(text)
      if (text.length >= MIN_LENGTH) numbers.add(toNumeric(value))
    } else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) walk(inner)
  }
  for (const value of values) walk(value)
  const search = isTooMuch() ? 'too many' : createSearch(texts)
  if (search === undefined) return undefined
  if (search === 'too many')
    return masking(
      () => new Everything(),
      (value) => String(value).length >= MIN_LENGTH,
    )
  return masking(
    () => new Filter(search),
    (value) => numbers.has(toNumeric(value)),
  )
}

function masking(newFilter: () => CutFilter, isSecret: (value: number | JsonNumber) => boolean): SecretValues {
  // Never in use by two at the same time: it gets whole texts.
  const filter = newFilter()
  const maskText = (text: string): string => {
    if (text.length < MIN_LENGTH) return text
    return filter.filter(text) + filter.end()
  }
  const maskScalar = (value: unknown): unknown => {
    if (typeof value === 'string') return maskText(value)
    const isNumber = typeof value === 'number' || value instanceof JsonNumber
    return isNumber && isSecret(value) ? MASK : value
  }

  function maskValue(value: unknown, depth = 0): unknown {
    if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return maskScalar(value)
    if (depth > MAX_DEPTH) return MASK
    if (Array.isArray(value)) {
      const items = value.map((item) => maskValue(item, depth + 1))
      return items.some((item, i) => item !== value[i]) ? items : value
    }
    let isChanged = false
    const entries = entriesOf(value as Readonly<Record<string, unknown>>).map(([name, inner]): [string, unknown] => {
      const entry: [string, unknown] = [maskText(name), maskValue(inner, depth + 1)]
      isChanged ||= entry[0] !== name || entry[1] !== inner
      return entry
    })
    return isChanged ? objectOf(entries) : value
  }

  async function maskLater(
    value: unknown,
    isCut: (key: string, owner: Readonly<Record<string, unknown>>) => boolean = () => false,
  ): Promise<unknown> {
    let since = performance.now()
    const pause = (): Promise<void> | undefined => {
      if (performance.now() - since < SLICE_MS) return undefined
      return setImmediate().then(() => {
        since = performance.now()
      })
    }
    const maskLong = async (text: string, ends: boolean): Promise<string> => {
      const stream = newFilter()
      const parts: string[] = []
      for (let start = 0; start < text.length; start += SLICE_LENGTH) {
        parts.push(stream.filter(text.slice(start, start + SLICE_LENGTH)))
        await pause()
      }
      parts.push(ends ? stream.end() : stream.cut())
      return parts.join('')
    }
    const walk = async (inner: unknown, cut: boolean, depth: number): Promise<unknown> => {
      if (typeof inner === 'string')
        return inner.length < SLICE_LENGTH && !cut ? maskText(inner) : maskLong(inner, !cut)
      if (typeof inner !== 'object' || inner === null || inner instanceof JsonNumber) return maskScalar(inner)
      if (depth > MAX_DEPTH) return MASK
      const waiting = pause()
      if (waiting !== undefined) await waiting
      if (Array.isArray(inner)) {
        const items: unknown[] = []
        for (const item of inner)
          items.push(isScalar(item) && !isLong(item) ? maskScalar(item) : await walk(item, false, depth + 1))
        return items
      }
      const entries: [string, unknown][] = []
      for (const [name, item] of entriesOf(inner as Readonly<Record<string, unknown>>)) {
        // Its entries are those of an object.
        entries.push([
          maskText(name),
          await walk(item, isCut(name, inner as Readonly<Record<string, unknown>>), depth + 1),
        ])
      }
      return objectOf(entries)
    }
    return walk(value, false, 0)
  }

  return {
    isIn: (text) => maskText(text) !== text,
    maskText,
    maskMessage(message) {
      const parts = maskText(message).split(CUT)
      const last = parts.pop() ?? ''
      return [...parts.map((part) => filter.filter(part) + filter.cut()), last].join(CUT)
    },
    maskValue: (value) => maskValue(value),
    maskLater,
    maskError<E>(error: E): E {
      if (!(error instanceof Error)) return error
      const message = maskText(error.message)
      const stack = maskText(error.stack ?? '')
      const details = hasDetails(error) ? maskValue(error.details) : undefined
      const { cause } = error
      const isSame = message === error.message && stack === (error.stack ?? '') && cause === undefined
      if (isSame && !(hasDetails(error) && details !== error.details)) return error
      // Keeps class and properties of the error.
      const copy = Object.create(
        Object.getPrototypeOf(error) as object,
        Object.getOwnPropertyDescriptors(error),
      ) as Error
      Object.defineProperty(copy, 'message', { value: message })
      Object.defineProperty(copy, 'stack', { value: stack })
      if (cause !== undefined) {
        const masked = cause instanceof Error ? this.maskError(cause) : maskValue(cause)
        Object.defineProperty(copy, 'cause', { value: masked })
      }
      if (hasDetails(error)) Object.defineProperty(copy, 'details', { value: details })
      return copy as E
    },
    stream: newFilter,
  }
}

/** Whether the error has `details`. */
function hasDetails(error: Error): error is Error & { details: unknown } {
  return 'details' in error
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null || value instanceof JsonNumber
}

function isLong(value: unknown): boolean {
  return typeof value === 'string' && value.length >= SLICE_LENGTH
}
