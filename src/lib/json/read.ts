/** Reads JSON text: exact numbers, the order of keys, and every key as it is written. */
import { isFaithful, jsonNumber, JsonNumberError } from './number.ts'
import { indexKey, rememberOrder, setOwn } from './order.ts'

export interface JsonLimits {
  maxDepth: number
  /** Items, properties, lists and objects. After the first `CHEAP_NAMES` properties of an object, each counts as four. */
  maxValues: number
  /** A name that no property may have. */
  refusedKey?: string
}

/** Text beyond a limit of the caller. */
export class JsonLimitError extends Error {}

const unlimited: JsonLimits = { maxDepth: Infinity, maxValues: Infinity }

/**
 * Reads JSON. A number is a JavaScript number if that stands for it exactly, else a `JsonNumber`.
 *
 * `JSON.parse` reads most text. It changes some numbers, sorts integer-like keys and mixes up escaped keys with earlier
 * ones (nodejs/node#63785: it reads `"\n"` for `"\\"`), so the parser below reads text with any of these.
 *
 * @throws SyntaxError, JsonNumberError, JsonLimitError
 */
export function readJson(text: string, limits: JsonLimits = unlimited): unknown {
  if (isOrdinary(text, limits)) return JSON.parse(text)
  let problem: unknown
  try {
    const reading = parse(text, limits)
    for (;;) {
      const { done, value } = reading.next()
      if (done === true) return value
    }
  } catch (error) {
    if (error instanceof JsonNumberError || error instanceof JsonLimitError) throw error
    problem = error
  }
  // Names the place in better words.
  JSON.parse(text)
  throw problem
}

/**
 * Reads JSON as `readJson` does, in turns of some milliseconds: everybody else may work between two of them.
 *
 * @param rest called between two turns
 * @param now milliseconds of a steady clock
 * @throws SyntaxError, JsonNumberError, JsonLimitError
 */
export async function readLargeJson(
  text: string,
  limits: JsonLimits,
  rest: () => Promise<unknown>,
  now: () => number = () => performance.now(),
): Promise<unknown> {
  const reading = parse(text, limits)
  let endOfTurn = now() + MS_PER_TURN
  for (;;) {
    const { done, value } = reading.next()
    if (done === true) return value
    if (now() < endOfTurn) continue
    await rest()
    endOfTurn = now() + MS_PER_TURN
  }
}

/** JavaScript keeps an object with more properties as a table, which costs several times as much to make and to walk. */
const CHEAP_NAMES = 100
const VALUES_PER_COSTLY_NAME = 4

const MS_PER_TURN = 5
/** Between two looks at the clock. */
const VALUES_PER_STEP = 500

const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const UPPER_E = 0x45
const LOWER_E = 0x65
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** A JavaScript number has every number of so many digits. */
const EXACT_DIGITS = 15

/** Whether `JSON.parse` reads the text without loss, if it is valid at all. @throws JsonLimitError */
function isOrdinary(text: string, limits: JsonLimits): boolean {
  const { maxDepth, maxValues, refusedKey } = limits
  let depth = 0
  let values = 1
  // Of the object that is read, and of those around it.
  let names = 0
  const outerNames: number[] = []
  let backslash = text.indexOf('\\')
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const start = at
      at = endOfString(text, start) - 1
      let next = at + 1
      while (isBlank(text.charCodeAt(next))) next += 1
      if (text.charCodeAt(next) === COLON) {
        if (refusedKey !== undefined && at - start === refusedKey.length + 1 && text.startsWith(refusedKey, start + 1))
          throw refusesKey(refusedKey)
        if (isDigit(text.charCodeAt(start + 1)) && indexKey.test(text.slice(start + 1, at))) return false
        if (backslash !== -1 && backslash < start) backslash = text.indexOf('\\', start)
        if (backslash !== -1 && backslash < at) return false
        names += 1
        if (names > CHEAP_NAMES) values += VALUES_PER_COSTLY_NAME - 1
        at = next
      }
    } else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(text, at)
      if (!isOrdinaryNumber(text, at, end)) return false
      at = end - 1
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1
      values += 1
      if (depth > maxDepth) throw tooDeep(maxDepth)
      outerNames.push(names)
      names = 0
    } else if (code === COMMA) {
      values += 1
      if (values > maxValues) throw tooMany(maxValues)
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      depth -= 1
      names = outerNames.pop() ?? 0
    }
  }
  if (values > maxValues) throw tooMany(maxValues)
  return true
}

function tooDeep(maxDepth: number): JsonLimitError {
  return new JsonLimitError(`values are nested more than ${maxDepth} deep`)
}

function tooMany(maxValues: number): JsonLimitError {
  return new JsonLimitError(
    `it holds more than ${maxValues} items, properties, lists and objects (after the first ${CHEAP_NAMES} properties of an object, each counts as ${VALUES_PER_COSTLY_NAME})`,
  )
}

function refusesKey(key: string): JsonLimitError {
  return new JsonLimitError(`the key "${key}" is not allowed`)
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** @returns the index after the closing quote of the string that begins at `start`, or the end of malformed text */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
  return text.length
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (isDigit(code) || code === DOT || code === LOWER_E || code === UPPER_E || code === PLUS || code === MINUS)
      at += 1
    else return at
  }
}

function isOrdinaryNumber(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start)
  if (end - start <= EXACT_DIGITS) {
    let hasPoint = false
    for (let at = start + 1; at < end; at++) {
      const code = text.charCodeAt(at)
      if (isDigit(code)) continue
      if (code !== DOT) return isFaithfulPart(text, start, end)
      hasPoint = true
    }
    if (!hasPoint) return first !== MINUS || text.charCodeAt(start + 1) !== ZERO
    // Zeros at the end are lost, and after `0.00000` JavaScript writes an exponent.
    if (text.charCodeAt(end - 1) !== ZERO && first !== ZERO && first !== MINUS) return true
  }
  return isFaithfulPart(text, start, end)
}

/** Longer numbers that JavaScript writes back do not exist. */
const MAX_FAITHFUL_CHARS = 32

function isFaithfulPart(text: string, start: number, end: number): boolean {
  if (end - start > MAX_FAITHFUL_CHARS) return false
  const written = text.slice(start, end)
  return isFaithful(Number(written), written)
}

interface Frame {
  container: Record<string, unknown> | unknown[]
  /** Of the value that is read next, in an object. */
  key: string
  /** Properties so far, in an object. */
  names: number
  /** All keys so far, if JavaScript may list them in another order. */
  keys: string[] | undefined
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x1f]/

/**
 * Reads every JSON text, at a fraction of the speed of `JSON.parse`. Uses no stack for nested values. It yields after
 * every `VALUES_PER_STEP` values.
 */
function* parse(text: string, limits: JsonLimits): Generator<undefined, unknown> {
  const { maxDepth, maxValues, refusedKey } = limits
  const outer: (Frame | undefined)[] = []
  let frame: Frame | undefined
  let at = 0
  let values = 0
  let endOfStep = VALUES_PER_STEP
  let backslash = text.indexOf('\\')

  const fail = (): never => {
    throw new SyntaxError(`not JSON at position ${at}`)
  }
  const nextCode = (): number => {
    while (isBlank(text.charCodeAt(at))) at += 1
    return text.charCodeAt(at)
  }
  const readString = (): string => {
    const end = endOfString(text, at)
    const body = text.slice(at + 1, end - 1)
    if (text.charCodeAt(end - 1) !== QUOTE || end - at < 2) fail()
    if (backslash !== -1 && backslash < at) backslash = text.indexOf('\\', at)
    const isEscaped = backslash !== -1 && backslash < end
    const value = isEscaped ? (JSON.parse(text.slice(at, end)) as string) : body
    if (!isEscaped && control.test(body)) fail()
    at = end
    return value
  }
  const readKey = (): string => {
    if (nextCode() !== QUOTE) fail()
    const key = readString()
    if (nextCode() !== COLON) fail()
    at += 1
    if (key === refusedKey) throw refusesKey(key)
    return key
  }
  const readName = (object: Frame): void => {
    object.key = readKey()
    object.names += 1
    if (object.names > CHEAP_NAMES) values += VALUES_PER_COSTLY_NAME - 1
  }
  const readWord = <T>(word: string, value: T): T => {
    if (!text.startsWith(word, at)) fail()
    at += word.length
    return value
  }
  const open = (container: Frame['container']): void => {
    outer.push(frame)
    if (outer.length > maxDepth) throw tooDeep(maxDepth)
    // Costs more than an item: it counts as two.
    values += 1
    frame = { container, key: '', names: 0, keys: undefined }
  }

  for (;;) {
    let value: unknown
    values += 1
    if (values > maxValues) throw tooMany(maxValues)
    if (values >= endOfStep) {
      endOfStep = values + VALUES_PER_STEP
      yield undefined
    }
    const code = nextCode()
    if (code === OPEN_OBJECT || code === OPEN_LIST) {
      const isObject = code === OPEN_OBJECT
      at += 1
      const isEmpty = nextCode() === (isObject ? CLOSE_OBJECT : CLOSE_LIST)
      open(isObject ? {} : [])
      if (!isEmpty) {
        if (isObject) readName(frame!)
        continue
      }
      at += 1
      value = frame!.container
      frame = outer.pop()
    } else if (code === QUOTE) {
      value = readString()
    } else if (code === 0x74) {
      value = readWord('true', true)
    } else if (code === 0x66) {
      value = readWord('false', false)
    } else if (code === 0x6e) {
      value = readWord('null', null)
    } else {
      number.lastIndex = at
      const [written] = number.exec(text) ?? fail()
      value = jsonNumber(written)
      at += written.length
    }
    // Puts the value where it belongs, and closes the containers that end after it.
    for (;;) {
      if (frame === undefined) {
        if (nextCode() === nextCode() && at < text.length) fail()
        return value
      }
      put(frame, value)
      const after = nextCode()
      at += 1
      const isList: boolean = Array.isArray(frame.container)
      if (after === COMMA) {
        if (!isList) readName(frame)
        break
      }
      if (after !== (isList ? CLOSE_LIST : CLOSE_OBJECT)) fail()
      if (frame.keys !== undefined) rememberOrder(frame.container, frame.keys)
      value = frame.container
      frame = outer.pop()
    }
  }
}

function put(frame: Frame, value: unknown): void {
  const { container, key } = frame
  if (Array.isArray(container)) {
    container.push(value)
    return
  }
  if (frame.keys === undefined && indexKey.test(key)) frame.keys = Object.keys(container)
  if (frame.keys !== undefined && !Object.hasOwn(container, key)) frame.keys.push(key)
  setOwn(container, key, value)
}
