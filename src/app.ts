/**
 * The composition root: the only file that knows every module. What is listed here is the server; modules start in the
 * order of the list and stop in reverse.
 */
import { join, resolve } from 'node:path'
import type { Express } from 'express'
import { createMemoryBus } from './bus/index.ts'
import { ConfigProblems, type Config } from './config/index.ts'
import { openSqlite } from './db/index.ts'
import { loadEncryption } from './core/encryption.ts'
import {
  readFileLimit,
  shareFiles,
  createAboutRoutes,
  createAdmission,
  surplusOf,
  createHttpApp,
  admitOperators,
  listenOnControlSocket,
  type ControlSocket,
  readIdentities,
  renewIdentity,
  listen,
  type Listener,
  createOriginPolicy,
  createPeers,
  surfaces,
  type Surface,
  createHandshakeReport,
} from './http/index.ts'
import type { Log, RootLog } from './lib/log/index.ts'
import type { Module } from './core/module.ts'
import { createActions } from './modules/actions/index.ts'
import { createAuth } from './modules/auth/index.ts'
import { createBackups } from './modules/backups/index.ts'
import { createDatastore } from './modules/datastore/index.ts'
import { createExecutions } from './modules/executions/index.ts'
import { createInquiries } from './modules/inquiries/index.ts'
import { createMonitoring } from './modules/monitoring/index.ts'
import { createPacks } from './modules/packs/index.ts'
import { createPolicies } from './modules/policies/index.ts'
import { createRbac } from './modules/rbac/index.ts'
import { createRules } from './modules/rules/index.ts'
import { createStream } from './modules/stream/index.ts'
import { createTimers } from './modules/timers/index.ts'
import { createTraces } from './modules/traces/index.ts'
import { createTriggers } from './modules/triggers/index.ts'
import { createUi } from './modules/ui/index.ts'
import { createMaintenance } from './modules/maintenance/index.ts'
import { createWebhooks } from './modules/webhooks/index.ts'
import type { RecordKind } from './core/retention.ts'
import { controlSocketName, readRunFile, removeRunFile, writeRunFile } from './core/run-file.ts'
import { createRunners, createLauncher } from './runners/index.ts'
import { now } from './core/time.ts'
import { version } from './core/version.ts'
import type { PackConfigs } from './modules/executions/ports.ts'
import type { KeptElsewhere } from './modules/backups/types.ts'

export interface App {
  /** Address of each listener, with the ports that were really taken. */
  readonly urls: Readonly<Record<Surface, string>>
  /**
   * Refuses new work, lets running actions finish for the configured grace, ends what is left, closes the database.
   * Idempotent. @throws AggregateError with everything that went wrong on the way
   */
  stop(): Promise<void>
  /**
   * Reads certificates again, and whatever else people change in files (SIGHUP). Of calls while one is under way only one
   * more is made, after it. Never rejects: what cannot be used is logged, and the server goes on with what it had.
   */
  reload(): Promise<void>
  /** A round of the garbage collector at once (SIGUSR2). Never rejects. */
  collect(): Promise<void>
  /** While it stops: running actions get no more time. */
  hurry(): void
}

/** Time for requests under way to be answered once nothing runs any more. */
const LAST_ANSWERS_MS = 2000

/** A year: browsers that came over TLS once refuse to come otherwise. */
const strictTransport = { 'Strict-Transport-Security': 'max-age=31536000' }

/**
 * Starts the whole server. When something fails, what was started before is stopped again.
 *
 * @param configFiles where the configuration comes from
 * @throws ConfigProblems for files and folders that the configuration names and that cannot be used
 */
export async function startApp(config: Config, log: RootLog, configFiles: readonly string[] = []): Promise<App> {
  const undo: (() => Promise<void>)[] = []
  try {
    return await assemble(config, log, configFiles, undo)
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(() => undefined)
    throw error
  }
}

async function assemble(
  config: Config,
  log: RootLog,
  configFiles: readonly string[],
  undo: (() => Promise<void>)[],
): Promise<App> {
  const startedAt = now()
  // Its thread takes longer to start than anything else here, and needs nothing of it.
  const launching = createLauncher()
  undo.push(async () => (await launching).launcher.stop())
  const identities = await readIdentities(config, log)
  const files = shareFilesOf(config, log)
  const urls: Record<Surface, string> = { auth: '', api: '', stream: '' }
  const apiUrl = (): string => config.auth.api_url || urls.api

  const bus = createMemoryBus((error, fact) => log.error('bus.listener_failed', 'A listener failed', { fact, error }))
  const database = await openSqlite({
    path: config.database.path,
    synchronous: config.database.synchronous,
    reserveBytes: config.database.reserve_bytes,
    ...(config.backup.before_migration ? { backupDirectory: config.backup.directory } : {}),
    log,
    announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
  })
  undo.push(() => database.close())
  refuseSharedFolder(config.system.base_path)

  const encryption = await loadEncryption({
    enabled: config.keyvalue.enable_encryption,
    keyPath: config.keyvalue.encryption_key_path,
    ownKeyPath: join(config.system.base_path, 'keys', 'secrets.json'),
  })

  const { launcher, fallbackReason } = await launching
  if (fallbackReason !== undefined) {
    log.warning('launcher.fallback', 'Processes are started the slower way', { reason: fallbackReason })
  }
  const runners = await createRunners({
    launcher,
    maxResultBytes: config.actionrunner.max_result_bytes,
    decodeJsonOutput: config.actionrunner.decode_json_output,
    basePath: config.system.base_path,
    systemUser: config.system_user.user,
    packManager: { perform: (operation, parameters, work) => packs.manager.perform(operation, parameters, work) },
    ssh: {
      knownHostsFile: config.ssh_runner.known_hosts_file,
      hostKeyChecking: config.ssh_runner.host_key_checking,
      keyFile: config.system_user.ssh_key_file,
      configPath: config.ssh_runner.use_ssh_config ? config.ssh_runner.ssh_config_file_path : undefined,
      connectTimeoutSeconds: config.ssh_runner.ssh_connect_timeout,
      remoteDir: config.ssh_runner.remote_dir,
      allowPartialFailure: config.ssh_runner.allow_partial_failure,
      maxParallel: config.ssh_runner.max_parallel_actions,
    },
    http: {
      allowedPrivateNetworks: config.http_runner.allowed_private_networks,
      maxBodyBytes: config.http_runner.max_body_bytes,
    },
    python: {
      binary: config.actionrunner.python_binary,
      poolSize: config.actionrunner.python_pool_size,
      logLevel: config.actionrunner.python_runner_log_level,
      enableCommonLibs: config.packs.enable_common_libs,
      virtualenvOpts: config.actionrunner.virtualenv_opts,
      pipOpts: config.actionrunner.pip_opts,
      maxPageSize: config.api.max_page_size,
    },
    warn: (message, fields) => log.of('actionrunner').warning('process.survived', message, fields),
  })
  undo.push(() => runners.stop())
  if (runners.systemUser.reason !== undefined) {
    log.warning('system_user.unavailable', `${runners.systemUser.reason}; commands run as the server's own account.`)
  }

  const monitoring = createMonitoring({
    database,
    bus,
    log,
    config: config.metrics,
    tracing: config.tracing,
    causeOf: (instanceId) => executionIn(triggers.findInstance(instanceId)?.payload),
  })
  const { metrics } = monitoring
  const peers = createPeers(config.auth.trusted_proxies, {
    believeRemoteAddr: config.auth.enable && config.auth.mode === 'proxy',
  })
  const origins = createOriginPolicy({
    allowedOrigins: [
      ...config.api.allow_origin,
      'http://127.0.0.1:3000',
      'http://localhost:8080',
      'http://127.0.0.1:8080',
      ...(config.auth.api_url === '' ? [] : [new URL(config.auth.api_url).origin]),
    ],
    knownHosts: config.auth.enable || config.system.allow_open_network ? undefined : knownHosts(config),
  })

  const rbac = createRbac({
    database,
    bus,
    log,
    config: config.rbac,
    basePath: config.system.base_path,
    maxPageSize: config.api.max_page_size,
  })
  const auth = createAuth({
    database,
    bus,
    log: log.of('auth'),
    peers,
    origins,
    config: config.auth,
    cookie: { secure: config.api.auth_cookie_secure, sameSite: config.api.auth_cookie_same_site },
    basePath: config.system.base_path,
    rbac,
    syncsGroups: config.rbac.enable && config.rbac.sync_remote_groups,
    maxPageSize: config.api.max_page_size,
    maskSecrets: config.api.mask_secrets && config.log.mask_secrets,
    systemUser: config.system_user.user,
    apiUrl,
    planUserDeleted: (user) => datastore.planUserDeleted(user),
  })
  const datastore = createDatastore({
    database,
    log,
    encryption,
    rightsOf: (user, scopes) =>
      rbac.rightsOf({ user, isAdmin: false, method: 'none', ...(scopes === undefined ? {} : { scopes }) }),
    planEvent: (ref, payload) => triggers.planInternal(ref, payload),
    settings: { accessControl: rbac.enabled, maxPageSize: config.api.max_page_size },
  })
  const traces = createTraces({
    database,
    maxPageSize: config.api.max_page_size,
    openTraces: () => [...executions.openTraces(), ...triggers.openTraces()],
  })
  const triggers = createTriggers({
    database,
    bus,
    log: log.of('notifier'),
    traces,
    encryption,
    hasRules: (triggerId) => rules.hasRules(triggerId),
    templates: (reader) => datastore.templates(reader),
    settings: {
      validateParameters: config.system.validate_trigger_parameters,
      validatePayload: config.system.validate_trigger_payload,
      emitWhen: config.action_sensor.enable ? config.action_sensor.emit_when : [],
      queueLimit: config.actionrunner.queue_limit,
      maxPageSize: config.api.max_page_size,
    },
  })
  const actions = createActions({
    database,
    log,
    planEvent: (ref, payload) => triggers.planInternal(ref, payload),
    maxPageSize: config.api.max_page_size,
  })
  const packConfigs: PackConfigs = { resolve: (pack, reader) => packs.resolve(pack, reader) }
  const executions = createExecutions({
    database,
    bus,
    log: log.of('actionrunner'),
    metrics,
    encryption,
    actions,
    rolesOf: rbac.enabled ? (user) => rbac.rolesOf(user) : undefined,
    traces,
    runners: runners.list,
    sweep: (leftovers) => runners.sweep(leftovers),
    bootId: runners.bootId,
    serviceTokens: auth.serviceTokens,
    settings: {
      streamOutput: config.actionrunner.stream_output,
      actionsPoolSize: files.actions,
      shutdownGraceSeconds: config.actionrunner.shutdown_grace_seconds,
      queueLimit: config.actionrunner.queue_limit,
      pollSeconds: config.scheduler.sleep_interval,
      expiresPending: config.garbagecollector.purge_inquiries,
      maxPageSize: config.api.max_page_size,
      maskSecrets: config.api.mask_secrets && config.log.mask_secrets,
      webUrl: () => config.webui.webui_base_url || urls.api,
      apiUrl: () => `${apiUrl()}/v1`,
      systemUser: config.system_user.user,
    },
    templates: (reader) => datastore.templates(reader),
    packConfigs,
    policies: {
      limitsOf: (execution, open) => policies.limitsOf(execution, open),
      planRetry: (ended) => policies.planRetry(ended),
    },
    planReaction: (execution, parameters) => triggers.planReaction(execution, parameters),
  })
  const policies = createPolicies({
    database,
    bus,
    log,
    actions,
    executions,
    settings: { systemUser: config.system_user.user, maxPageSize: config.api.max_page_size },
  })
  const inquiries = createInquiries({
    executions,
    log,
    rolesOf: rbac.enabled ? (user) => rbac.rolesOf(user) : undefined,
    settings: { maxPageSize: config.api.max_page_size, expires: config.garbagecollector.purge_inquiries },
  })
  const rules = createRules({
    database,
    bus,
    log: log.of('rulesengine'),
    metrics,
    actions,
    executions,
    triggers,
    traces,
    templates: (reader) => datastore.templates(reader),
    packConfigs,
    settings: {
      systemUser: config.system_user.user,
      maxPageSize: config.api.max_page_size,
      maskSecrets: config.api.mask_secrets && config.log.mask_secrets,
    },
  })
  const packs = createPacks({
    database,
    triggers,
    actions,
    rules,
    policies,
    encryption,
    log,
    metrics,
    templates: (reader) => datastore.templates(reader),
    startExecution: (caller, request) => executions.request(caller, request),
    virtualenvs: runners.virtualenvs,
    runnerTypes: runners.list.map((runner) => runner.definition),
    settings: {
      basePaths: [config.content.system_packs_base_path, ...config.content.packs_base_paths],
      configsPath: join(config.system.base_path, 'configs'),
      cachePath: join(config.system.base_path, 'cache'),
      watch: config.content.watch,
      maxPageSize: config.api.max_page_size,
      maskSecrets: config.api.mask_secrets && config.log.mask_secrets,
    },
  })
  const webhooks = createWebhooks({
    database,
    bus,
    log,
    triggers,
    executions,
    templates: (reader) => datastore.templates(reader),
    settings: { systemUser: config.system_user.user, queueLimit: config.actionrunner.queue_limit },
  })
  const timers = createTimers({
    database,
    bus,
    log: log.of('timersengine'),
    triggers,
    settings: {
      enabled: config.timersengine.enable,
      localTimeZone: config.timersengine.local_timezone,
      missed: config.timersengine.missed,
      maxPending: config.actionrunner.queue_limit,
    },
  })
  const stream = createStream({ bus, executions })

  const stateful: Module[] = [
    monitoring,
    rbac,
    auth,
    datastore,
    traces,
    triggers,
    actions,
    policies,
    packs,
    executions,
    inquiries,
    rules,
    webhooks,
    timers,
    stream,
    createUi(),
  ]
  const maintenance = createMaintenance({
    database,
    log: log.of('garbagecollector'),
    modules: [...stateful, { name: 'runners', maintenance: [...runners.maintenance] }],
    cancelOld: (caller, old, dryRun) => executions.cancelOld(caller, old, dryRun),
    newest: () => executions.last()?.start_timestamp,
    settings: {
      days: daysKept(config.garbagecollector),
      maxRecords: config.garbagecollector.max_records,
      maxDatabaseBytes: config.garbagecollector.max_database_bytes,
      pauseSeconds: config.garbagecollector.sleep_delay,
      intervalSeconds: config.garbagecollector.collection_interval,
    },
  })
  const backups = createBackups({
    database,
    log,
    settings: {
      directory: config.backup.directory,
      intervalSeconds: config.backup.interval,
      keep: config.backup.keep,
    },
    elsewhere: keptElsewhere(config, configFiles),
  })
  const modules: Module[] = [...stateful, maintenance, backups]
  const notReady = (): string[] => [
    ...(database.hasRoom() ? [] : ['storage_full']),
    ...modules.flatMap((module) => module.readiness?.() ?? []),
  ]
  monitoring.watch(modules, {
    startedAt,
    basePath: config.system.base_path,
    urls: () => urls,
    notReady,
    hasModule: (name) => modules.some((module) => module.name === name),
    isEnabled: (name) => name !== timers.name || config.timersengine.enable,
  })
  let isStarting = true
  let isStopping = false
  const routes = modules.flatMap((module) => module.routes ?? [])
  const app = createHttpApp({
    routes: [...routes, ...createAboutRoutes({ routes, apiUrl })],
    access: admitOperators(auth.access, config.system_user.user),
    origins,
    peers,
    maxBodyBytes: config.api.max_body_bytes,
    events: {
      heartbeatSeconds: config.stream.heartbeat,
      maxQueuedBytes: config.stream.client_buffer_bytes,
    },
    logs: { auth: log.of('auth'), api: log.of('api'), stream: log.of('stream') },
    metrics,
    authNeedsTls: config.auth.use_ssl,
    isStarting: () => isStarting,
    notReady,
    isStopping: () => isStopping,
  })

  // Before anything runs: an action is told the address of the API, and a server that is refused its ports must not
  // have touched the work that waits.
  const listeners: Listener[] = []
  const admission = createAdmission({ connections: files.connections, requests: config.system.max_requests })
  // Browsers apply it to all ports of a host, so one plain listener would be out of their reach.
  const headers = identities.size === surfaces.length ? strictTransport : {}
  for (const surface of surfaces) {
    const { host, port } = config[surface]
    const identity = identities.get(surface)
    const tls = identity && { identity, headers, handshakeFailed: createHandshakeReport(log, surface) }
    const listener = await listen(app, { surface, host, port, tls, admission })
    undo.push(() => listener.close(0))
    listeners.push(listener)
    urls[surface] = listener.url
  }
  const controls = await openControlSocket(app, config.system.base_path, log)
  for (const control of controls) undo.push(() => control.close(0))
  for (const module of modules) {
    undo.push(async () => module.stop?.())
    await module.start?.()
  }
  isStarting = false
  const basePath = config.system.base_path
  await writeRunFile(basePath, { started_at: startedAt, version, urls }).catch((error: unknown) =>
    log.warning('run_file.failed', 'Tools cannot be told which process this is', { error }),
  )
  undo.push(() => removeRunFile(basePath))

  const reload = oneAtATime(async () => {
    log.info('server.reloading', 'The server reads its files again')
    const parts: (readonly [name: string, part: () => Promise<void> | undefined])[] = [
      ...listeners.map((listener) => [listener.surface, () => renewIdentity(listener, config, log)] as const),
      ...modules.map((module) => [module.name, () => module.reload?.()] as const),
    ]
    for (const [name, part] of parts) {
      try {
        await part()
      } catch (error) {
        log.error('server.reload_failed', `The part ${name} of the server goes on with what it had`, { error })
      }
    }
  })

  let stopped: Promise<void> | undefined
  return {
    urls,
    collect: () => (isStopping ? Promise.resolve() : maintenance.collect()),
    reload: () => (isStopping ? Promise.resolve() : reload()),
    stop() {
      isStopping = true
      stopped ??= stopAll([
        // Everything listens to the end: clients are told to come again, and operators may ask how far the server is.
        () => stream.endAll(),
        ...modules.toReversed().map((module) => () => module.stop?.()),
        () => Promise.all([...listeners, ...controls].map((listener) => listener.close(LAST_ANSWERS_MS))),
        () => removeRunFile(basePath),
        () => runners.stop(),
        () => launcher.stop(),
        () => database.close(),
      ])
      return stopped
    },
    hurry: () => executions.hurry(),
  }
}

/** Its keys, its backups and its control socket are of one server, also where each has a database elsewhere. @throws ConfigProblems */
function refuseSharedFolder(basePath: string): void {
  const other = readRunFile(basePath)
  if (other === undefined) return
  throw new ConfigProblems([
    `system.base_path: ${basePath} is in use by another running server, process ${other.pid}; give each one of its own`,
  ])
}

/** How many connections and actions there may be at a time, as far as files can be opened for them. */
function shareFilesOf({ system, actionrunner }: Config, log: Log): { connections: number; actions: number } {
  const wanted = { connections: system.max_connections, actions: actionrunner.actions_pool_size }
  const limit = readFileLimit()
  const shares = shareFiles(limit, wanted, surplusOf)
  if (shares.connections < wanted.connections || shares.actions < wanted.actions) {
    log.warning(
      'files.limited',
      `The limit of open files (${limit}) leaves room for ${shares.connections} connections and ${shares.actions} actions at a time; raise it with ulimit -n or LimitNOFILE, or lower system.max_connections and actionrunner.actions_pool_size`,
    )
  }
  return shares
}

/** Of each kind; 0 keeps for ever. The specification's reading of `action_executions_ttl` is output (contract 10, 10.5). */
function daysKept(collector: Config['garbagecollector']): Record<RecordKind, number> {
  return {
    executions: collector.action_executions_record_ttl,
    output: collector.action_executions_output_ttl ?? collector.action_executions_ttl,
    'trigger-instances': collector.trigger_instances_ttl,
    traces: collector.traces_ttl,
    tokens: collector.tokens_ttl,
    'rule-enforcements': collector.rule_enforcements_ttl,
  }
}

/** What the server consists of besides its database. */
function keptElsewhere(config: Config, configFiles: readonly string[]): KeptElsewhere[] {
  const { base_path: basePath } = config.system
  const { file_path: passwords = join(basePath, 'htpasswd') } = config.auth.backend_kwargs
  const keys = config.keyvalue.encryption_key_path
  return [
    ...configFiles.map((path) => ({ what: 'the configuration', path: resolve(path) })),
    { what: 'the keys, without which no secret in the backup can be read', path: join(basePath, 'keys') },
    ...(keys === '' ? [] : [{ what: 'the keys of the datastore', path: keys }]),
    ...(config.auth.backend === 'flat_file' ? [{ what: 'the passwords of users', path: String(passwords) }] : []),
    { what: 'the definitions of roles', path: join(basePath, 'rbac') },
    ...[config.content.system_packs_base_path, ...config.content.packs_base_paths].map((path) => ({
      what: 'packs',
      path,
    })),
    { what: 'the configurations of packs', path: join(basePath, 'configs') },
    { what: 'the known keys of other hosts', path: config.ssh_runner.known_hosts_file },
    ...surfaces.flatMap((surface) => {
      const { use_ssl: usesTls, cert, key } = config[surface]
      return usesTls ? [cert, key].map((path) => ({ what: `TLS of the ${surface} listener`, path })) : []
    }),
  ]
}

/** One, or none: the server serves without it all the same. */
async function openControlSocket(app: Express, basePath: string, log: Log): Promise<ControlSocket[]> {
  const path = join(basePath, controlSocketName)
  try {
    return [await listenOnControlSocket(app, path)]
  } catch (error) {
    log.warning('control_socket.failed', 'Operators have to log in: the control socket cannot be made', { path, error })
    return []
  }
}

/** Of calls while `work` is under way only one more is made, after it, so that the last one has seen everything. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const begin = (): Promise<void> => {
    running = work().finally(() => {
      running = undefined
    })
    return running
  }
  return () => {
    if (running === undefined) return begin()
    next ??= running.then(() => {
      next = undefined
      return begin()
    })
    return next
  }
}

/** Every step, in order, whatever the others did. */
async function stopAll(steps: (() => unknown)[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'The server did not stop cleanly')
}

/** Of the payload of triggers that executions dispatch. */
function executionIn(payload: unknown): string | undefined {
  const id = typeof payload === 'object' && payload !== null && 'execution_id' in payload && payload.execution_id
  return typeof id === 'string' ? id : undefined
}

/** Names that a browser may know this server by while nobody has to sign in. */
function knownHosts(config: Config): ReadonlySet<string> {
  const urls = [config.auth.api_url, config.webui.webui_base_url].filter((url) => url !== '')
  return new Set([config.auth.host, config.api.host, config.stream.host, ...urls.map((url) => new URL(url).hostname)])
}
