/** Contract 05, 5.11. */
import type { Unit } from '../../db/database.ts'
import type { Scope } from '../../http/route.ts'
import type { Namespace, TemplateScope } from '../../template.ts'

export type KeyScope = 'svckv.system' | 'svckv.user'

/** What names one item. */
export interface ItemKey {
  scope: KeyScope
  /** Of the user scope; else empty. */
  user: string
  name: string
}

export interface KeyValuePair extends ItemKey {
  id: string
  description: string | null
  /** Upper-case hex cipher text when `encrypted`. */
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp: string | null
}

/** As clients see it; what is null is left out. */
export interface KeyValuePairRecord {
  id: string
  uid: string
  name: string
  scope: KeyScope
  user?: string
  description?: string
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp?: string
}

/** In whose name templates read the datastore. */
export interface TemplateReader {
  /** Who must be allowed to view each item; `svckv.user` holds this user's own. */
  user: string
  /** What the credential behind it is limited to. */
  scopes?: readonly Scope[]
  /** Who wrote the template, when that is somebody else: this user must be allowed as well. */
  author?: string
  /** For which execution, if for one: for the audit log. */
  executionId?: string
}

export interface DatastoreScope extends TemplateScope {
  /** `svckv.system.<key>` and `svckv.user.<key>`; `svckv.get('system')` is what older rules call `system`. */
  readonly variables: { readonly svckv: Namespace }
}

/** What the module offers to others, through ports. */
export interface DatastoreTemplates {
  /** `svckv` and `decrypt_kv` for templates, as much of it as the reader may view at the moment of reading. */
  templates(reader: TemplateReader): DatastoreScope
}

/** Internal triggers of pack `core` (contract 05, 5.9): what stores that it has happened, if anybody wants to know. */
export type PlanEvent = (ref: string, payload: Record<string, unknown>) => Unit | undefined
