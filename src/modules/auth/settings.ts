/** What the configuration says about authentication. */
import type { Config } from '../../config/index.ts'
import type { CookieSettings } from './credentials.ts'

export interface AuthSettings {
  config: Config['auth']
  cookie: CookieSettings
  /** `rbac.enable` and `rbac.sync_remote_groups`: a login brings the roles of the user's groups. */
  syncsGroups: boolean
}

export function authSettings({ auth, api, rbac }: Pick<Config, 'auth' | 'api' | 'rbac'>): AuthSettings {
  return {
    config: auth,
    cookie: { secure: api.auth_cookie_secure, sameSite: api.auth_cookie_same_site },
    syncsGroups: rbac.enable && rbac.sync_remote_groups,
  }
}
