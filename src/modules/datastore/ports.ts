/** Public API of the datastore, and what it needs from other modules. */
import type { Unit } from '../../db/index.ts'
import type { Namespace, TemplateScope } from '../../lib/template/index.ts'
import type { TemplateReader } from '../../core/template-reader.ts'

export interface DatastoreScope extends TemplateScope {
  /** `svckv.system.<key>` and `svckv.user.<key>`; older rules use `system` for `svckv.get('system')`. */
  readonly variables: { readonly svckv: Namespace }
}

export interface ReadKey {
  readonly scope: 'system' | 'user'
  /** Empty for `system`. */
  readonly user: string
  readonly name: string
}

export interface ReadItem {
  readonly value: string
  /** Whether it has been decrypted: it must not be seen elsewhere. */
  readonly isSecret: boolean
}

/** Template scopes that the module provides. */
export interface DatastoreTemplates {
  /** `svckv` and `decrypt_kv` for templates, limited to items that the reader can view when they are read. */
  readonly templates: (reader: TemplateReader) => DatastoreScope
  /**
   * One item, for an expression of a workflow. Without `decrypt`, the value of a secret is its cipher text.
   *
   * @throws TemplateError when the reader may not view it, or it cannot be decrypted
   */
  read(reader: TemplateReader, key: ReadKey, decrypt: boolean): ReadItem | undefined
}

/** Plans the dispatch of an internal trigger of pack `core` (contract 05, 5.9). Undefined: no rule uses it. */
export type PlanEvent = (ref: string, payload: Record<string, unknown>) => Unit | undefined

/** What the datastore needs from modules above it; `app.ts` connects them. */
export interface DatastorePorts {
  readonly planEvent: PlanEvent
}
