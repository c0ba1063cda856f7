/** Executions: accepted, scheduled, run, recorded; their output and results. */
import { createChange } from './change.ts'
import { auditChanges } from './audit.ts'
import { createImport } from './import.ts'
import { createOutputImport } from './output/import.ts'
import { createGauges } from './gauges.ts'
import { createExecutionListStore } from './list/store.ts'
import { createLive } from './live.ts'
import { createOutput } from './output/output.ts'
import { createOutputReader } from './output/read.ts'
import { noPlace } from './output/place.ts'
import { createOutputStore } from './output/store.ts'
import { createPending } from './pending.ts'
import type { Executions, ExecutionsDeps } from './public.ts'
import { createExecutionReaction } from './reaction.ts'
import { createRecords } from './record.ts'
import { createRetentions } from './retention.ts'
import { createExecutionRoutes } from './routes.ts'
import { createRuleRetry } from './rule-retry.ts'
import { createRuns } from './run/runs.ts'
import { templateScope } from './request/template-scope.ts'
import { createOutputCheck } from './output-check.ts'
import { createParameterSecrets } from './secrets/parameters.ts'
import { createResultSecrets } from './secrets/results.ts'
import { createExecutionService } from './service.ts'
import { createExecutionStore } from './store.ts'
import type { Execution, ExecutionStatus } from './types.ts'

export function createExecutions(deps: ExecutionsDeps): Executions {
  const { database, bus, log, metrics, actions, encryption, policies, settings, serviceTokens } = deps
  const { maskSecrets, actionsPoolSize: slots, streamOutput } = settings
  const store = createExecutionStore(database)
  const list = createExecutionListStore(database)
  const outputStore = createOutputStore(database)
  const audit = auditChanges(bus, log)
  const live = createLive(bus, () => store.countWithStatus('requested', 'delayed'), settings.queueLimit)
  const hurried = new AbortController()
  const stopRetrying = hurried.signal
  const output = createOutput({ store: outputStore, database, bus, log, stopRetrying })
  const parameters = createParameterSecrets({ actions, encryption, log })
  const outputCheck = createOutputCheck({ isOn: settings.validateOutput === true, log })
  const results = createResultSecrets({ store, actions, encryption, parameters, log, maskSecrets })
  const planReaction = createExecutionReaction({
    planReaction: deps.planReaction,
    policies,
    ruleRetry: createRuleRetry({
      planRetry: (...again) => service.planRetry(...again),
      log,
      random: Math.random,
    }),
    notifications: deps.notifications,
    jobs: deps.jobs,
    parameters,
    metrics,
  })
  const planEnd = (execution: Execution) => serviceTokens.planEnd(execution)
  const change = createChange({
    store,
    database,
    log,
    metrics,
    stopRetrying,
    // Without authentication no run has a token, and the plan would only cost time.
    ...(serviceTokens.enabled ? { planEnd } : {}),
    planReaction,
    follow: (before, after, unit) => deps.workflows.follow(before, after, unit),
  })
  const runs = createRuns({ ...deps, store, change, output, parameters, results, outputCheck })
  const service = createExecutionService({
    store,
    database,
    change,
    actions,
    rolesOf: deps.rolesOf,
    traces: deps.traces,
    live,
    log,
    stopBackground: runs.stopBackground,
    maskSecrets,
    parameters,
    results,
    queueLimit: settings.queueLimit,
    sources: deps,
    systemUser: settings.systemUser,
    planReaction,
    stopRun: (id, user) => runs.stopRun(id, user),
  })
  const importEnded = createImport({ store, database, change, parameters, results, log })
  const importOutput = createOutputImport({ store: outputStore, executions: store, results, database, log })
  const records = createRecords({ parameters, results, maskSecrets, webUrl: () => settings.webUrl() })
  const statusOf = (id: string): ExecutionStatus | undefined => live.statusOf(id) ?? store.statusOf(id)
  const outputReader = createOutputReader({ store: outputStore, statusOf, streamOutput })

  return {
    name: 'executions',
    gauges: createGauges(store, runs, slots),
    retention: createRetentions({
      store,
      outputStore,
      workflows: deps.workflows,
      rules: deps.rules,
      actions,
      database,
    }),
    routes: createExecutionRoutes({
      service,
      importEnded,
      importOutput,
      store,
      list,
      records,
      output: outputReader,
      settings,
    }),
    ...createPending({ store, list, change, results }),
    plan: (request) => service.plan(request),
    planRetry: (ended, changes, about) => service.planRetry(ended, changes, about),
    planDeadline: (execution, at) => ({
      execution: { ...execution, due_timestamp: at },
      unit: { steps: [store.setDue({ id: execution.id, due_timestamp: at })], facts: [] },
    }),
    openChildren: (parent, afterId, limit) => store.openChildren(parent, afterId, limit),
    templatesOf: (execution, read) => templateScope(deps, execution, read),
    secretsOf: (execution) => parameters.secretsOf(execution),
    resultWithSecrets: (ended) => results.read(ended),
    outputFailureOf: (execution, result) => outputCheck.failureOf(execution, result),
    maskOutput: (execution, result, secrets) => results.maskOutput(execution, result, secrets),
    planChange: (execution, ...events) => change.plan(execution, ...events),
    request: (...request) => service.request(...request),
    requestAll: (...request) => service.requestAll(...request),
    actionOf: (refOrId) => service.actionOf(refOrId),
    hasRoom: () => service.hasRoom(),
    cancelOld: (caller, old, dryRun) => service.cancelOld(caller, old, dryRun),
    policiesChanged: (actionRef) => runs.policiesChanged(actionRef),
    openTraces: () => store.openTraces(),
    find: (id) => store.find(id),
    findWithResult: (id) => store.findWithResult(id),
    openRunsOf: (ruleId, limit) => store.ruleRuns.ofRule(ruleId, limit),
    ofTriggerInstance: (id) => store.ofTriggerInstance(id),
    last: () => service.last(),
    statusOf,
    planLines(execution, end, text) {
      if (!streamOutput) return { unit: { steps: [], facts: [] }, end }
      const place = { ...noPlace, other_lines: end.lines, other_bytes: end.bytes }
      const planned = output.plan(execution, { seq: end.seq, place }, 'other', text)
      const { seq, place: after } = planned.end
      return { unit: planned.unit, end: { seq, lines: after.other_lines, bytes: after.other_bytes } }
    },
    outputCursor: (id) => output.cursor(id),
    record: (execution) => records.masked(execution),
    liveactionRecord: (execution) => records.maskedLiveaction(execution),
    running: () => runs.running(),
    hurry() {
      hurried.abort()
      runs.hurry()
    },
    start: () => runs.start(),
    async stop() {
      await runs.stop()
      await output.flush()
      audit.flush()
    },
  }
}

export { executionAttributeQuery, wantedAttributes } from './list/attributes.ts'
export type { Executions, ExecutionsDeps, LinesEnd } from './public.ts'
export type { KillOrphans } from './run/recovery.ts'
export { outputTypeOf } from './output/routes.ts'
export { isFinal } from './state.ts'
export { AnnouncementEvent, executionExample, ExecutionRecord, LiveactionEvent, OutputEvent } from './types.ts'
export type { Execution, OutputRecord } from './types.ts'
export { executionsSettings } from './settings.ts'
