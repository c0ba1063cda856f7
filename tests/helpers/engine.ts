/** The executions module over a real database file, with a runner that does what the test says. */
import type { Bus } from '../../src/bus/bus.ts'
import { machineClock } from '../../src/core/clock.ts'
import { createMemoryBus } from '../../src/bus/memory.ts'
import type { Database } from '../../src/db/database.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { loadEncryption, type Encryption } from '../../src/core/encryption.ts'
import { createTemplateThread } from '../../src/core/rendering/index.ts'
import { allRights } from '../../src/http/authenticate.ts'
import type { ApiRequest, JsonRoute } from '../../src/http/route.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { createActions } from '../../src/modules/actions/index.ts'
import { createExecutions, type Executions, type ExecutionsDeps } from '../../src/modules/executions/index.ts'
import { createTraces } from '../../src/modules/traces/index.ts'
import { createWorkflows, type Workflows } from '../../src/modules/workflows/index.ts'
import { workflowRunners } from '../../src/runners/index.ts'
import type { RunContext, Runner, RunResult } from '../../src/runners/runner.ts'
import { makeFolder } from './folders.ts'
import { TextSink } from './text-sink.ts'
import { noMetrics } from '../../src/core/metrics.ts'
import type { ExecutionPolicies, PackConfigs, ExecutionWorkflows } from '../../src/modules/executions/ports.ts'

export interface Engine {
  executions: Executions
  database: Database
  /** Calls the handler of a route of the module. */
  call(method: 'post' | 'put', path: string, id: string, body: unknown): Promise<{ id: string }>
  /** Requests an execution of `test.do`. @returns its id */
  request(more?: object): Promise<string>
  statusOf(id: string): string | undefined
  /** Another server on the same database. */
  createServer(): Executions
  stop(): Promise<void>
}

/** No execution is a workflow, or belongs to one. */
export const noWorkflows: ExecutionWorkflows = {
  begin: () => Promise.resolve(),
  follow: () => undefined,
  holdersOf: () => new Map(),
  remove: () => Promise.resolve(),
}

export const noPolicies: ExecutionPolicies = { limitsOf: () => [], planRetry: () => undefined }

export interface EngineOptions {
  run: (context: RunContext) => Promise<RunResult>
  /** Of the action `test.do`. */
  parameters?: Record<string, unknown>
  policies?: ExecutionPolicies
  /** Puts itself between the module and the database. */
  around?: (database: Database) => Database
  /** Default: a new key. */
  encryption?: Encryption
  /** Default true. */
  maskSecrets?: boolean
  /** Default: no pack has one. */
  packConfigs?: PackConfigs
  templates?: ExecutionsDeps['templates']
  /** Of the action, which has its result below `output`. */
  outputSchema?: Record<string, unknown>
  /** What is logged. */
  sink?: TextSink
  /** Files of definitions, as `actions/<name>.yaml` in the folder: they become actions `test.<name>`. Default: no workflows */
  workflows?: { folder: string; names: readonly string[] }
  /** The file of the database, which the caller removes. Default: a new one */
  databasePath?: string
  /** Where it notes which runs have begun. Default: nowhere */
  basePath?: string
}

/** Two slots, a queue of ten, polling that nobody lives to see. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { run, parameters = {}, policies = noPolicies, around = (real) => real, sink = new TextSink() } = options
  const { packConfigs = { resolve: () => ({ values: {}, secrets: [], withoutSecrets: () => ({}) }) } } = options
  const folder = makeFolder()
  const runner: Runner = {
    definition: {
      name: 'scripted',
      description: 'Does what the test says.',
      enabled: true,
      runner_package: 'scripted',
      runner_module: 'scripted',
      runner_parameters: {},
      output_key: 'output',
    },
    run,
  }
  const log = createLog({ level: options.sink === undefined ? 'CRITICAL' : 'DEBUG', format: 'text', stream: sink })
  const bus: Bus = createMemoryBus(() => undefined)
  const database = around(
    await openSqlite({
      path: options.databasePath ?? `${folder.path}/svc.db`,
      synchronous: 'normal',
      announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
    }),
  )
  const encryption =
    options.encryption ??
    (await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: `${folder.path}/secrets.json` }))
  const templateThread = createTemplateThread()
  const actions = createActions({ database, log, templateThread, planEvent: () => undefined, maxPageSize: 100 })
  await actions.registerRunnerTypes([runner.definition, ...workflowRunners])
  const definitions = [
    { name: 'do', runner_type: 'scripted', parameters, output_schema: options.outputSchema ?? {} },
    ...(options.workflows?.names ?? []).map((name) => ({
      name,
      runner_type: 'orquesta',
      entry_point: `${name}.yaml`,
    })),
  ].map((definition) => ({ metadataFile: `actions/${definition.name}.json`, definition }))
  await actions.registerActions({
    pack: 'test',
    definitions,
    metadataFiles: new Set(definitions.map(({ metadataFile }) => metadataFile)),
  })
  actions.usePackFolder('test', options.workflows?.folder ?? folder.path)
  let workflows: Workflows | undefined
  const conducted: ExecutionWorkflows = {
    ...noWorkflows,
    begin: (execution, start) => workflows?.begin(execution, start) ?? Promise.resolve(),
    follow: (before, after, unit) => workflows?.follow(before, after, unit),
  }
  const createServer = (): Executions =>
    createExecutions({
      metrics: noMetrics,
      database,
      bus,
      log,
      encryption,
      actions,
      traces: createTraces({ database, log, maxPageSize: 100, openTraces: () => [] }),
      runners: [runner],
      killOrphans: () => Promise.resolve(0),
      bootId: 'boot',
      templates: options.templates ?? (() => ({ variables: {} })),
      packConfigs,
      policies,
      planReaction: () => undefined,
      notifications: { planEnd: () => undefined },
      jobs: { planEnd: () => undefined },
      rules: { keeps: () => Promise.resolve([]) },
      workflows: options.workflows === undefined ? noWorkflows : conducted,
      serviceTokens: { enabled: false, plan: () => undefined, planEnd: () => ({ steps: [], facts: [] }) },
      settings: {
        ...(options.basePath === undefined ? {} : { basePath: options.basePath }),
        streamOutput: true,
        actionsPoolSize: 2,
        shutdownGraceSeconds: 0,
        queueLimit: 10,
        pollSeconds: 60,
        expiresPending: true,
        maxPageSize: 100,
        maskSecrets: options.maskSecrets ?? true,
        webUrl: () => 'http://127.0.0.1',
        apiUrl: () => 'http://127.0.0.1/v1',
        systemUser: 'svc',
      },
    })
  const executions = createServer()
  if (options.workflows !== undefined)
    workflows = createWorkflows({
      database,
      bus,
      metrics: noMetrics,
      log,
      encryption,
      actions,
      datastore: { read: () => undefined },
      executions,
      clock: machineClock,
      settings: { apiUrl: () => 'http://127.0.0.1/v1', maxTasks: 1000, maxIdleSeconds: 0, systemUser: 'svc' },
    })
  await executions.start?.()
  await workflows?.start?.()

  const call: Engine['call'] = async (method, path, id, body) => {
    const route = executions.routes?.find((candidate) => candidate.method === method && candidate.path === path)
    const request: ApiRequest = {
      principal: { user: 'svc', isAdmin: true, method: 'none' },
      rights: allRights,
      params: { id },
      query: {},
      body,
      headers: {},
      requestId: '-',
      remoteAddress: '127.0.0.1',
      isSecure: false,
      onClose: () => () => undefined,
    }
    return (await (route as JsonRoute).handler(request)) as { id: string } // an execution record has one
  }
  return {
    executions,
    database,
    call,
    request: async (more = {}) => (await call('post', '/executions', '', { action: 'test.do', ...more })).id,
    statusOf: (id) => executions.find(id)?.status,
    createServer,
    async stop() {
      await executions.stop?.()
      await workflows?.stop?.()
      await templateThread.stop()
      await database.close()
      folder.remove()
    },
  }
}
