/** What has run on StackStorm, in the form in which svc takes over its history. */
import { zstdDecompressSync } from 'node:zlib'
import { formatMicros, parseTimestamp } from '../core/time.ts'
import { readJson, writeJson } from '../lib/json/index.ts'
import { isObject } from '../lib/schema/index.ts'
import { ownTriggerType } from './names.ts'
import { readRecords, type Fields } from './read-records.ts'
import { kindOf, unescaped, type Converted, type HistoryKind } from './records.ts'

/** Kinds of the history that are taken over. */
export const importedHistory = [
  'execution',
  'execution_output',
  'trigger_instance',
  'rule_enforcement',
  'trace',
] as const satisfies readonly HistoryKind[]
export type ImportedHistoryKind = (typeof importedHistory)[number]

/** Of a compressed value. */
const MAX_VALUE_BYTES = 16 * 1024 * 1024

export interface HistoryRecord {
  /** Path and place. */
  source: string
  converted: Converted
}

/** What else is known when records are converted. */
export interface HistoryLookups {
  /** Reference of a trigger → reference of its type, as an export has it. */
  triggerTypes: ReadonlyMap<string, string>
  /** Id → live action, of executions whose own records lack an end or a result. */
  liveActions: ReadonlyMap<string, Fields>
}

/** Live actions that are kept, and bytes of their results. */
const MAX_LIVE_ACTIONS = 100_000
const MAX_LIVE_BYTES = 64 * 1024 * 1024

/** The live actions of executions whose own records lack an end or a result; beyond the bounds those stay as they are. */
export async function readLiveActions(
  executions: readonly string[],
  liveActions: readonly string[],
): Promise<Map<string, Fields>> {
  const wanted = new Set<string>()
  const found = new Map<string, Fields>()
  if (liveActions.length === 0) return found
  for (const file of executions) {
    for await (const item of readRecords(file)) {
      if ('problem' in item || kindOf(item) !== 'execution' || wanted.size >= MAX_LIVE_ACTIONS) continue
      const { fields } = item
      const isWhole = finalStatuses.has(text(fields['status'])) && !hasNone(fields['result'])
      const id = text(liveActionOf(fields)['id'])
      if (!isWhole && id !== '') wanted.add(id)
    }
  }
  let bytes = 0
  for (const file of wanted.size === 0 ? [] : liveActions) {
    for await (const item of readRecords(file)) {
      if ('problem' in item || kindOf(item) !== 'live_action') continue
      const id = idOf(item.fields)
      if (!wanted.has(id) || bytes > MAX_LIVE_BYTES) continue
      const { status, result, end_timestamp: end, callback, runner_info: info, notify } = item.fields
      bytes += Buffer.isBuffer(result) ? result.length : (writeJson(result ?? null)?.length ?? 0)
      found.set(id, { status, result, end_timestamp: end, callback, runner_info: info, notify })
    }
  }
  return found
}

/** Up to StackStorm 3.8 an execution holds its live action, later only its id. */
const liveActionOf = (fields: Fields): Fields =>
  isObject(fields['liveaction'])
    ? objectOf(fields['liveaction'])
    : { id: text(fields['liveaction'] ?? fields['liveaction_id']) }

/** Reads one record at a time. Never throws for what is in the files. */
export async function* readHistory(
  kind: ImportedHistoryKind,
  files: readonly string[],
  lookups: HistoryLookups,
): AsyncGenerator<HistoryRecord> {
  for (const file of files) {
    for await (const item of readRecords(file)) {
      // A file of several kinds is read for each of them: its problems are known.
      if ('problem' in item || kindOf(item) !== kind) continue
      yield { source: `${file}: record ${item.index}`, converted: converters[kind](item.fields, lookups) }
    }
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const idPattern = /^[0-9a-f]{24}$/

function idOf(fields: Fields): string {
  return text(fields['id'] ?? fields['_id']).toLowerCase()
}

const finalStatuses: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timeout', 'abandoned', 'canceled'])
const knownStatuses: ReadonlySet<string> = new Set([
  ...finalStatuses,
  'requested',
  'scheduled',
  'delayed',
  'running',
  'canceling',
  'pending',
  'pausing',
  'paused',
  'resuming',
])

const withoutId = (id: string): Converted => ({
  name: id || '(without an id)',
  refused: 'its id is not 24 hexadecimal digits',
})

const converters: Readonly<Record<ImportedHistoryKind, (fields: Fields, lookups: HistoryLookups) => Converted>> = {
  execution: convertExecution,
  execution_output: convertOutput,
  trigger_instance: convertInstance,
  rule_enforcement: convertEnforcement,
  trace: convertTrace,
}

function convertExecution(own: Fields, { liveActions }: HistoryLookups): Converted {
  const liveaction = liveActionOf(own)
  const fields = withLiveAction(own, liveActions.get(text(liveaction['id'])))
  const id = idOf(fields)
  if (!idPattern.test(id)) return withoutId(id)
  const status = text(fields['status'])
  if (!finalStatuses.has(status)) {
    return knownStatuses.has(status)
      ? { name: id, skipped: `it is ${status}: the next import takes it over when it has ended` }
      : { name: id, refused: 'svc does not know its status' }
  }
  const start = timeOf(fields['start_timestamp'])
  if (start === undefined) return { name: id, refused: 'it has no start_timestamp that is a time' }
  const action = objectOf(fields['action'])
  const runner = objectOf(fields['runner'])
  const runnerType = action['runner_type']
  let parameters: unknown
  let result: unknown
  try {
    parameters = unescaped(stored(fields['parameters']))
    result = unescaped(stored(fields['result']))
  } catch {
    return { name: id, refused: 'its parameters or its result cannot be read: they are damaged' }
  }
  const trigger = objectOf(fields['trigger'])
  const instance = objectOf(fields['trigger_instance'])
  const parent = text(fields['parent'])
  return {
    name: id,
    fromPack: false,
    desired: given({
      id,
      status,
      start_timestamp: start,
      end_timestamp: timeOf(fields['end_timestamp']),
      action: {
        ...action,
        // The database holds the runner type of the action as an object.
        runner_type: isObject(runnerType) ? text(runnerType['name']) : text(runnerType) || text(runner['name']),
      },
      runner,
      liveaction: {
        ...pick(liveActions.get(text(liveaction['id']))),
        ...liveaction,
        notify: stored(liveaction['notify']),
      },
      parameters: isObject(parameters) ? parameters : undefined,
      result: result ?? undefined,
      context: objectOf(fields['context']),
      log: logOf(fields['log']),
      parent: idPattern.test(parent) ? parent : undefined,
      delay: Number.isSafeInteger(fields['delay']) && Number(fields['delay']) > 0 ? fields['delay'] : undefined,
      rule: objectOf(fields['rule']),
      trigger: Object.keys(trigger).length === 0 ? {} : { ...trigger, type: ownTriggerType(text(trigger['type'])) },
      trigger_type: ownType(objectOf(fields['trigger_type'])),
      trigger_instance: given({
        id: text(instance['id'] ?? instance['_id']),
        trigger: text(instance['trigger']),
        occurrence_time: timeOf(instance['occurrence_time']),
      }),
    }),
  }
}

/** What the record of an execution lacks, its live action may have. */
function withLiveAction(own: Fields, live: Fields | undefined): Fields {
  if (live === undefined) return own
  const hasEnded = finalStatuses.has(text(own['status'])) || !finalStatuses.has(text(live['status']))
  return {
    ...own,
    status: hasEnded ? own['status'] : live['status'],
    end_timestamp: own['end_timestamp'] ?? live['end_timestamp'],
    result: hasNone(own['result']) ? live['result'] : own['result'],
  }
}

const hasNone = (result: unknown): boolean =>
  result === undefined || result === null || (isObject(result) && Object.keys(result).length === 0)

function pick(live: Fields | undefined): Fields {
  return live === undefined ? {} : { callback: objectOf(live['callback']), runner_info: objectOf(live['runner_info']) }
}

function convertInstance(fields: Fields, { triggerTypes }: HistoryLookups): Converted {
  const id = idOf(fields)
  if (!idPattern.test(id)) return withoutId(id)
  const status = text(fields['status'])
  if (status === 'pending' || status === 'processing') {
    return { name: id, skipped: `it is ${status}: the next import takes it over when it is processed` }
  }
  const at = timeOf(fields['occurrence_time'])
  if (at === undefined) return { name: id, refused: 'it has no occurrence_time that is a time' }
  const trigger = text(fields['trigger'])
  if (trigger === '') return { name: id, refused: 'it has no trigger' }
  const type = triggerTypes.get(trigger)
  let payload: unknown
  try {
    payload = stored(fields['payload'])
  } catch {
    return { name: id, refused: 'its payload cannot be read: it is damaged' }
  }
  return {
    name: id,
    fromPack: false,
    desired: given({
      id,
      trigger: ownTriggerType(trigger),
      trigger_type: type === undefined ? undefined : ownTriggerType(type),
      payload: objectOf(payload),
      occurrence_time: at,
      status: status === 'processing_failed' ? status : 'processed',
    }),
  }
}

function convertOutput(fields: Fields): Converted {
  const id = idOf(fields)
  if (!idPattern.test(id)) return withoutId(id)
  const timestamp = timeOf(fields['timestamp'])
  if (timestamp === undefined) return { name: id, refused: 'it has no timestamp that is a time' }
  const { data, execution_id: execution } = fields
  if (typeof data !== 'string') return { name: id, refused: 'its data is not text' }
  const type = text(fields['output_type'])
  return {
    name: id,
    fromPack: false,
    desired: {
      id,
      execution_id: text(execution),
      output_type: type === 'stdout' || type === 'stderr' ? type : 'other',
      data,
      timestamp,
    },
  }
}

function convertEnforcement(fields: Fields): Converted {
  const id = idOf(fields)
  if (!idPattern.test(id)) return withoutId(id)
  const at = timeOf(fields['enforced_at'])
  if (at === undefined) return { name: id, refused: 'it has no enforced_at that is a time' }
  const rule = objectOf(fields['rule'])
  const ref = text(rule['ref'])
  if (ref === '') return { name: id, refused: 'its rule has no ref' }
  return {
    name: id,
    fromPack: false,
    desired: given({
      id,
      trigger_instance_id: text(fields['trigger_instance_id']),
      execution_id: text(fields['execution_id']),
      failure_reason: text(fields['failure_reason']),
      rule: given({ ref, uid: text(rule['uid']), id: text(rule['id']) }),
      enforced_at: at,
    }),
  }
}

function ownType(type: Fields): Fields {
  const ref = text(type['ref'])
  const own = ownTriggerType(ref)
  return own === ref ? type : { ...type, ref: own, name: own.slice(own.indexOf('.') + 1) }
}

function convertTrace(fields: Fields): Converted {
  const id = idOf(fields)
  if (!idPattern.test(id)) return withoutId(id)
  const start = timeOf(fields['start_timestamp'])
  if (start === undefined) return { name: id, refused: 'it has no start_timestamp that is a time' }
  return {
    name: id,
    fromPack: false,
    desired: {
      id,
      trace_tag: text(fields['trace_tag']),
      start_timestamp: start,
      action_executions: componentsOf(fields['action_executions'], start),
      rules: componentsOf(fields['rules'], start),
      trigger_instances: componentsOf(fields['trigger_instances'], start),
    },
  }
}

function componentsOf(value: unknown, start: string): Fields[] {
  return (Array.isArray(value) ? value : []).filter(isObject).flatMap((component) => {
    const objectId = text(component['object_id'])
    if (objectId === '') return []
    const causedBy = objectOf(component['caused_by'])
    return {
      object_id: objectId,
      ref: ownTriggerType(text(component['ref'])),
      updated_at: timeOf(component['updated_at']) ?? start,
      caused_by: given({ type: text(causedBy['type']), id: text(causedBy['id']) }),
    }
  })
}

/** Only attributes with a value. */
function given(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== undefined && value !== '' && !(isObject(value) && Object.keys(value).length === 0),
    ),
  )
}

function objectOf(value: unknown): Fields {
  const plain = unescaped(value)
  if (!isObject(plain) || Buffer.isBuffer(plain)) return {}
  return '_id' in plain && !('id' in plain) ? { ...plain, id: plain['_id'] } : plain
}

function logOf(value: unknown): Fields[] {
  return (Array.isArray(value) ? value : []).filter(isObject).flatMap((entry) => {
    const timestamp = timeOf(entry['timestamp'])
    const status = text(entry['status'])
    return timestamp === undefined || !knownStatuses.has(status) ? [] : { status, timestamp }
  })
}

/** A wire timestamp; the database has whole microseconds. */
function timeOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? formatMicros(value) : undefined
  return typeof value === 'string' ? parseTimestamp(value) : undefined
}

const COLON = 0x3a

/**
 * Parameters and results are JSON in bytes, compressed or not, with or without a header of the two: `o:n:` or `o:z:`.
 *
 * @throws Error when they are damaged
 */
function stored(value: unknown): unknown {
  if (!Buffer.isBuffer(value)) return value
  const hasHeader = value.length >= 4 && value[1] === COLON && value[3] === COLON
  const bytes = hasHeader ? value.subarray(4) : value
  const isCompressed = bytes.length >= 4 && bytes.readUInt32LE(0) === ZSTANDARD_MAGIC
  const plain = isCompressed ? zstdDecompressSync(bytes, { maxOutputLength: MAX_VALUE_BYTES }) : bytes
  if (plain.length === 0) return undefined
  return readJson(plain.toString(), { maxDepth: 100, maxValues: 4_000_000, refusedKey: '__proto__' })
}

const ZSTANDARD_MAGIC = 0xfd2fb528
