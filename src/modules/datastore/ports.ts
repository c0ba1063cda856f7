/** What other modules may ask of the datastore, and what the datastore asks of them. */
import type { Unit } from '../../db/index.ts'
import type { Namespace, TemplateScope } from '../../lib/template/index.ts'
import type { TemplateReader } from '../../core/template-reader.ts'

export interface DatastoreScope extends TemplateScope {
  /** `svckv.system.<key>` and `svckv.user.<key>`; `svckv.get('system')` is what older rules call `system`. */
  readonly variables: { readonly svckv: Namespace }
}

/** What the module offers to others, through ports. */
export interface DatastoreTemplates {
  /** `svckv` and `decrypt_kv` for templates, as much of it as the reader may view at the moment of reading. */
  readonly templates: (reader: TemplateReader) => DatastoreScope
}

/** Internal triggers of pack `core` (contract 05, 5.9): what stores that it has happened, if anybody wants to know. */
export type PlanEvent = (ref: string, payload: Record<string, unknown>) => Unit | undefined

/** What the datastore asks of modules above it; `app.ts` says who answers. */
export interface DatastorePorts {
  readonly planEvent: PlanEvent
}
