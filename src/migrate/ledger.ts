/**
 * What earlier imports left on the server, so that the next one can tell a changed source from a change that was made
 * here. It holds digests only, with a key of its own, because secrets are among what they are made from.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { readBoundedFile, replaceSecretFile } from '../lib/files/index.ts'
import { readJson, writeJson } from '../lib/json/index.ts'
import { isObject } from '../lib/schema/index.ts'
import { canonicalText } from './canonical.ts'

const MAX_BYTES = 512 * 1024 * 1024
const KEY_BYTES = 32

/** `conflict`: what is on the server differs, and no import left it so. */
export type Decision = 'create' | 'unchanged' | 'update' | 'conflict'

export interface Ledger {
  /** @param current as it is on the server, in the same form; undefined: it is not there */
  decide(kind: string, name: string, desired: unknown, current: unknown): Decision
  /** Whether an import has left exactly this. */
  isNoted(kind: string, name: string, desired: unknown): boolean
  /** Whether an import has left something of that name. */
  knows(kind: string, name: string): boolean
  /** @param now as it is on the server after the import; default: as desired */
  note(kind: string, name: string, desired: unknown, now?: unknown): void
  /** Written whole or not at all. @throws errors of the file system */
  save(): Promise<void>
}

/** @throws Error when the file is damaged */
export async function openLedger(path: string): Promise<Ledger> {
  const { key, entries } = await load(path)
  let isChanged = false
  const digest = (value: unknown): string => createHmac('sha256', key).update(canonicalText(value)).digest('base64url')
  return {
    decide(kind, name, desired, current) {
      if (current === undefined) return 'create'
      const [given, there] = [digest(desired), digest(current)]
      if (given === there) return 'unchanged'
      const [source, left] = entries.get(`${kind} ${name}`)?.split(' ') ?? []
      if (left !== there) return 'conflict'
      // The server may have filled in something that the source lacks.
      return source === given ? 'unchanged' : 'update'
    },
    isNoted: (kind, name, desired) => entries.get(`${kind} ${name}`)?.split(' ')[0] === digest(desired),
    knows: (kind, name) => entries.has(`${kind} ${name}`),
    note(kind, name, desired, now = desired) {
      const value = `${digest(desired)} ${digest(now)}`
      if (entries.get(`${kind} ${name}`) === value) return
      entries.set(`${kind} ${name}`, value)
      isChanged = true
    },
    async save() {
      if (!isChanged) return
      isChanged = false
      await replaceSecretFile(
        path,
        `${writeJson({ key: key.toString('base64'), entries: Object.fromEntries(entries) })}\n`,
      )
    },
  }
}

async function load(path: string): Promise<{ key: Buffer; entries: Map<string, string> }> {
  const file = await readBoundedFile(path, MAX_BYTES)
  if ('problem' in file) {
    if (file.isMissing) return { key: randomBytes(KEY_BYTES), entries: new Map() }
    throw new Error(`${path} ${file.problem}`)
  }
  let content: unknown
  try {
    content = readJson(file.bytes.toString())
  } catch {
    content = undefined
  }
  const key =
    isObject(content) && typeof content['key'] === 'string' ? Buffer.from(content['key'], 'base64') : undefined
  const entries = isObject(content) && isObject(content['entries']) ? content['entries'] : undefined
  if (key?.length !== KEY_BYTES || entries === undefined) {
    throw new Error(`${path} is damaged: remove it; the next import then reports what differs as conflicts`)
  }
  return { key, entries: new Map(Object.entries(entries).map(([name, value]) => [name, String(value)])) }
}
