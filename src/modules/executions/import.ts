/**
 * Takes over executions that have ended on another server, as a history to read: nothing is announced, so no trigger, rule,
 * policy, notification or metric follows from them.
 */
import type { ImportOutcomes } from '../../core/import-outcomes.ts'
import { createRecordImport } from '../../core/record-import.ts'
import { newId } from '../../core/ids.ts'
import { parseTimestamp } from '../../core/time.ts'
import { merge, type Database, type Unit } from '../../db/index.ts'
import { aboutCaller } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
import type { Change } from './change.ts'
import type { ExecutionCaller } from './request/draft.ts'
import type { ParameterSecrets } from './secrets/parameters.ts'
import type { ResultSecrets } from './secrets/results.ts'
import type { ExecutionStore } from './store.ts'
import type { Execution, ExecutionImport, ExecutionOrigin, ImportedExecution, LogEntry } from './types.ts'

type Fields = Record<string, unknown>

export type ImportExecutions = (caller: ExecutionCaller, body: ExecutionImport) => Promise<ImportOutcomes>

export function createImport(deps: {
  store: Pick<ExecutionStore, 'statusOf' | 'hasLiveaction'>
  database: Pick<Database, 'write'>
  change: Pick<Change, 'planImport'>
  parameters: Pick<ParameterSecrets, 'encryptInTurns'>
  results: Pick<ResultSecrets, 'maskReport'>
  log: Log
}): ImportExecutions {
  const { store, database, change, parameters, results, log } = deps

  /**
   * @param liveactions of the records before it
   * @returns the unit that stores it, or why it cannot be
   */
  async function plan(record: ImportedExecution, liveactions: Set<string>): Promise<Unit | string> {
    const start = parseTimestamp(record.start_timestamp)
    const end = parseTimestamp(record.end_timestamp ?? record.start_timestamp)
    if (start === undefined || end === undefined) return 'its times are not ISO 8601'
    const { ref, runner_type: runner } = record.action
    if (typeof ref !== 'string' || ref === '' || typeof runner !== 'string' || runner === '') {
      return 'its action has no ref or no runner_type'
    }
    const draft = draftOf(record, start)
    const { liveaction_id: live } = draft
    if (liveactions.has(live) || store.hasLiveaction(live)) return 'another execution has its live action'
    liveactions.add(live)
    await parameters.encryptInTurns(draft, [])
    const given = record.result ?? {}
    const stored = isObject(given) ? results.maskReport(draft, given) : { result: given }
    return change.planImport(draft, {
      kind: 'import',
      status: record.status,
      result: stored.result,
      ...('sealed' in stored ? { sealed: stored.sealed } : {}),
      log: logOf(record, start, end),
      end,
    })
  }

  const importAll = createRecordImport<ImportedExecution, Unit, ExecutionCaller>({
    isHere: (id) => store.statusOf(id) !== undefined,
    begin() {
      const liveactions = new Set<string>()
      return (record) => plan(record, liveactions)
    },
    async write(units, caller) {
      await database.write(merge(...units))
      log.audit('execution.imported', 'Executions imported.', { count: units.length, ...aboutCaller(caller) })
    },
  })
  return (caller, { executions, dry_run: isDry = false }) => importAll(caller, executions, isDry)
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const fields = (value: unknown): Fields => (isObject(value) ? value : {})

/** Schemas of parameters by name, as the code that masks secrets expects them. */
const schemasOf = (value: unknown): ActionRecord['parameters'] =>
  Object.fromEntries(
    Object.entries(fields(value)).filter(([, schema]) => isObject(schema)),
  ) as ActionRecord['parameters'] // objects, as checked

function draftOf(record: ImportedExecution, start: string): Execution {
  const { id, liveaction = {}, context = {} } = record
  const action = actionOf(record.action)
  const user = text(context['user'])
  const notify = fields(liveaction['notify'])
  const instance = text(record.trigger_instance?.['id'])
  const { name: ruleName } = fields(record.rule)
  return {
    id,
    revision: 0,
    status: 'requested',
    liveaction_id: /^[0-9a-f]{24}$/.test(text(liveaction['id'])) ? text(liveaction['id']) : newId(),
    action_ref: action.ref,
    user,
    action,
    runner: runnerOf(fields(record.runner), action.runner_type),
    // Traces name their executions.
    trace_id: '',
    parent: record.parent ?? null,
    rule: text(ruleName) || null,
    trigger: text(record.trigger?.['name']) || null,
    trigger_type: text(record.trigger_type?.['name']) || null,
    trigger_instance: instance || null,
    origin: originOf(record),
    start_timestamp: start,
    end_timestamp: null,
    elapsed_seconds: null,
    delay: record.delay ?? null,
    due_timestamp: null,
    result_size: null,
    parameters: record.parameters ?? {},
    sealed_parameters: null,
    context: {
      ...context,
      user,
      pack: action.pack,
      ...(instance === '' ? {} : { trigger_instance: fields(record.trigger_instance) }),
    },
    log: [],
    liveaction: {
      callback: fields(liveaction['callback']),
      runner_info: runnerInfoOf(fields(liveaction['runner_info'])),
      ...(Object.keys(notify).length === 0 ? {} : { notify }),
    },
  }
}

function runnerInfoOf({ hostname, pid }: Fields): Execution['liveaction']['runner_info'] {
  return {
    ...(typeof hostname === 'string' ? { hostname } : {}),
    ...(Number.isInteger(pid) ? { pid: Number(pid) } : {}),
  }
}

function actionOf(given: Fields): ActionRecord {
  const ref = text(given['ref'])
  const dot = ref.indexOf('.')
  return {
    id: text(given['id']),
    uid: text(given['uid']),
    ref,
    name: text(given['name']) || ref.slice(dot + 1),
    pack: text(given['pack']) || ref.slice(0, Math.max(0, dot)),
    description: text(given['description']),
    enabled: given['enabled'] !== false,
    runner_type: text(given['runner_type']),
    entry_point: text(given['entry_point']),
    parameters: schemasOf(given['parameters']),
    output_schema: fields(given['output_schema']),
    tags: [],
    notify: {},
  }
}

function runnerOf(given: Fields, name: string): RunnerTypeRecord {
  return {
    id: text(given['id']),
    uid: `runner_type:${name}`,
    name,
    description: text(given['description']),
    enabled: given['enabled'] !== false,
    runner_package: text(given['runner_package']),
    runner_module: text(given['runner_module']),
    runner_parameters: schemasOf(given['runner_parameters']),
  }
}

function originOf({ rule, trigger, trigger_type: type }: ImportedExecution): ExecutionOrigin | null {
  if (rule === undefined || trigger === undefined || type === undefined) return null
  const common = (given: Fields): ExecutionOrigin['rule'] => ({
    id: text(given['id']),
    uid: text(given['uid']),
    ref: text(given['ref']),
    name: text(given['name']),
    pack: text(given['pack']),
    description: text(given['description']),
  })
  return {
    rule: common(rule),
    trigger: { ...common(trigger), type: text(trigger['type']) },
    trigger_type: common(type),
  }
}

/** In the order of time, from its request to its end. */
function logOf({ log = [], status }: ImportedExecution, start: string, end: string): LogEntry[] {
  const known = log.flatMap((entry): LogEntry[] => {
    const timestamp = parseTimestamp(entry.timestamp)
    return timestamp === undefined ? [] : [{ status: entry.status, timestamp }]
  })
  if (known.length === 0) known.push({ status: 'requested', timestamp: start })
  if (known.at(-1)?.status !== status) known.push({ status, timestamp: end })
  return known
}
