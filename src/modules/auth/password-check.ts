/** Whether a password is the user's, for every login and wherever else it is asked for. */
import type { AuthBackend } from './backends/backend.ts'
import { createGate } from './gate.ts'
import type { Throttle } from './throttle.ts'

/** One password check costs up to 19 MiB and a processor for some 20 ms, so logins must not crowd out the actions. */
const MAX_CHECKS = 2
const MAX_WAITING_CHECKS = 64
/** Behind checks that wait for a directory which does not answer. */
const MAX_WAIT_MS = 30_000

/** Where a request comes from. */
export interface Source {
  address: string
  requestId: string
}

/** Rejects with TOO_MANY_FAILURES, QUEUE_FULL, and errors of the backend. */
export type PasswordCheck = (user: string, password: string, from: Source) => Promise<boolean>

export function createPasswordCheck(
  backend: Pick<AuthBackend, 'authenticate' | 'maxChecks'>,
  throttle: Throttle<Source & { user: string }>,
): PasswordCheck {
  const gate = createGate('logins', backend.maxChecks ?? MAX_CHECKS, MAX_WAITING_CHECKS, MAX_WAIT_MS)
  return async (user, password, from) => {
    const by = { ...from, user }
    // Who has to wait does not take a place in the line of the others.
    throttle.admit(by)
    const about = { remote_address: from.address, request_id: from.requestId }
    return gate.pass(() =>
      throttle
        .attempt(by, async () => {
          const isRight = await backend.authenticate(user, password, about)
          // No failure of who logs in: it must not make anybody wait once it can be found out again.
          if (isRight === undefined) throw new Undecided()
          return isRight
        })
        .catch((error: unknown) => {
          if (error instanceof Undecided) return false
          throw error
        }),
    )
  }
}

class Undecided extends Error {}
