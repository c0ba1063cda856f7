/** The rules module over a real database file and real HTTP, with everything below it, and a runner that does what a test says. */
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Bus } from '../../src/bus/bus.ts'
import { merge, type Database } from '../../src/db/database.ts'
import { loadEncryption } from '../../src/core/encryption.ts'
import { createTemplateThread } from '../../src/core/rendering/index.ts'
import { allRights, openAccess } from '../../src/http/authenticate.ts'
import type { Rights } from '../../src/http/route.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { createActions, type Actions } from '../../src/modules/actions/index.ts'
import { createExecutions, type Executions } from '../../src/modules/executions/index.ts'
import { createGrantSet } from '../../src/modules/rbac/resolve.ts'
import { createRights } from '../../src/modules/rbac/rights.ts'
import { createRules, type Rules, type RulesDeps } from '../../src/modules/rules/index.ts'
import type { RuleEnforcement, RuleRecord } from '../../src/modules/rules/types.ts'
import { createTraces, type Traces } from '../../src/modules/traces/index.ts'
import { createTriggers, type Triggers } from '../../src/modules/triggers/index.ts'
import type { Runner, RunContext } from '../../src/runners/runner.ts'
import type { TemplateScope } from '../../src/lib/template/render.ts'
import type { ErrorBody, TestUser } from './datastore.ts'
import { openDatabase } from './database.ts'
import { noPolicies, noWorkflows } from './engine.ts'
import { makeFolder } from './folders.ts'
import { startHttp } from './http.ts'
import { call, type Answer } from './server.ts'
import { TextSink } from './text-sink.ts'
import { waitFor } from './wait.ts'
import { noMetrics } from '../../src/core/metrics.ts'
import type { TemplateReader } from '../../src/core/template-reader.ts'
import type { PackConfigs } from '../../src/modules/executions/ports.ts'
import type { Scope } from '../../src/core/permissions.ts'

export interface RulesWorld {
  database: Database
  bus: Bus
  actions: Actions
  executions: Executions
  triggers: Triggers
  traces: Traces
  rules: Rules
  /** What ran, in the order in which it began. */
  runs: RunContext[]
  /** Everything logged so far. */
  log(): string
  /** @param as name of the user */
  callAs<T = Record<string, unknown>>(
    as: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Answer<T & ErrorBody>>
  /** As administrator. */
  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Answer<T & ErrorBody>>
  /** A rule of pack `test` on `test.event` that runs `test.do`, enabled, unless `more` says otherwise. */
  make(name: string, more?: Record<string, unknown>, as?: string): Promise<RuleRecord>
  /** @returns id of the trigger instance */
  dispatch(payload?: unknown, ref?: string): Promise<string>
  /** Dispatches and waits for the end of the processing. */
  fire(payload?: unknown, ref?: string): Promise<RuleEnforcement[]>
  /** Once the instance is not pending any more. */
  settled(id: string): Promise<RuleEnforcement[]>
  /** Another server's rules on the same database, not started. */
  createServer(more?: Partial<RulesDeps>): Rules
  stop(): Promise<void>
}

export interface RulesOptions {
  /** By name; others have no rights. `root` is an administrator. */
  users?: Readonly<Record<string, TestUser>>
  /** Default true. */
  accessControl?: boolean
  isolation?: boolean
  /** Authors of rules have the rights of `users`; default: all rights. */
  limitsAuthors?: boolean
  /** What the runner does; default: ends at once. */
  run?: (context: RunContext) => Promise<void>
  /** Puts itself between the modules and the database. */
  around?: (database: Database) => Database
  templates?: (reader: TemplateReader) => TemplateScope
  packConfigs?: PackConfigs
  queueLimit?: number
  slots?: number
  maskSecrets?: boolean
  /** Default true. */
  start?: boolean
  rules?: Partial<RulesDeps>
}

const definitions = [
  {
    name: 'do',
    parameters: {
      text: { type: 'string' },
      count: { type: 'integer' },
      flag: { type: 'boolean' },
      any: {},
      token: { type: 'string', secret: true },
      account: { type: 'object', properties: { password: { type: 'string', secret: true } } },
    },
  },
  { name: 'other', parameters: { token: { type: 'string' } } },
  { name: 'needs', parameters: { text: { type: 'string', required: true } } },
  {
    name: 'chained',
    parameters: { text: { type: 'string' }, copy: { type: 'string', default: '{{ text }}{{ nope }}' } },
  },
  { name: 'off', enabled: false, parameters: {} },
]

export async function startRules(options: RulesOptions = {}): Promise<RulesWorld> {
  const { accessControl = true, around = (real) => real, templates = () => ({ variables: {} }) } = options
  const users: Readonly<Record<string, TestUser>> = { root: { role: 'admin' }, ...options.users }
  const folder = makeFolder()
  const { database: real, bus } = await openDatabase(folder.path)
  const database = around(real)
  const sink = new TextSink()
  const log = createLog({ level: 'DEBUG', format: 'text', stream: sink })
  const encryption = await loadEncryption({
    enabled: true,
    keyPath: '',
    ownKeyPath: join(folder.path, 'keys', 'secrets.json'),
  })

  const grants = new Map(Object.entries(users).map(([name, user]) => [name, createGrantSet(user.grants ?? [])]))
  const rightsOf = (user: string, scopes?: readonly Scope[]): Rights =>
    createRights(
      { user, isAdmin: false, method: 'token', ...(scopes === undefined ? {} : { scopes }) },
      {
        enabled: accessControl,
        isolation: options.isolation ?? false,
        ofUser: (name) => ({
          isAdmin: users[name]?.role === 'admin',
          isObserver: users[name]?.role === 'observer',
          grants: grants.get(name) ?? createGrantSet([]),
        }),
      },
    )
  const runs: RunContext[] = []
  const runner: Runner = {
    definition: {
      name: 'scripted',
      description: 'Does what the test says.',
      enabled: true,
      runner_package: 'scripted',
      runner_module: 'scripted',
      runner_parameters: {},
    },
    async run(context) {
      runs.push(context)
      await options.run?.(context)
      return { status: 'succeeded', result: {} }
    },
  }
  const templateThread = createTemplateThread()
  const actions = createActions({ database, log, templateThread, planEvent: () => undefined, maxPageSize: 100 })
  await actions.registerRunnerTypes([runner.definition])
  await actions.registerActions({
    pack: 'test',
    definitions: definitions.map((definition) => ({
      metadataFile: `actions/${definition.name}.yaml`,
      definition: { runner_type: 'scripted', ...definition },
    })),
    metadataFiles: new Set(definitions.map(({ name }) => `actions/${name}.yaml`)),
  })
  actions.usePackFolder('test', folder.path)

  const traces = createTraces({ database, log, maxPageSize: 100, openTraces: () => [] })
  const triggers = createTriggers({
    database,
    bus,
    log,
    traces,
    encryption,
    hasRules: (id) => rules.hasRules(id),
    templates,
    settings: {
      validateParameters: true,
      validatePayload: true,
      emitWhen: [],
      queueLimit: 100_000,
      maxPageSize: 100,
      webUrl: () => '',
    },
  })
  const packConfigs = options.packConfigs ?? {
    resolve: () => ({ values: {}, secrets: [], withoutSecrets: () => ({}) }),
  }
  const executions = createExecutions({
    metrics: noMetrics,
    database,
    bus,
    log,
    encryption,
    actions,
    traces,
    runners: [runner],
    killOrphans: () => Promise.resolve(0),
    bootId: 'boot',
    templates,
    packConfigs,
    policies: noPolicies,
    planReaction: () => undefined,
    notifications: { planEnd: () => undefined },
    jobs: { planEnd: () => undefined },
    rules: { keeps: () => Promise.resolve([]) },
    workflows: noWorkflows,
    serviceTokens: { enabled: false, plan: () => undefined, planEnd: () => ({ steps: [], facts: [] }) },
    settings: {
      streamOutput: true,
      actionsPoolSize: options.slots ?? 10,
      shutdownGraceSeconds: 0,
      queueLimit: options.queueLimit ?? 10_000,
      pollSeconds: 60,
      expiresPending: true,
      maxPageSize: 100,
      maskSecrets: true,
      webUrl: () => 'http://127.0.0.1',
      apiUrl: () => 'http://127.0.0.1/v1',
      systemUser: 'svc',
    },
  })
  const createServer = (more: Partial<RulesDeps> = {}): Rules =>
    createRules({
      metrics: noMetrics,
      database,
      bus,
      log,
      actions,
      executions,
      triggers,
      traces,
      templates,
      templateThread,
      packConfigs,
      jobs: { planWritten: () => merge(), planDeleted: () => merge(), statesOf: () => new Map() },
      timesOf: () => undefined,
      rightsOf: (user, scopes) => (options.limitsAuthors === true ? rightsOf(user, scopes) : allRights),
      settings: {
        systemUser: 'svc',
        maxPageSize: 100,
        maskSecrets: options.maskSecrets ?? true,
        cascade: { maxDepth: 20, maxCascade: 100 },
      },
      ...options.rules,
      ...more,
    })
  const rules = createServer()
  await triggers.start?.()
  await triggers.registerTypes({
    pack: 'test',
    definitions: [
      { metadataFile: 'triggers/event.yaml', definition: { name: 'event', description: 'Something happens.' } },
      {
        metadataFile: 'triggers/keyed.yaml',
        definition: {
          name: 'keyed',
          parameters_schema: {
            type: 'object',
            properties: { key: { type: 'string', required: true }, pass: { type: 'string', secret: true } },
            additionalProperties: false,
          },
        },
      },
    ],
    metadataFiles: new Set(['triggers/event.yaml', 'triggers/keyed.yaml']),
  })
  await executions.start?.()
  if (options.start !== false) await rules.start?.()

  const http = await startHttp([...(rules.routes ?? []), ...(triggers.routes ?? []), ...(executions.routes ?? [])], {
    maxBodyBytes: 4_000_000,
    logs: { auth: log, api: log, stream: log },
    access: {
      ...openAccess(''),
      authenticate(request) {
        const user = request.get('x-user') ?? ''
        const scopes = users[user]?.scopes
        const isAdmin = scopes === undefined && (!accessControl || users[user]?.role === 'admin')
        return { user, isAdmin, method: 'api_key', ...(scopes === undefined ? {} : { scopes }) }
      },
      rightsOf: ({ user, scopes }) => rightsOf(user, scopes),
    },
  })

  const callAs: RulesWorld['callAs'] = (as, method, path, body) =>
    call(`${http.urls.api}${path}`, method, body, { 'x-user': as })
  const enforcementsOf = async (id: string): Promise<RuleEnforcement[]> => {
    const path = `/v1/ruleenforcements?trigger_instance=${id}&sort=id&limit=-1`
    return (await callAs<RuleEnforcement[]>('root', 'GET', path)).body
  }
  const world: RulesWorld = {
    database,
    bus,
    actions,
    executions,
    triggers,
    traces,
    rules,
    runs,
    log: () => sink.text,
    callAs,
    call: (method, path, body) => callAs('root', method, path, body),
    async make(name, more = {}, as = 'root') {
      const rule = { name, pack: 'test', enabled: true, trigger: { type: 'test.event' }, action: { ref: 'test.do' } }
      const answer = await callAs<RuleRecord & ErrorBody>(as, 'POST', '/v1/rules', { ...rule, ...more })
      if (answer.status !== 201) throw new Error(`rule ${name} is refused (${answer.status}): ${answer.text}`)
      return answer.body
    },
    async dispatch(payload = {}, ref = 'test.event') {
      const trigger = triggers.find(ref)
      if (trigger === undefined) throw new Error(`there is no trigger ${ref}`)
      return (await triggers.dispatch(trigger, payload)).id
    },
    fire: async (payload, ref) => world.settled(await world.dispatch(payload, ref)),
    async settled(id) {
      await waitFor(`trigger instance ${id} to be processed`, () => triggers.findInstance(id)?.status !== 'pending')
      return enforcementsOf(id)
    },
    createServer,
    async stop() {
      await http.close()
      await rules.stop?.()
      await executions.stop?.()
      await templateThread.stop()
      // Facts of the last commits may still be on their way.
      await setImmediate()
      await database.close()
      folder.remove()
    },
  }
  return world
}
