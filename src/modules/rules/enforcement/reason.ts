/** Reasons of failures for callers: a reason can quote values of the payload. */
import {
  internalTypes,
  subjectOf,
  visiblePayload,
  type Triggers,
  type VisibilityRights,
  type VisiblePayload,
} from '../../triggers/index.ts'
import type { RuleEnforcement } from '../types.ts'

/** The enforcement with the reason that the caller may see. */
export type ReasonFor = <T extends Pick<RuleEnforcement, 'trigger_instance_id' | 'failure_reason'>>(
  enforcement: T,
  rights: VisibilityRights,
) => T

const notShown = 'The cause is not shown, because it could contain a value.'

/** @param view what the caller may see of the payload */
export const censoredReason = (reason: string, { withheld }: VisiblePayload): string =>
  withheld === undefined ? reason : `${notShown} ${withheld.reason}`

export function createReasonFor(triggers: Pick<Triggers, 'findInstance' | 'typeOfInstance'>): ReasonFor {
  return (enforcement, rights) => {
    const { trigger_instance_id: id, failure_reason: reason } = enforcement
    if (reason === undefined || seesAll(rights)) return enforcement
    const type = triggers.typeOfInstance(id)
    if (type !== undefined && subjectOf(type) === undefined) return enforcement
    const instance = triggers.findInstance(id)
    // Whose record the event was about is no longer known.
    if (instance === undefined) {
      return { ...enforcement, failure_reason: `${notShown} The trigger instance has been removed.` }
    }
    return { ...enforcement, failure_reason: censoredReason(reason, visiblePayload(rights, instance)) }
  }
}

/** Whether the caller may view the payloads of all internal types, so that no payload has to be read. */
function seesAll(rights: VisibilityRights): boolean {
  return internalTypes.every(
    (type) => visiblePayload(rights, { trigger_type: type, payload: {} }).withheld === undefined,
  )
}
