import type { Budget } from '../limits.ts'
import { isMapping, mappingEntries } from '../mapping.ts'
import { pythonRepr } from '../text.ts'
import { sortBy } from '../sorting.ts'
import { adopt, Dict, isList, Sequence, type Value } from '../values.ts'

const WIDTH = 80

/** Lays a value out over lines of 80 characters as Python's `pprint` does; long texts stay in one piece. */
export function prettyPrint(value: Value, budget: Budget): string {
  return layOut(sortKeys(value, budget, 0), 0, 0, budget)
}

function sortKeys(value: Value, budget: Budget, depth: number): Value {
  budget.step()
  budget.depth(depth)
  const inner = (item: unknown): Value => sortKeys(adopt(item), budget, depth + 1)
  if (isList(value)) return value.map(inner)
  if (value instanceof Sequence) return new Sequence(value.items.map(inner), value.typeName)
  if (!isMapping(value)) return value
  const entries = mappingEntries(value)
  const keys = sortBy(
    entries.map(([key]) => key),
    (key) => (typeof key === 'string' ? key : pythonRepr(key, budget)),
    false,
    budget,
  )
  const byKey = Dict.from(entries)
  return Dict.from(keys.map((key) => [key, inner(byKey.get(key))]))
}

function layOut(value: Value, indent: number, allowance: number, budget: Budget): string {
  const line = pythonRepr(value, budget)
  if (line.length <= WIDTH - indent - allowance) return line
  const lines = (open: string, close: string, items: readonly ((allowance: number) => string)[]): string => {
    const separator = `,\n${' '.repeat(indent + 1)}`
    const last = items.length - 1
    const texts = items.map((write, index) => write(index === last ? allowance + close.length : 1))
    const text = open + texts.join(separator) + close
    budget.text(text.length)
    return text
  }
  if (isMapping(value)) {
    const items = mappingEntries(value).map(([key, item]) => {
      const name = pythonRepr(key, budget)
      return (room: number): string => `${name}: ${layOut(item, indent + name.length + 3, room, budget)}`
    })
    return items.length === 0 ? line : lines('{', '}', items)
  }
  const tuple = value instanceof Sequence && value.typeName === 'tuple'
  if (!isList(value) && !tuple) return line
  const parts: readonly unknown[] = isList(value) ? value : value.items
  if (parts.length === 0) return line
  const items = parts.map((item) => (room: number) => layOut(adopt(item), indent + 1, room, budget))
  return tuple ? lines('(', parts.length === 1 ? ',)' : ')', items) : lines('[', ']', items)
}
