/** What stands between a proved name and a login: disabled users, and the groups that bring roles. */
import { loginRefused } from '../../core/errors.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import type { Rbac } from '../rbac/index.ts'
import type { AuthBackend } from './backends/backend.ts'
import type { AuthStore } from './store.ts'

/**
 * To be called once it is proved who logs in, before anything is decided by roles.
 *
 * @param about where the request came from, for the audit log
 * @throws LOGIN_REFUSED for a disabled user
 */
export type AdmitLogin = (user: string, about: LogFields) => Promise<void>

export interface AdmissionOptions {
  store: Pick<AuthStore, 'findUser'>
  log: Log
  rbac: Pick<Rbac, 'syncGroups'>
  /** `groupsOf` of the backend; undefined: groups bring no roles. */
  groupsOf: AuthBackend['groupsOf'] | undefined
}

export function createLoginAdmission({ store, log, rbac, groupsOf }: AdmissionOptions): AdmitLogin {
  return async (user, about) => {
    if (store.findUser(user)?.is_disabled === 1) {
      log.audit('login.refused', 'The user is disabled', { user, ...about })
      throw loginRefused()
    }
    if (groupsOf === undefined) return
    try {
      await rbac.syncGroups(user, await groupsOf(user))
    } catch (error) {
      const message = 'The groups of a user could not be read; the user keeps the roles of the last login'
      log.error('auth.groups_not_synced', message, { user, ...about, error })
    }
  }
}
