/**
 * Logins that are under way while the user is deleted or gets another password: what they have proved counts no more. A
 * request can take its time between its credentials and its body.
 */
import type { Principal } from '../../http/index.ts'

export interface Logins {
  /** Called before the password is checked. */
  epochOf(user: string): number
  /** @param epoch from before the proof was looked at */
  remember(principal: Principal, epoch: number): void
  /** Whether the user is unchanged since then; true for unknown callers. */
  isCurrent(principal: Principal): boolean
  /** Called when earlier logins of the user become invalid. */
  endAll(user: string): void
}

export function createLogins(): Logins {
  /** One entry for each user that was changed since the start. */
  const epochs = new Map<string, number>()
  const remembered = new WeakMap<Principal, number>()
  const epochOf = (user: string): number => epochs.get(user) ?? 0
  return {
    epochOf,
    remember: (principal, epoch) => void remembered.set(principal, epoch),
    isCurrent(principal) {
      const epoch = remembered.get(principal)
      return epoch === undefined || epoch === epochOf(principal.user)
    },
    endAll: (user) => void epochs.set(user, epochOf(user) + 1),
  }
}
