/** Files of API keys, as `svc apikey load` takes them (contract 01, 1.9 "Load file"). */
import { isId } from '../../core/ids.ts'
import { secretMask } from '../../lib/log/index.ts'
import { holdsMoreThan, readEntryFile } from './entry-file.ts'
import type { Json } from '../output/print.ts'

/** No server takes more of one key. */
const MAX_VALUES = 65_536
const parts = ['user', 'key_hash', 'metadata', 'enabled', 'expires_at', 'scopes'] as const

export interface KeyEntry {
  /** The server's record of this id is changed, if there is one. */
  id: string | undefined
  /** What is sent. */
  body: Json
}

/** Reads and checks all entries. @throws CliFailure (2) */
export function readApiKeyFile(path: string): Promise<KeyEntry[]> {
  return readEntryFile(path, { kind: 'API key', required: ['user', 'key_hash'], toEntry })
}

function toEntry(entry: Json, report: (problem: string) => void): KeyEntry {
  const { user, key_hash, metadata, enabled, id } = entry
  if (typeof user !== 'string' || user === '') report('user is missing or not text')
  if (key_hash === secretMask) {
    report(`key_hash is masked (${secretMask}). Export the file with "svc apikey list -n -1 -y --show-secrets"`)
  } else if (typeof key_hash !== 'string' || key_hash === '') report('key_hash is missing or not text')
  if (metadata !== undefined && (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))) {
    report('metadata must be an object')
  }
  if (enabled !== undefined && typeof enabled !== 'boolean') report('enabled must be true or false')
  if (id !== undefined && (typeof id !== 'string' || !isId(id))) {
    report('id must be 24 hexadecimal digits, or be omitted')
  }
  const given = parts.filter((name) => entry[name] !== undefined).map((name) => [name, entry[name]] as const)
  if (holdsMoreThan(MAX_VALUES, given)) report(`it holds more than ${MAX_VALUES} values`)
  return {
    id: typeof id === 'string' ? id : undefined,
    body: { ...Object.fromEntries(given), enabled: enabled ?? false },
  }
}
