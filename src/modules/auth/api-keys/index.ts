/** API keys: what can be done with them, and whether one that a request brings along counts. */
import type { Bus, Unsubscribe } from '../../../bus/index.ts'
import type { Database, Step } from '../../../db/index.ts'
import type { Principal, Route } from '../../../http/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { AuthStore } from '../store.ts'
import { createApiKeyRoutes } from './routes.ts'
import { createApiKeyService } from './service.ts'
import { createApiKeyStore } from './store.ts'
import { createApiKeyUsage } from './usage.ts'
import { createApiKeyVerifier, obstacleOf, type ApiKeyVerifier } from './verify.ts'
import { writeJson } from '../../../lib/json/index.ts'

export { refuseScoped } from './scopes.ts'
export type { ApiKeyObstacle, VerifiedApiKey } from './verify.ts'

export interface ApiKeysDependencies {
  database: Database
  bus: Bus
  log: Log
  users: Pick<AuthStore, 'insertUser' | 'requireUser'>
  /** `api.max_page_size` */
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export interface ApiKeys {
  routes: Route[]
  /** @throws API_KEY_UNKNOWN */
  check: ApiKeyVerifier['check']
  /** Records a use of a key. */
  noteUse(id: string): void
  /** Whether the key of a caller still counts as it did when it was checked, expiry aside. */
  isValid(principal: Principal): boolean
  /** Deletes all keys of a user; to be committed with a `user.changed`. */
  removalOf(user: string): Step
  /** Subscribes to changes of keys and users; later subscribers find an empty cache. */
  start(): void
  /** Idempotent. */
  stop(): Promise<void>
}

export function createApiKeys(deps: ApiKeysDependencies): ApiKeys {
  const { database, bus, log, now } = deps
  const store = createApiKeyStore(database)
  const service = createApiKeyService({ database, store, users: deps.users, log, now })
  const verifier = createApiKeyVerifier({ store, now })
  const usage = createApiKeyUsage({ database, store, log, now })
  let unsubscribe: Unsubscribe[] = []
  return {
    routes: createApiKeyRoutes({
      service,
      findByIds: (ids) => store.findByIds(ids),
      lastUseOf: (id) => usage.lastOf(id),
      maxPageSize: deps.maxPageSize,
      maskSecrets: deps.maskSecrets,
    }),
    check: (key) => verifier.check(key),
    noteUse: (id) => usage.note(id),
    isValid({ apiKeyId, user, scopes }) {
      const row = apiKeyId === undefined ? undefined : store.findForCheckById(apiKeyId)
      const held = scopes === undefined ? null : writeJson(scopes)
      return row !== undefined && row.user === user && row.scopes === held && obstacleOf(row) === undefined
    },
    removalOf: (user) => store.deleteOfUser(user),
    start() {
      if (unsubscribe.length > 0) return
      unsubscribe = [
        bus.subscribe('api_key.changed', () => verifier.forget()),
        bus.subscribe('user.changed', () => verifier.forget()),
      ]
    },
    async stop() {
      for (const each of unsubscribe) each()
      unsubscribe = []
      await usage.stop()
    },
  }
}
