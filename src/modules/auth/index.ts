/** Authentication: who may log in, tokens, and who is calling. */
import { join } from 'node:path'
import type { Bus, Unsubscribe } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import { authenticationOff } from '../../core/errors.ts'
import { openAccess, type AccessControl, type OriginPolicy, type Peers } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { Rbac } from '../rbac/index.ts'
import type { Clock } from '../../core/clock.ts'
import type { AuthPorts } from './ports.ts'
import { createAccess } from './access.ts'
import { createLoginAdmission } from './admission.ts'
import { createApiKeys } from './api-keys/index.ts'
import { BackendProblem, type AuthBackend } from './backends/backend.ts'
import { findFirstAdministrator } from './backends/first-administrator.ts'
import { createBackend } from './backends/index.ts'
import { createPasswordCheck, type Source } from './password-check.ts'
import { createImpersonation } from './impersonation.ts'
import { createLogins } from './logins.ts'
import { createAuthRoutes } from './routes.ts'
import type { AuthSettings } from './settings.ts'
import { createSensorTokens, type SensorTokens } from './sensor-tokens.ts'
import { createServiceTokens } from './service-tokens.ts'
import { createTokenService, type TokenService } from './service.ts'
import { createTokenRetention } from './retention.ts'
import { createAuthStore } from './store.ts'
import { createThrottle, type Throttle, type Trier } from './throttle.ts'
import { loadTokenKey } from './token-key.ts'
import { createTokens, type Tokens } from './tokens.ts'
import { createUsersRoutes } from './users-routes.ts'
import { createUsers, type Users } from './users.ts'
import { createWatchers, type Watchers } from './watchers.ts'
import type { ServiceTokens } from '../executions/ports.ts'

export interface AuthDependencies extends AuthPorts, AuthSettings {
  database: Database
  bus: Bus
  log: Log
  peers: Peers
  origins: Pick<OriginPolicy, 'isForeign'>
  /** Absolute `system.base_path`. */
  basePath: string
  /** Who is calling while authentication is off. */
  systemUser: string
  rbac: Rbac
  /** `api.max_page_size` */
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** Public base URL of the API, without version and trailing slash. */
  readonly apiUrl: () => string
  clock: Pick<Clock, 'now' | 'monotonic'>
}

export interface Auth extends Module {
  /** For the chain of every request; with authentication on it works once the module was started. */
  readonly access: AccessControl
  /** For the executions module. */
  readonly serviceTokens: ServiceTokens
  /** For the sensors module. */
  readonly sensorTokens: SensorTokens
}

interface Running {
  tokens: Tokens
  service: TokenService
  users: Users
  access: AccessControl
  /** Undefined in proxy mode. */
  backend: AuthBackend | undefined
  watchers: Watchers
  unsubscribe: Unsubscribe[]
}

/** `start` throws a one-line error that names the option if the backend or the key of the tokens cannot be used. */
export function createAuth(deps: AuthDependencies): Auth {
  const { database, bus, log, config, basePath, clock } = deps
  const now = (): number => clock.now()
  const store = createAuthStore(database)
  // Keys can also be prepared while authentication is off.
  const { maxPageSize, maskSecrets } = deps
  const apiKeys = createApiKeys({ database, bus, log, users: store, maxPageSize, maskSecrets, now })
  let running: Running | undefined

  function requireRunning(): Running {
    if (running === undefined) throw authenticationOff()
    return running
  }

  /** `backend` is undefined in proxy mode, `groupsOf` where groups bring no roles. @throws BackendProblem */
  async function openBackend(): Promise<{ backend?: AuthBackend; groupsOf?: AuthBackend['groupsOf'] }> {
    if (config.mode === 'proxy') {
      if (!deps.syncsGroups) return {}
      throw new BackendProblem(
        'rbac.sync_remote_groups: with auth.mode = proxy no backend provides the groups of users; set the option to False',
      )
    }
    const backend = await createBackend(config.backend, config.backend_kwargs, { basePath, log })
    if (!deps.syncsGroups) return { backend }
    if (backend.groupsOf !== undefined) return { backend, groupsOf: backend.groupsOf.bind(backend) }
    await backend.stop?.()
    throw new BackendProblem(
      `rbac.sync_remote_groups: the authentication backend "${config.backend}" (auth.backend) has no groups; set the option to False, or use ldap or pam`,
    )
  }

  function openThrottle(): Throttle<Trier & Source> {
    return createThrottle({
      failuresPerUser: config.failures_per_user,
      failuresPerAddress: config.failures_per_address,
      windowSeconds: config.failure_window,
      maxWaitSeconds: config.max_failure_wait,
      now: () => clock.monotonic(),
      onWait: ({ user, address, requestId }, { of, failures, seconds }) => {
        const message = `Too many failed logins of this ${of}; further attempts are refused until the wait ends`
        const fields = { user, remote_address: address, request_id: requestId, failures, wait_seconds: seconds }
        log.audit('login.throttled', message, fields)
      },
    })
  }

  async function start(): Promise<void> {
    if (!config.enable || running !== undefined) return
    const key = await loadTokenKey(join(basePath, 'keys', 'token.key'))
    const { backend, groupsOf } = await openBackend()
    const throttle = openThrottle()
    const checkPassword = backend && createPasswordCheck(backend, throttle)
    const tokens = createTokens({ key, findRow: (id) => store.findToken(id), now })
    // Subscribes first: later subscribers then find an empty cache.
    apiKeys.start()
    const unsubscribe = [
      bus.subscribe('token.revoked', ({ id }) => tokens.forget(id)),
      bus.subscribe('token.prolonged', ({ id }) => tokens.forget(id)),
      bus.subscribe('user.changed', () => tokens.forgetAll()),
    ]
    // Of actions of a server that crashed: none of them runs any more.
    await database.write({ steps: [store.deleteServiceTokens()], facts: [] })
    const logins = createLogins()
    const watchers = createWatchers({
      bus,
      isValid: (principal) => (principal.method === 'api_key' ? apiKeys : tokens).isValid(principal),
    })
    running = {
      backend,
      watchers,
      unsubscribe,
      tokens,
      service: createTokenService({
        database,
        store,
        tokens,
        impersonate: createImpersonation(store, deps.rbac),
        logins,
        maxTtlSeconds: config.token_ttl,
        log,
        now,
      }),
      users: createUsers({
        database,
        store,
        apiKeys,
        logins,
        log,
        accounts: backend?.accounts,
        checkPassword,
        planDeletion: deps.planUserDeleted,
        backendName: backend === undefined ? 'proxy' : config.backend,
        forgetGroups: async (user) => {
          if (groupsOf !== undefined) await deps.rbac.syncGroups(user, [])
        },
        now,
      }),
      access: createAccess({
        tokens,
        apiKeys,
        checkPassword,
        userHeader: config.remote_user_header,
        throttle,
        logins,
        admit: createLoginAdmission({ store, log, rbac: deps.rbac, groupsOf }),
        peers: deps.peers,
        origins: deps.origins,
        cookie: deps.cookie,
        log,
        clock,
        rights: deps.rbac,
        watchers,
      }),
    }
    await deps.rbac.ensureAdministrator(async () =>
      // Of another backend, or another file, this server has made no account.
      backend === undefined || config.backend !== 'flat_file' || 'file_path' in config.backend_kwargs
        ? undefined
        : findFirstAdministrator(backend, basePath),
    )
  }

  async function stop(): Promise<void> {
    running?.unsubscribe.forEach((each) => each())
    running?.watchers.stop()
    await apiKeys.stop()
    await running?.backend?.stop?.()
  }

  return {
    name: 'auth',
    routes: [
      ...createAuthRoutes({
        service: () => requireRunning().service,
        apiUrl: deps.apiUrl,
        cookie: deps.cookie,
        origins: deps.origins,
        clock: deps.clock,
        rbac: deps.rbac,
      }),
      ...createUsersRoutes({ users: () => requireRunning().users, maxPageSize }),
      ...apiKeys.routes,
    ],
    retention: [createTokenRetention({ store, database })],
    serviceTokens: createServiceTokens({
      store,
      tokens: () => running?.tokens,
      enabled: config.enable,
      ttlSeconds: config.service_token_ttl,
      systemUser: deps.systemUser,
      log,
    }),
    sensorTokens: createSensorTokens({
      database,
      store,
      tokens: () => running?.tokens,
      ttlSeconds: config.service_token_ttl,
      now,
      log,
    }),
    access: config.enable
      ? {
          authenticate: (request, response) => requireRunning().access.authenticate(request, response),
          login: (request, response) => requireRunning().access.login(request, response),
          rightsOf: (principal) => requireRunning().access.rightsOf(principal),
          hasCredential: (request) => requireRunning().access.hasCredential(request),
          isCurrent: (principal) => requireRunning().access.isCurrent(principal),
          watch: (principal, ended) => requireRunning().access.watch(principal, ended),
        }
      : openAccess(deps.systemUser),
    start,
    stop,
  }
}

export { authSettings } from './settings.ts'

export type { SensorTokens } from './sensor-tokens.ts'
