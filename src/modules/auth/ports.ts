/** What authentication asks of modules above it; `app.ts` says who answers. */
import type { Unit } from '../../db/index.ts'

export interface AuthPorts {
  /** Deletes what other modules keep of a user, in the unit that deletes the user. */
  readonly planUserDeleted: (user: string) => Unit
}
