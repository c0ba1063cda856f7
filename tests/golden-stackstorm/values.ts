/** Values of the golden data, and ours, in one spelling. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { entriesOf, JsonNumber, readJson, writeJson } from '../../src/lib/json/index.ts'
import { isObject } from '../../src/lib/schema/index.ts'

/** The rows of a file. The generator writes the shape. */
export function readRows<Row>(folder: string, name: string): Row[] {
  return readFileSync(join(folder, `${name}.jsonl`), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => readJson(renamed(line)) as Row)
}

/** In our names. */
export function renamed(text: string): string {
  return text
    .replaceAll('core.st2.', 'core.svc.')
    .replaceAll('st2kv', 'svckv')
    .replaceAll('stackstorm_version', 'svc_version')
}

/** A value as text, without regard to the order of keys. `1` and `1.0` differ, and so do a number and a text. */
export function spell(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(', ')}]`
  if (value instanceof JsonNumber) return numberText(value.text)
  if (typeof value === 'number' || typeof value === 'bigint') return numberText(String(value))
  if (!isObject(value)) return writeJson(value ?? null)
  const entries = entriesOf(value).filter(([, item]) => item !== undefined)
  return `{${entries
    .map(([key, item]) => `${JSON.stringify(key)}: ${spell(item)}`)
    .toSorted()
    .join(', ')}}`
}

function numberText(text: string): string {
  return /^-?\d+$/.test(text) ? String(BigInt(text)) : `float ${Number(text)}`
}

/**
 * A value that JSON lacks becomes what svc reads in its place: keys, dates and bytes as text, sets and tuples as lists,
 * null for what is no number.
 */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value)) return value
  const [[kind, inner] = ['', undefined], ...others] = entriesOf(value)
  if (others.length === 0 && kind.startsWith('$')) return special(kind, inner)
  return Object.fromEntries(entriesOf(value).map(([key, item]) => [key, plain(item)]))
}

function special(kind: string, value: unknown): unknown {
  switch (kind) {
    case '$int':
      return BigInt(String(value))
    case '$float': {
      const text = String(value)
      return ['inf', '-inf', 'nan'].includes(text) ? null : new JsonNumber(text)
    }
    case '$bytes':
      return Buffer.from(String(value), 'base64').toString()
    case '$set':
    case '$tuple':
      return plain(value)
    case '$map':
      // Of keys that are the same text the last one counts.
      return Object.fromEntries(
        (value as [unknown, unknown][]).map(([key, item]) => [keyText(plain(key)), plain(item)]),
      ) // pairs
    case '$utf16':
      return value
    default:
      return String(value)
  }
}

const keyText = (key: unknown): string => (key instanceof JsonNumber ? key.text : String(key))
