import { triggerResource } from '../../core/permissions.ts'
import type { Rights } from '../../http/index.ts'

/** Whether the caller can view triggers of this type and their instances. */
export function mayViewType(rights: Rights, typeRef: string): boolean {
  return rights.may('trigger_view', triggerResource(typeRef))
}
