import { JsonNumber, writeJson } from '../lib/json/index.ts'

/** JSON in which equal values have equal texts, whatever the order of their keys. */
export function canonicalText(value: unknown): string {
  return writeJson(sorted(value))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  )
}
