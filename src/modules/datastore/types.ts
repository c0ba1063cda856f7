/** Contract 05, 5.11. */
import type { Scope } from '../../http/route.ts'
import type { TemplateScope } from '../../template.ts'

export type KeyScope = 'svckv.system' | 'svckv.user'

export interface KeyValuePair {
  id: string
  scope: KeyScope
  name: string
  /** Of the user scope; else empty. */
  user: string
  description: string | null
  /** Upper-case hex cipher text when `encrypted`. */
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp: string | null
}

/** In whose name templates read the datastore. */
export interface TemplateReader {
  /** Who must be allowed to view each item; `svckv.user` holds this user's own. */
  user: string
  /** What the credential behind it is limited to. */
  scopes?: readonly Scope[]
  /** Who wrote the template, when that is somebody else: this user must be allowed as well. */
  author?: string
}

/** What the module offers to others, through ports. */
export interface DatastoreTemplates {
  /** `svckv` and `decrypt_kv` for templates, as much of it as the reader may view. */
  templates(reader: TemplateReader): TemplateScope
}
