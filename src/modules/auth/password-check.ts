/** Whether a password is the user's, for every login and wherever else it is asked for. */
import type { AuthBackend } from './backends/backend.ts'
import { createGate } from './gate.ts'

/** One password check costs up to 19 MiB and a processor for some 20 ms, so logins must not crowd out the actions. */
const MAX_CHECKS = 2
const MAX_WAITING_CHECKS = 64

/** Rejects with QUEUE_FULL, and with whatever keeps the backend from deciding. */
export type PasswordCheck = (user: string, password: string) => Promise<boolean>

export function createPasswordCheck(backend: Pick<AuthBackend, 'authenticate' | 'maxChecks'>): PasswordCheck {
  const gate = createGate('logins', backend.maxChecks ?? MAX_CHECKS, MAX_WAITING_CHECKS)
  return (user, password) => gate.pass(() => backend.authenticate(user, password))
}
