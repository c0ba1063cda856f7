/** Wire records of contract 02, 2.11, and the policy as the module keeps it. */
import type { ParameterSchema } from '../../lib/schema/index.ts'

export interface PolicyTypeRecord {
  id: string
  /** `policy_type:<resource_type>:<name>` */
  uid: string
  /** `<resource_type>.<name>` */
  ref: string
  name: string
  /** What policies of the type are about. */
  resource_type: 'action'
  description: string
  enabled: boolean
  /** Part of the program that applies it. */
  module: string
  parameters: Record<string, ParameterSchema>
}

export interface PolicyRecord {
  id: string
  /** `policy:<pack>:<name>` */
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  enabled: boolean
  /** Reference of the action that it is about. */
  resource_ref: string
  /** Reference of its type. */
  policy_type: string
  parameters: Record<string, unknown>
  /** Of a policy that comes with a pack. */
  metadata_file?: string
}

/** A policy inside the server. */
export interface Policy extends PolicyRecord {
  revision: number
}

/** What an author writes; what is left out, or null, has its default. */
export interface PolicyDefinition {
  name: string
  pack?: string | null
  description?: string | null
  enabled?: boolean | null
  resource_ref: string
  policy_type: string
  parameters?: Record<string, unknown> | null
}
