/**
 * The composition root: the only file that knows every module. The list below is the server; modules start in this
 * order and stop in reverse.
 */
import { createMemoryBus } from './bus/index.ts'
import { commonSettings, databaseSettings, keysFolder, refuseSharedFolder, type Config } from './config/index.ts'
import { machineClock, type Clock } from './core/clock.ts'
import { loadEncryption } from './core/encryption.ts'
import { createLogFolders } from './core/log-folders.ts'
import type { ExecutionStatus } from './core/execution-status.ts'
import { readinessOf, type Module, type NotReady } from './core/module.ts'
import { now } from './core/time.ts'
import { createCompanions, merge, openSqlite } from './db/index.ts'
import {
  admitOperators,
  createBasePath,
  createOriginPolicy,
  createPeers,
  originSettings,
  peersOptions,
  readIdentities,
  shareFilesOf,
  startServer,
  type Surface,
} from './http/index.ts'
import { runAll } from './lib/concurrency/index.ts'
import type { RootLog } from './lib/log/index.ts'
import { createActions } from './modules/actions/index.ts'
import { createAliases } from './modules/aliases/index.ts'
import { authSettings, createAuth } from './modules/auth/index.ts'
import { createBackups, notIncluded } from './modules/backups/index.ts'
import { createDatastore } from './modules/datastore/index.ts'
import { createExecutions, executionsSettings, type Execution } from './modules/executions/index.ts'
import { createIdempotency } from './modules/idempotency/index.ts'
import { createInquiries, inquiriesSettings } from './modules/inquiries/index.ts'
import { createJobs } from './modules/jobs/index.ts'
import { createMaintenance, maintenanceSettings } from './modules/maintenance/index.ts'
import { createMonitoring } from './modules/monitoring/index.ts'
import { createNotifications, notificationsSettings } from './modules/notifications/index.ts'
import { createPacks, packsSettings } from './modules/packs/index.ts'
import { createPolicies } from './modules/policies/index.ts'
import { createRbac } from './modules/rbac/index.ts'
import { createRules } from './modules/rules/index.ts'
import { createSensors, sensorsSettings } from './modules/sensors/index.ts'
import { createStream } from './modules/stream/index.ts'
import { createTimers, timersSettings } from './modules/timers/index.ts'
import { createTemplateThread } from './core/rendering/index.ts'
import { createTraces } from './modules/traces/index.ts'
import { createTriggers, triggersSettings } from './modules/triggers/index.ts'
import { createUi } from './modules/ui/index.ts'
import type { Ports } from './modules/ports.ts'
import { createWebhooks } from './modules/webhooks/index.ts'
import { createWorkflows } from './modules/workflows/index.ts'
import { createLauncher, createRunners, runnersSettings, workflowRunners, type HttpGet } from './runners/index.ts'

export interface App {
  /** Address of each listener, with its actual port. */
  readonly urls: Readonly<Record<Surface, string>>
  /** Refuses new work, gives running actions a grace period, then ends them. Idempotent. @throws AggregateError */
  stop(): Promise<void>
  /** Reloads certificates and other files (SIGHUP). Never rejects: unusable files are logged and ignored. */
  reload(): Promise<void>
  /** Runs the garbage collector at once (SIGUSR2). Never rejects. */
  collect(): Promise<void>
  /** During a stop: ends the grace period of running actions. */
  hurry(): void
  /** Number of actions that run now: a stop gives them the grace period. */
  running(): number
  /** Calls the listener with every change of an execution from now on; `from` is its previous status, if any. */
  watchExecutions(listener: (execution: Execution, from?: ExecutionStatus) => void): void
}

/**
 * Starts the whole server. When a step fails, undoes the previous steps.
 *
 * @param configFiles the files that the configuration was read from
 * @param clock for logins, timers and restarts of sensors; all else uses the clock of this machine
 * @param get for requests of the server itself; undefined: those to the internet
 * @throws ConfigProblems for files and folders in the configuration that cannot be used
 */
export async function startApp(
  config: Config,
  log: RootLog,
  configFiles: readonly string[] = [],
  clock = machineClock,
  get?: HttpGet,
): Promise<App> {
  const undo: (() => Promise<void>)[] = []
  try {
    return await assemble(config, log, configFiles, clock, get, undo)
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(() => undefined)
    throw error
  }
}

async function assemble(
  config: Config,
  log: RootLog,
  configFiles: readonly string[],
  clock: Clock,
  get: HttpGet | undefined,
  undo: (() => Promise<void>)[],
): Promise<App> {
  const startedAt = now()
  // The launcher's thread takes longer to start than anything else here and depends on nothing.
  const launching = createLauncher()
  undo.push(async () => (await launching).launcher.stop())
  const identities = await readIdentities(config, log)
  const shares = shareFilesOf(config, log)
  const common = commonSettings(config)
  const { basePath, systemUser, maxPageSize, compat } = common
  const urls: Record<Surface, string> = { auth: '', api: '', stream: '' }
  const apiUrl = (): string => config.auth.api_url || urls.api
  const webUrl = (): string => config.webui.webui_base_url || urls.api

  const bus = createMemoryBus((error, fact) => log.error('bus.listener_failed', 'A listener failed', { fact, error }))
  const opened = await openSqlite({
    ...databaseSettings(config),
    keepBallast: true,
    log,
    announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
  })
  undo.push(() => opened.close())
  const companions = createCompanions(opened)
  const { database } = companions
  refuseSharedFolder(basePath)
  const { enable_encryption: enabled, encryption_key_path: keyPath } = config.keyvalue
  const encryption = await loadEncryption({ enabled, keyPath, ownKeyPath: `${keysFolder(config)}/secrets.json` })

  // The table of ports in docs/architecture.md, section 3; tests/boundaries.test.ts compares the two.
  const ports: Ports = {
    runners: {
      packManager: { perform: (...request) => packs.manager.perform(...request) },
      packVersions: { hold: (...request) => packs.versions.hold(...request) },
    },
    monitoring: { causeOf: (instanceId) => triggers.causeOf(instanceId) },
    auth: {
      planUserDeleted: (user) => merge(datastore.planUserDeleted(user), idempotency.planUserDeleted(user)),
    },
    datastore: { planEvent: (ref, payload) => triggers.planInternal(ref, payload) },
    traces: { openTraces: () => [...executions.openTraces(), ...triggers.openTraces()] },
    triggers: { hasRules: (triggerId) => rules.hasRules(triggerId) },
    actions: { planEvent: (ref, payload) => triggers.planInternal(ref, payload) },
    executions: {
      planReaction: (...change) => triggers.planReaction(...change),
      packConfigs: { resolve: (pack, reader) => packs.resolve(pack, reader) },
      policies: {
        limitsOf: (execution, open) => policies.limitsOf(execution, open),
        planRetry: (ended) => policies.planRetry(ended),
      },
      notifications: { planEnd: (...end) => notifications.planEnd(...end) },
      workflows: {
        begin: (execution, start) => workflows.begin(execution, start),
        follow: (before, after, unit) => workflows.follow(before, after, unit),
        holdersOf: (executions) => workflows.holdersOf(executions),
        remove: (executions) => workflows.remove(executions),
      },
      jobs: { planEnd: (ended, attempt) => jobs.planEnd(ended, attempt) },
      rules: { keeps: () => rules.keeps() },
    },
    rules: {
      packConfigs: { resolve: (pack, reader) => packs.resolve(pack, reader) },
      jobs: {
        planWritten: (rule) => jobs.planWritten(rule),
        planDeleted: (ruleId) => jobs.planDeleted(ruleId),
        statesOf: (some) => jobs.statesOf(some),
      },
      timesOf: (...timer) => timers.timesOf(...timer),
    },
    jobs: { notifications: { planMissed: (missed) => notifications.planMissed(missed) } },
    sensors: { packConfigs: { resolve: (pack, reader) => packs.resolve(pack, reader) } },
  }

  const { launcher, fallbackReason } = await launching
  if (fallbackReason !== undefined) {
    log.warning('launcher.fallback', 'Processes are started the slower way', { reason: fallbackReason })
  }
  const runners = await createRunners({
    launcher,
    clock,
    ...runnersSettings(config, common),
    ...ports.runners,
    warn: (message, fields) => log.of('actionrunner').warning('process.survived', message, fields),
  })
  undo.push(() => runners.stop())
  const { commandAccount, systemUser: decision } = runners
  const runsAs = commandAccount.isRoot ? `root. ${commandAccount.remedy}` : `the server's own account.`
  if (decision.reason !== undefined) {
    log.warning('system_user.unavailable', `${decision.reason}; commands run as ${runsAs}`)
  } else if (commandAccount.isRoot) log.warning('system_user.root', `Commands run as ${runsAs}`)

  const { tracing } = config
  const monitoring = createMonitoring({ database, bus, log, config: config.metrics, tracing, ...ports.monitoring })
  const { metrics } = monitoring
  const platform = { database, bus, log, metrics, encryption }
  const idempotency = createIdempotency({ companions, encryption, log: log.of('api') })
  const rbac = createRbac({ ...platform, config: config.rbac, ...common })
  const rolesOf = rbac.enabled ? (user: string) => rbac.rolesOf(user) : undefined
  const peers = createPeers(config.auth.trusted_proxies, peersOptions(config))
  const origins = createOriginPolicy(originSettings(config))
  const auth = createAuth({
    ...platform,
    clock,
    log: log.of('auth'),
    peers,
    origins,
    ...authSettings(config),
    rbac,
    ...common,
    apiUrl,
    ...ports.auth,
  })
  const datastore = createDatastore({
    ...platform,
    rightsOf: (user, scopes) => rbac.rightsOfUser(user, scopes),
    settings: { accessControl: rbac.enabled, maxPageSize, compat },
    ...ports.datastore,
  })
  const { templates } = datastore
  const traces = createTraces({ database, log, maxPageSize, ...ports.traces })
  const triggers = createTriggers({
    ...platform,
    log: log.of('notifier'),
    traces,
    templates,
    settings: triggersSettings(config, common, webUrl),
    ...ports.triggers,
  })
  const templateThread = createTemplateThread()
  undo.push(() => templateThread.stop())
  const actions = createActions({ database, log, templateThread, maxPageSize, ...ports.actions })
  const executions = createExecutions({
    ...platform,
    log: log.of('actionrunner'),
    actions,
    rolesOf,
    traces,
    runners: runners.list,
    killOrphans: (orphans) => runners.killOrphans(orphans),
    bootId: runners.bootId,
    serviceTokens: auth.serviceTokens,
    templates,
    settings: executionsSettings(config, common, { actionsPoolSize: shares.actions, webUrl, publicApiUrl: apiUrl }),
    ...ports.executions,
  })
  const workflows = createWorkflows({
    ...platform,
    log: log.of('workflowengine'),
    actions,
    datastore,
    executions,
    clock,
    settings: {
      apiUrl: () => `${apiUrl()}/v1`,
      maxTasks: config.workflow_engine.max_tasks,
      maxIdleSeconds: config.workflow_engine.gc_max_idle_sec,
      systemUser,
      compat,
    },
  })
  const policies = createPolicies({ ...platform, actions, executions, settings: common })
  const aliases = createAliases({ ...platform, actions, executions, templateThread, settings: common })
  const inquiries = createInquiries({ executions, log, rolesOf, settings: inquiriesSettings(config, common) })
  const rules = createRules({
    ...platform,
    log: log.of('rulesengine'),
    actions,
    executions,
    triggers,
    traces,
    templates,
    templateThread,
    rightsOf: (user, scopes) => rbac.rightsOfUser(user, scopes),
    settings: {
      ...common,
      cascade: { maxDepth: config.rules.max_depth, maxCascade: config.rules.max_cascade },
    },
    ...ports.rules,
  })
  const sensors = createSensors({
    ...platform,
    clock,
    log: log.of('sensorcontainer'),
    triggers,
    datastore,
    tokens: auth.sensorTokens,
    runners,
    apiUrl: () => `${apiUrl()}/v1`,
    settings: sensorsSettings(config, common),
    ...ports.sensors,
  })
  const notifications = createNotifications({
    ...platform,
    clock,
    log: log.of('notifier'),
    rules,
    actions,
    templates,
    post: runners.post,
    runHelper: runners.runHelper,
    webUrl,
    settings: notificationsSettings(config, common),
  })
  const packs = createPacks({
    ...platform,
    triggers,
    actions,
    rules,
    aliases,
    policies,
    sensors,
    notifications,
    templates,
    startExecution: (caller, request) => executions.request(caller, request),
    virtualenvs: runners.virtualenvs,
    get: get ?? runners.get,
    runnerTypes: [...runners.list.map((runner) => runner.definition), ...workflowRunners],
    settings: packsSettings(config, common),
  })
  const webhooks = createWebhooks({
    ...platform,
    triggers,
    executions,
    templates,
    get: get ?? runners.get,
    versionOf: (triggerId) => rules.versionOf(triggerId),
    rulesOf: (triggerId, rights) => rules.refsOf(triggerId, rights),
    settings: common,
  })
  const settings = timersSettings(config, common)
  const timers = createTimers({
    ...platform,
    clock,
    log: log.of('timersengine'),
    triggers,
    isUsed: (triggerId) => rules.hasRules(triggerId),
    rulesOf: (triggerId, rights) => rules.refsOf(triggerId, rights),
    settings,
  })
  const jobs = createJobs({
    ...platform,
    clock,
    log: log.of('rulesengine'),
    rules,
    executions,
    triggers,
    timers,
    settings: common,
    ...ports.jobs,
  })
  const stream = createStream({ bus, executions, compat })
  const baseFolder = createBasePath({ path: basePath, log })
  const data: Module[] = [createLogFolders(log), monitoring, idempotency, rbac, auth, datastore]
  // Destinations are known before executions recover, whose ends they hear of.
  const base: Module[] = [
    baseFolder,
    ...data,
    traces,
    triggers,
    actions,
    aliases,
    policies,
    sensors,
    notifications,
    packs,
  ]
  // Executions that end while the server stops still bring about what follows in their workflows.
  const engine: Module[] = [
    workflows,
    executions,
    inquiries,
    rules,
    webhooks,
    timers,
    jobs,
    sensors.container,
    stream,
    createUi(),
  ]
  const maintenance = createMaintenance({
    ...platform,
    log: log.of('garbagecollector'),
    modules: [...base, ...engine, { name: 'runners', maintenance: [...runners.maintenance] }],
    cancelOld: (caller, old, dryRun) => executions.cancelOld(caller, old, dryRun),
    newest: () => executions.last()?.start_timestamp,
    settings: maintenanceSettings(config),
  })
  const backups = createBackups({ database, log, config: config.backup, notIncluded: notIncluded(config, configFiles) })

  const modules: Module[] = [...base, ...engine, maintenance, backups]
  const notReady = (): NotReady[] => readinessOf(modules, database)
  monitoring.observe(modules, { commandAccount, startedAt, basePath, urls: () => urls, notReady })
  const access = admitOperators(auth.access, systemUser)
  const { connections } = shares
  const own = { config, log, modules, urls, apiUrl, startedAt, undo, metrics, notReady, compat }
  const server = await startServer({
    ...own,
    basePath: baseFolder,
    access,
    origins,
    peers,
    identities,
    connections,
    ledger: idempotency.ledger,
  })
  let stopped: Promise<void> | undefined
  return {
    urls,
    collect: () => (server.isStopping() ? Promise.resolve() : maintenance.collect()),
    reload: () => (server.isStopping() ? Promise.resolve() : server.reload()),
    stop() {
      server.beginStop()
      const last = [() => templateThread.stop(), () => runners.stop(), () => launcher.stop(), () => database.close()]
      stopped ??= runAll([() => stream.endAll(), ...server.stops, ...last], 'The server did not stop cleanly')
      return stopped
    },
    hurry: () => executions.hurry(),
    running: () => executions.running(),
    watchExecutions(listener) {
      bus.subscribe('execution.created', ({ execution }) => listener(execution))
      bus.subscribe('execution.updated', ({ execution, from }) => listener(execution, from))
    },
  }
}
