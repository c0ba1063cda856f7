/** Wire records of contract 02, 2.8, 2.9 and 2.13. */
import type { ParameterSchema } from '../../lib/schema/index.ts'

/** What the manifest says, in full; other keys of it follow. */
export interface PackRecord {
  id: string
  uid: string
  ref: string
  name: string
  description: string
  version: string
  author: string
  email: string | null
  keywords: string[]
  contributors: string[]
  dependencies: string[]
  python_versions: string[]
  svc_version: string | null
  system: Record<string, unknown>
  /** Relative to the pack, sorted. */
  files: string[]
  /** Absolute path of the folder. */
  path: string
  [key: string]: unknown
}

/** Name → schema of the value, as parameters of actions have them. */
export type ConfigAttributes = Record<string, ParameterSchema>

export interface ConfigSchemaRecord {
  id: string
  pack: string
  attributes: ConfigAttributes
}

export interface ConfigRecord {
  id: string
  pack: string
  values: Record<string, unknown>
}

export interface AliasFormat {
  display: string
  representation: string[]
  match_multiple?: boolean
}

export interface AliasRecord {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  enabled: boolean
  action_ref: string
  formats: (string | AliasFormat)[]
  ack: Record<string, unknown>
  result: Record<string, unknown>
  extra: Record<string, unknown>
  immutable_parameters: Record<string, unknown>
  /** Relative to the pack, e.g. `aliases/deploy.yaml`. */
  metadata_file?: string
}

/** What an author writes: the record without what is derived. */
export type AliasDefinition = Omit<AliasRecord, 'id' | 'uid' | 'ref'>
