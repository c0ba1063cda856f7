/** Executions: accepted, scheduled, run, recorded; their output and results. */
import { isDeepStrictEqual } from 'node:util'
import type { Bus } from '../../bus/index.ts'
import { merge, type Database } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import type { Page } from '../../http/index.ts'
import { readJson } from '../../lib/text/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import { resultJson } from '../../core/result-json.ts'
import { createSecretValues } from '../../lib/secrets/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { OutputType, Runner } from '../../runners/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Traces } from '../traces/index.ts'
import { auditChanges } from './audit.ts'
import { createAdmission } from './admission.ts'
import { createChange } from './change.ts'
import { createDispatcher, type Prepared } from './dispatcher.ts'
import { createLive } from './live.ts'
import { createOutput, type OutputCursor } from './output.ts'
import { readLines } from './output-lines.ts'
import { createFairQueue, searchOutput } from './output-search.ts'
import { executionRecord, liveactionRecord, type RecordOptions } from './record.ts'
import { recover, type SweepLeftovers } from './recovery.ts'
import { createRetentions } from './retention.ts'
import { createRoutes } from './routes.ts'
import { readerOf } from '../../core/template-reader.ts'
import { templateScope, type RolesOf } from './request.ts'
import { createSealing } from './sealing.ts'
import { createScheduler } from './scheduler.ts'
import { createExecutionService, type ExecutionService } from './service.ts'
import { isFinal } from './state.ts'
import { createExecutionStore, type ExecutionStore } from './store.ts'
import type { Execution, ExecutionRecord, ExecutionStatus } from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { ExecutionPolicies, PackConfigs, PlanReaction, ServiceTokens } from './ports.ts'

export interface Executions
  extends Module, Pick<ExecutionService, 'plan' | 'planAgain' | 'request' | 'hasRoom' | 'cancelOld'> {
  find(id: string): Execution | undefined
  /** With `result`: null when there is none. */
  findWithResult(id: string): Execution | undefined
  /** Ids of those that rules started for a trigger instance, oldest first. */
  ofTriggerInstance(id: string): string[]
  /** The one with the greatest id. */
  last(): Execution | undefined
  /** Cheap while it runs; undefined when there is no such execution. */
  statusOf(id: string): ExecutionStatus | undefined
  outputCursor(id: string): OutputCursor
  /** Those that wait for somebody outside, with results, newest first; read when they are asked for. @param runner name of theirs */
  pending(runner: string, page: Page): Promise<{ executions: Iterable<Execution>; total: number }>
  /**
   * Ends a pending execution with what it has waited for, unless somebody else was faster.
   *
   * @param masked the same result without its secrets, when it has some: then these are kept encrypted
   * @throws CRYPTO_KEY_MISSING when there are secrets to be kept
   * @returns undefined when it is not pending any more
   */
  respond(
    seen: Execution,
    result: Record<string, unknown>,
    masked?: Record<string, unknown>,
  ): Promise<Execution | undefined>
  /** The masked wire record, as streams deliver it. */
  record(execution: Execution): ExecutionRecord
  liveactionRecord(execution: Execution): Record<string, unknown>
  /** Ids of the traces that something belongs to which has not ended. */
  openTraces(): string[]
  /** The policies of an action have changed. */
  policiesChanged(actionRef: string): void
  /** While stopping: ends what runs without further grace, and waits no longer for a storage that cannot be written. */
  hurry(): void
}

export interface ExecutionsDeps {
  database: Database
  bus: Bus
  log: Log
  metrics: Metrics
  encryption: Encryption
  actions: Actions
  /** Default: access control is off. */
  rolesOf?: RolesOf
  traces: Traces
  runners: readonly Runner[]
  sweep: SweepLeftovers
  /** Kept with the processes of executions. */
  bootId: string
  serviceTokens: ServiceTokens
  /** What templates in parameters may read, besides parameters and the context. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly planReaction: PlanReaction
  packConfigs: PackConfigs
  readonly policies: ExecutionPolicies
  settings: {
    streamOutput: boolean
    actionsPoolSize: number
    shutdownGraceSeconds: number
    queueLimit: number
    /** Acting user of what the system starts by itself. */
    systemUser: string
    pollSeconds: number
    /** `garbagecollector.purge_inquiries` */
    expiresPending: boolean
    maxPageSize: number
    /** `api.mask_secrets` and `log.mask_secrets` */
    maskSecrets: boolean
    /** Address of the web client, without a trailing slash. Asked when needed: with port 0 it is known late. */
    webUrl(): string
    /** Public address of the API with its version, for `SVC_ACTION_API_URL`. */
    apiUrl(): string
  }
}

export function createExecutions(deps: ExecutionsDeps): Executions {
  const { database, bus, log, metrics, actions, settings, serviceTokens } = deps
  const store = createExecutionStore(database)
  const audit = auditChanges(bus, log)
  const live = createLive(bus, () => store.countWithStatus('requested', 'delayed'), settings.queueLimit)
  const hurried = new AbortController()
  const output = createOutput({ store, database, bus, log, givingUp: hurried.signal })
  const sealing = createSealing({ actions, encryption: deps.encryption, log })
  const planReaction = (execution: Execution): ReturnType<PlanReaction> => {
    const begun = performance.now()
    const reaction = deps.planReaction(execution, sealing.masked(execution))
    if (!isFinal(execution.status)) return reaction
    const reacted = performance.now()
    const retry = deps.policies.planRetry(execution)
    metrics.time('execution.reaction', {}, reacted - begun)
    metrics.time('execution.policies', {}, performance.now() - reacted)
    return retry === undefined ? reaction : merge(reaction, retry)
  }
  const change = createChange({
    store,
    database,
    log,
    metrics,
    givingUp: hurried.signal,
    // It would only cost time where no run has a token.
    ...(serviceTokens.enabled ? { planEnd: (execution) => serviceTokens.planEnd(execution) } : {}),
    planReaction,
  })
  const dispatcher = createDispatcher({
    store,
    change,
    output,
    runners: new Map(deps.runners.map((runner) => [runner.definition.name, runner])),
    prepare,
    concealResult,
    bus,
    log,
    metrics,
    write: (unit) => database.write(unit),
    slots: settings.actionsPoolSize,
    serviceTokens,
    streamOutput: settings.streamOutput,
    maskSecrets: settings.maskSecrets,
    pollSeconds: settings.pollSeconds,
    bootId: deps.bootId,
  })
  const admission = createAdmission({
    store,
    change,
    limitsOf: (execution) => deps.policies.limitsOf(execution, () => sealing.open(execution).parameters),
    bus,
    log,
    maxPromised: settings.actionsPoolSize,
  })
  const scheduler = createScheduler({
    store,
    change,
    dispatcher,
    admission,
    bus,
    log,
    metrics,
    hasRoom: () => database.hasRoom(),
    write: (unit) => database.write(unit),
    pollSeconds: settings.pollSeconds,
    expiresPending: settings.expiresPending,
  })
  const service = createExecutionService({
    store,
    database,
    change,
    actions,
    rolesOf: deps.rolesOf,
    traces: deps.traces,
    live,
    log,
    secretsOf: (execution) =>
      settings.maskSecrets ? differingNames(sealing.open(execution).parameters, sealing.masked(execution)) : [],
    concealReport,
    queueLimit: settings.queueLimit,
    sources: deps,
    sealing,
    systemUser: settings.systemUser,
    planReaction,
  })

  /** @param secrets gets what must not be seen of the run */
  function prepare(execution: Execution, secrets: unknown[]): Prepared {
    const { action, runner } = execution
    if (actions.findRunnerType(runner.name)?.enabled !== true) {
      throw new Error(`The runner "${runner.name}" has been disabled by the administrator.`)
    }
    const opened = sealing.open(execution)
    secrets.push(...actions.secretsIn(action, runner, opened.parameters), ...opened.secrets)
    const scope = templateScope(deps, execution, secrets)
    const effective = actions.effective(action, runner, opened.parameters, scope)
    secrets.push(...actions.secretsIn(action, runner, { ...effective.runnerParameters, ...effective.actionParameters }))
    return {
      ...effective,
      parameterSchemas: action.parameters,
      entryPoint: actions.entryPointOf(action),
      packFolder: actions.folderOf(action.pack) ?? '',
      config() {
        const config = deps.packConfigs.resolve(action.pack, readerOf(execution))
        secrets.push(...config.secrets)
        return config.values
      },
      env: {
        SVC_ACTION_DEBUG: effective.runnerParameters['debug'] === true ? 'True' : 'False',
        SVC_ACTION_PACK_NAME: action.pack,
        SVC_ACTION_EXECUTION_ID: execution.id,
        SVC_ACTION_API_URL: settings.apiUrl(),
      },
    }
  }

  /** Of a run that this server has not watched: what is secret in its parameters may turn up in it as well. */
  function concealReport(execution: Execution, result: Record<string, unknown>): { result: unknown; sealed?: string } {
    if (!settings.maskSecrets) return concealResult(execution, result)
    const { parameters, secrets } = sealing.look(execution)
    const marked = actions.secretsIn(execution.action, execution.runner, parameters)
    const masked = createSecretValues([...marked, ...secrets])?.maskValue(result) ?? result
    return concealResult(execution, masked as Record<string, unknown>) // a copy of one
  }

  function concealResult(execution: Execution, result: Record<string, unknown>): { result: unknown; sealed?: string } {
    const masked = actions.maskResult(execution.action, execution.runner, result)
    if (masked === result) return { result }
    if (!deps.encryption.enabled) return { result: settings.maskSecrets ? masked : result }
    try {
      return {
        result: masked,
        sealed: deps.encryption.seal(resultJson(result), sealedResultOf(execution), 'the result'),
      }
    } catch (error) {
      log.error(
        'execution.result_sealed',
        'The secrets in the result of an execution cannot be encrypted and are lost',
        {
          execution_id: execution.id,
          error,
        },
      )
      return { result: masked }
    }
  }

  /** With its secrets, where they can be had. */
  function openResult(execution: Execution): unknown {
    const sealed = execution.result === undefined ? undefined : store.sealedResult(execution.id)
    if (sealed === undefined) return execution.result
    try {
      return readJson(deps.encryption.open(sealed, sealedResultOf(execution), 'the result'))
    } catch (error) {
      log.error('execution.result_sealed', 'The secrets in the result of an execution cannot be decrypted', {
        execution_id: execution.id,
        error,
      })
      return execution.result
    }
  }

  const searchQueue = createFairQueue()

  const statusOf = (id: string): ExecutionStatus | undefined => live.statusOf(id) ?? store.statusOf(id)

  const recordOptions = (unmasked: boolean): RecordOptions => ({
    ...(unmasked || !settings.maskSecrets
      ? { parametersOf: (execution) => sealing.look(execution).parameters, resultOf: openResult }
      : { parametersOf: (execution) => sealing.masked(execution), resultOf }),
    webUrl: settings.webUrl(),
  })

  return {
    name: 'executions',
    gauges: [
      {
        key: 'actionrunner.queue.request',
        about: 'Executions that wait for a slot.',
        read: () => store.countWithStatus('requested'),
      },
      {
        key: 'actionrunner.queue.work',
        about: 'Executions that have a slot and have not begun.',
        read: () => store.countWithStatus('scheduled'),
      },
      {
        key: 'actionrunner.queue.cancel',
        about: 'Cancelled executions whose processes have not ended.',
        read: () => store.countWithStatus('canceling'),
      },
      {
        key: 'actionrunner.slots.used',
        about: 'Executions that run now.',
        read: () => settings.actionsPoolSize - dispatcher.freeSlots,
      },
      {
        key: 'actionrunner.slots.size',
        about: 'How many may run at once (actionrunner.actions_pool_size).',
        read: () => settings.actionsPoolSize,
      },
      ...(['delayed', 'running', 'pending'] as const).map((status) => ({
        key: `executions.${status}`,
        about: `Executions with status ${status}.`,
        read: () => store.countWithStatus(status),
      })),
    ],
    plan: (request) => service.plan(request),
    planAgain: (ended, again, about) => service.planAgain(ended, again, about),
    request: (caller, request, contextHeader) => service.request(caller, request, contextHeader),
    hasRoom: () => service.hasRoom(),
    cancelOld: (caller, old, dryRun) => service.cancelOld(caller, old, dryRun),
    policiesChanged: (actionRef) => admission.reconsider(actionRef),
    openTraces: () => store.openTraces(),
    retention: createRetentions({ store, database }),
    routes: createRoutes({
      service,
      store,
      maxPageSize: settings.maxPageSize,
      maskSecrets: settings.maskSecrets,
      record: (execution, { children, unmasked }) => executionRecord(execution, recordOptions(unmasked), children),
      readOutput: (id, type) => readOutput(store, id, type),
      readLines(id, wanted) {
        // Asked before reading: what a final status promises is already in the rows.
        const status = statusOf(id)
        return {
          is_complete: status === undefined || isFinal(status),
          is_stored: settings.streamOutput,
          ...readLines(store, id, wanted),
        }
      },
      async searchOutput(id, wanted) {
        const status = statusOf(id)
        return {
          is_complete: status === undefined || isFinal(status),
          ...(await searchOutput(store, id, wanted, searchQueue)),
        }
      },
    }),
    find: (id) => store.find(id),
    findWithResult: (id) => store.findWithResult(id),
    ofTriggerInstance: (id) => store.ofTriggerInstance(id),
    last() {
      const id = store.lastId()
      return id === undefined ? undefined : store.find(id)
    },
    async pending(runner, page) {
      const filter = { status: 'pending', runner }
      const [ids, total] = await Promise.all([store.page({ filter, sort: [], ...page }), store.total(filter)])
      function* executions(): Generator<Execution> {
        for (const id of ids) {
          const execution = store.findWithResult(id)
          if (execution?.status === 'pending') yield execution
        }
      }
      return { executions: executions(), total }
    },
    async respond(seen, result, masked) {
      if (masked === undefined) return change.try(seen, { kind: 'respond', result })
      const sealed = deps.encryption.seal(resultJson(result), sealedResultOf(seen), 'the result')
      return change.try(seen, { kind: 'respond', result: masked, sealed })
    },
    statusOf,
    outputCursor: (id) => output.cursor(id),
    record: (execution) => executionRecord(execution, recordOptions(false)),
    liveactionRecord: (execution) => liveactionRecord(execution, recordOptions(false)),
    hurry() {
      hurried.abort()
      dispatcher.hurry()
    },
    async start() {
      await recover({
        store,
        change,
        database,
        sweep: deps.sweep,
        planEnd: (execution) => serviceTokens.planEnd(execution),
        log,
      })
      dispatcher.start()
      await scheduler.start()
    },
    async stop() {
      scheduler.stop()
      await dispatcher.stop(settings.shutdownGraceSeconds)
      await output.flush()
      audit.flush()
    },
  }
}

const resultOf = ({ result }: Execution): unknown => result

/** What the cipher text belongs to. */
const sealedResultOf = ({ id }: Execution): string => `result of execution ${id}`

/** Where there is a value, and the mask has changed it. */
function differingNames(parameters: Record<string, unknown>, masked: Record<string, unknown>): string[] {
  return Object.entries(parameters)
    .filter(([name, value]) => (value ?? null) !== null && !isDeepStrictEqual(value, masked[name]))
    .map(([name]) => name)
}

const RECORDS_PER_READ = 8

/** In slices, so that a gigabyte of output passes through a few hundred kilobytes of memory. */
async function* readOutput(store: ExecutionStore, id: string, type: OutputType | undefined): AsyncGenerator<string> {
  let seq = 0
  for (;;) {
    const records = store.outputAfter(id, seq, RECORDS_PER_READ, type)
    const last = records.at(-1)
    if (last === undefined) return
    seq = last.seq
    yield records.map(({ data }) => data).join('')
    // Lets others have the event loop between two slices.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export { executionAttributeQuery, wantedAttributes } from './attributes.ts'
export { isFinal } from './state.ts'
export type { Execution, OutputRecord } from './types.ts'
export type { SweepLeftovers } from './recovery.ts'
