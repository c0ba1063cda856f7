import { asSet, makeSet } from '../equality.ts'
import { YaqlError } from '../error.ts'
import type { Runtime } from '../runtime.ts'
import { extension, method, param, rest, type Overload } from '../signature.ts'
import { Any, SetLike } from '../types.ts'
import { SetValue, type DictView, type Hash, type Value } from '../values.ts'

/** The set; a view of a dictionary has the operators of sets, but not their methods. */
export function ownSet(set: SetValue | DictView, methodName: string): SetValue {
  if (set instanceof SetValue) return set
  throw new YaqlError(
    'AttributeError',
    `'${set.typeName}' object has no method '${methodName}'; use list() and toSet()`,
  )
}

type Members = ReadonlyMap<Hash, Value>

/** A method on two sets that keeps some members of each. */
const pair = (
  name: string,
  keepLeft: (hash: Hash, right: Members) => boolean,
  keepRight: (hash: Hash, left: Members) => boolean,
): Overload =>
  method(name, [param('left', SetLike), param('right', SetLike)], ([a, b], runtime) => {
    const right = asSet(b, runtime.budget).items
    return joined(ownSet(a, name).items, right, keepLeft, keepRight, runtime)
  })

function joined(
  left: Members,
  right: Members,
  keepLeft: (hash: Hash, right: Members) => boolean,
  keepRight: (hash: Hash, left: Members) => boolean,
  { budget }: Runtime,
): SetValue {
  budget.step(left.size + right.size)
  const kept = new Map<Hash, Value>()
  for (const [hash, item] of left) if (keepLeft(hash, right)) kept.set(hash, item)
  for (const [hash, item] of right) if (keepRight(hash, left) && !kept.has(hash)) kept.set(hash, item)
  return new SetValue(kept)
}

const always = (): boolean => true
const never = (): boolean => false
const isIn = (hash: Hash, others: Members): boolean => others.has(hash)
const isNotIn = (hash: Hash, others: Members): boolean => !others.has(hash)

const sizeOf = (set: SetValue | DictView, { budget }: Runtime): number => asSet(set, budget).items.size

export const sets: readonly Overload[] = [
  extension('len', [param('set', SetLike)], ([set], runtime) => sizeOf(set, runtime)),
  pair('union', always, always),
  pair('intersect', isIn, never),
  pair('difference', isNotIn, never),
  pair('symmetricDifference', isNotIn, isNotIn),
  method('add', [param('set', SetLike), rest('values', Any)], ([set, values], runtime) =>
    joined(ownSet(set, 'add').items, makeSet(values, runtime.budget).items, always, always, runtime),
  ),
  method('remove', [param('set', SetLike), rest('values', Any)], ([set, values], runtime) =>
    joined(ownSet(set, 'remove').items, makeSet(values, runtime.budget).items, isNotIn, never, runtime),
  ),
]
