/**
 * Values that cross between threads: exact numbers and the order of keys stay, and a namespace or a function becomes
 * one that asks the thread it belongs to. A large value is sent in pieces, because a thread can do nothing else while
 * it copies one.
 */
import { isNamespace, type HostFunction, type Namespace } from '../../lib/template/index.ts'
import { JsonNumber, keysOf, rememberOrder, setOwn } from '../../lib/json/index.ts'

/** Values in the order in which they are read: what they are, and the texts and numbers among them. */
export interface Piece {
  kinds: Uint8Array
  /** Texts, numbers, keys before their value, and the numbers of remote objects. */
  values: (string | number)[]
}

/** What stays in its thread. */
export type Owned = Namespace | HostFunction

/** What a piece says of a namespace. */
export interface RemoteForm {
  id: number
  kind: 'function' | 'namespace' | 'namespace with a value'
}

const NULL = 0
const TRUE = 1
const FALSE = 2
const MISSING = 3
const TEXT = 4
const NUMBER = 5
const EXACT_NUMBER = 6
const WHOLE_NUMBER = 7
const LIST = 8
const OBJECT = 9
const END = 10
const FUNCTION = 11
const NAMESPACE = 12
const NAMESPACE_WITH_VALUE = 13

/** Characters of a piece, where a value counts as `VALUE_SIZE`: copying it takes a millisecond or two. */
const MAX_PIECE_SIZE = 256 * 1024
const VALUE_SIZE = 64

const free = (): void => undefined

interface OpenValue {
  /** Undefined: a list. */
  keys: readonly string[] | undefined
  container: Readonly<Record<string | number, unknown>>
  length: number
  next: number
}

/**
 * @param owned receives what stays in this thread; its place there is its number
 * @param pay called with the size of each piece, in characters; throws if that is too much
 */
export function* piecesOf(root: unknown, owned: Owned[], pay: (size: number) => void = free): Generator<Piece, void> {
  let kinds: number[] = []
  let values: (string | number)[] = []
  let size = 0
  const open: OpenValue[] = []
  const cut = (): Piece => {
    pay(size)
    const piece = { kinds: Uint8Array.from(kinds), values }
    kinds = []
    values = []
    size = 0
    return piece
  }
  const add = (kind: number, value?: string | number): void => {
    kinds.push(kind)
    if (value !== undefined) values.push(value)
    size += VALUE_SIZE + (typeof value === 'string' ? value.length : 0)
  }
  const own = (kind: number, value: Owned): void => {
    add(kind, owned.length)
    owned.push(value)
  }
  const write = (value: unknown): void => {
    if (value === null) add(NULL)
    else if (typeof value === 'string') add(TEXT, value)
    else if (typeof value === 'number') add(NUMBER, value)
    else if (typeof value === 'boolean') add(value ? TRUE : FALSE)
    else if (typeof value === 'bigint') add(WHOLE_NUMBER, String(value))
    else if (typeof value === 'undefined') add(MISSING)
    else if (typeof value === 'function') own(FUNCTION, value as HostFunction)
    else if (typeof value === 'symbol') throw new TypeError('a symbol cannot be sent to a thread')
    else if (value instanceof JsonNumber) add(EXACT_NUMBER, value.text)
    else if (Array.isArray(value)) {
      add(LIST)
      open.push({ keys: undefined, container: value as never, length: value.length, next: 0 })
    } else if (isNamespace(value)) own(value.value === undefined ? NAMESPACE : NAMESPACE_WITH_VALUE, value)
    else if (isPlain(value)) {
      const keys = keysOf(value)
      add(OBJECT)
      open.push({ keys, container: value as never, length: keys.length, next: 0 })
    } else throw new TypeError('an object that is not plain data cannot be sent to a thread')
  }

  write(root)
  for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
    if (size >= MAX_PIECE_SIZE) yield cut()
    if (top.next === top.length) {
      add(END)
      open.pop()
      continue
    }
    const name = top.keys === undefined ? top.next : top.keys[top.next]
    top.next += 1
    if (name === undefined) continue
    if (typeof name === 'string') {
      values.push(name)
      size += name.length
    }
    write(top.container[name])
  }
  yield cut()
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

interface Unfinished {
  list: unknown[] | undefined
  object: Record<string, unknown>
  keys: string[]
}

/** Puts a value together from its pieces. */
export class PieceReader {
  readonly #remote: (form: RemoteForm) => unknown
  readonly #open: Unfinished[] = []
  #value: unknown
  /** Whether the whole value is there. */
  isComplete = false

  /** @param remote makes what stands for an object of the other thread */
  constructor(remote: (form: RemoteForm) => unknown) {
    this.#remote = remote
  }

  get value(): unknown {
    if (!this.isComplete) throw new Error('a value from another thread is incomplete')
    return this.#value
  }

  add({ kinds, values }: Piece): void {
    let at = 0
    const take = (): string | number => values[at++] ?? ''
    for (const kind of kinds) {
      const top = this.#open.at(-1)
      if (kind === END) {
        this.#open.pop()
        if (top !== undefined && top.list === undefined) rememberOrder(top.object, top.keys)
        if (this.#open.length === 0) this.isComplete = true
        continue
      }
      const key = top !== undefined && top.list === undefined ? String(take()) : undefined
      const value = this.#read(kind, take)
      if (top === undefined) this.#value = value
      else if (key === undefined) top.list?.push(value)
      else {
        top.keys.push(key)
        setOwn(top.object, key, value)
      }
      if (kind === LIST) this.#open.push({ list: value as unknown[], object: {}, keys: [] })
      else if (kind === OBJECT) {
        this.#open.push({ list: undefined, object: value as Record<string, unknown>, keys: [] })
      } else if (this.#open.length === 0) this.isComplete = true
    }
  }

  #read(kind: number, take: () => string | number): unknown {
    switch (kind) {
      case NULL:
        return null
      case TRUE:
        return true
      case FALSE:
        return false
      case MISSING:
        return undefined
      case TEXT:
      case NUMBER:
        return take()
      case EXACT_NUMBER:
        return new JsonNumber(String(take()))
      case WHOLE_NUMBER:
        return BigInt(take())
      case LIST:
        return []
      case OBJECT:
        return {}
      case FUNCTION:
        return this.#remote({ id: Number(take()), kind: 'function' })
      case NAMESPACE:
        return this.#remote({ id: Number(take()), kind: 'namespace' })
      case NAMESPACE_WITH_VALUE:
        return this.#remote({ id: Number(take()), kind: 'namespace with a value' })
      default:
        throw new Error(`a value from another thread has the unknown kind ${kind}`)
    }
  }
}
