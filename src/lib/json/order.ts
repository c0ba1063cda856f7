/**
 * The order of keys. JavaScript objects list integer-like keys first, sorted, so svc remembers the order of objects in
 * which the text has another one. A copy made with a spread or `Object.fromEntries` loses it; `mapObject` keeps it.
 */
const orders = new WeakMap<object, readonly string[]>()
let isUsed = false

/** Keys that JavaScript moves to the front. */
export const indexKey = /^(?:0|[1-9]\d{0,9})$/

/** @param keys all keys of the object */
export function rememberOrder(object: object, keys: readonly string[]): void {
  const own = Object.keys(object)
  if (own.every((key, index) => key === keys[index])) return
  isUsed = true
  orders.set(object, keys)
}

/** Whether any object of this process has an order of its own. */
export function isOrderUsed(): boolean {
  return isUsed
}

/** The keys in the order of the JSON text. */
export function keysOf(object: object): readonly string[] {
  if (!isUsed) return Object.keys(object)
  const keys = orders.get(object)
  if (keys === undefined) return Object.keys(object)
  const own = new Set(Object.keys(object))
  // The object may have changed since.
  const known = keys.filter((key) => own.delete(key))
  return own.size === 0 ? known : [...known, ...own]
}

/** The properties in the order of the JSON text. */
export function entriesOf(object: Readonly<Record<string, unknown>>): [string, unknown][] {
  return keysOf(object).map((key) => [key, object[key]])
}

/** A copy with each value replaced and the same order of keys. */
export function mapObject(
  object: Readonly<Record<string, unknown>>,
  replace: (value: unknown, key: string) => unknown,
): Record<string, unknown> {
  const keys = keysOf(object)
  const copy: Record<string, unknown> = {}
  for (const key of keys) setOwn(copy, key, replace(object[key], key))
  if (isUsed && orders.has(object)) rememberOrder(copy, keys)
  return copy
}

/** An object with the entries in their order. */
export function objectOf(entries: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  const keys: string[] = []
  for (const [key, value] of entries) {
    if (isUsed && !Object.hasOwn(object, key)) keys.push(key)
    setOwn(object, key, value)
  }
  if (isUsed) rememberOrder(object, keys)
  return object
}

/** An assignment to `__proto__` would set the prototype. */
export function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  else object[key] = value
}
