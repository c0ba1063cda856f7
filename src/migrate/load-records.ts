/** Reads all exports of an installation: what is taken over is kept, the history only counted. */
import { nowMicros } from '../core/time.ts'
import { canonicalText } from './canonical.ts'
import type { Decrypt } from './cipher.ts'
import { readRecords, type Fields } from './read-records.ts'
import {
  convertRecord,
  historyKinds,
  kindOf,
  leftBehind,
  recordKinds,
  type AnyKind,
  type Converted,
  type HistoryKind,
  type LeftBehindKind,
  type RecordKind,
} from './records.ts'

/** Of all kinds together. */
const MAX_RECORDS = 500_000
const MAX_BYTES = 512 * 1024 * 1024
/** Named one by one. */
const MAX_PROBLEMS = 10_000

export interface LoadedRecord {
  /** Path and place, such as `rules.json: record 3`. */
  source: string
  converted: Converted
}

export interface LoadedRecords {
  records: Record<RecordKind, LoadedRecord[]>
  history: Record<HistoryKind, { count: number; files: string[] }>
  /** Files with live actions. */
  liveActionFiles: string[]
  /** Reference of a trigger → reference of its type. */
  triggerTypes: ReadonlyMap<string, string>
  left: Partial<Record<LeftBehindKind, number>>
  problems: string[]
  problemsMore: number
}

/** @param say gets the count of records so far, from time to time */
export async function loadRecords(
  files: readonly string[],
  decrypt: Decrypt,
  say: (count: number) => void = () => undefined,
): Promise<LoadedRecords> {
  const waiting: { kind: RecordKind; fields: Fields; source: string }[] = []
  const triggers = new Map<string, Fields>()
  const grants = new Map<string, Fields>()
  const loaded: LoadedRecords = {
    records: Object.fromEntries(recordKinds.map((kind) => [kind, []])) as unknown as LoadedRecords['records'], // each kind has its list
    history: Object.fromEntries(
      historyKinds.map((kind) => [kind, { count: 0, files: [] }]),
    ) as unknown as LoadedRecords['history'],
    liveActionFiles: [],
    triggerTypes: new Map(),
    left: {},
    problems: [],
    problemsMore: 0,
  }
  const report = (problem: string): void => {
    if (loaded.problems.length < MAX_PROBLEMS) loaded.problems.push(problem)
    else loaded.problemsMore += 1
  }

  function take(kind: AnyKind, fields: Fields, source: string, file: string): void {
    if (isOneOf(recordKinds, kind)) waiting.push({ kind, fields, source })
    else if (isOneOf(historyKinds, kind)) {
      const history = loaded.history[kind]
      history.count += 1
      if (history.files.at(-1) !== file) history.files.push(file)
    } else if (kind === 'live_action') {
      if (loaded.liveActionFiles.at(-1) !== file) loaded.liveActionFiles.push(file)
    } else if (kind === 'trigger')
      triggers.set(textOf(fields['ref']) || `${textOf(fields['pack'])}.${textOf(fields['name'])}`, fields)
    else if (kind === 'permission_grant') grants.set(textOf(fields['_id'] ?? fields['id']), fields)
    else if (kind in leftBehind) {
      const left = kind as LeftBehindKind // its own keys
      loaded.left[left] = (loaded.left[left] ?? 0) + 1
    }
  }

  let count = 0
  let bytes = 0
  for (const file of files) {
    for await (const item of readRecords(file)) {
      count += 1
      if (count % 1000 === 0) say(count)
      if ('problem' in item) {
        report(`${file}${item.index === undefined ? '' : `: record ${item.index}`}: ${item.problem}`)
        continue
      }
      const kind = kindOf(item)
      if (isOneOf(recordKinds, kind)) bytes += sizeOf(item.fields)
      if (waiting.length >= MAX_RECORDS || bytes > MAX_BYTES) {
        report(
          `${file}: more than ${MAX_RECORDS} records or ${MAX_BYTES} bytes that are not history; the rest is not read`,
        )
        break
      }
      take(kind, item.fields, `${file}: record ${item.index}`, file)
    }
  }
  loaded.triggerTypes = new Map([...triggers].map(([ref, { type }]) => [ref, textOf(type)]))
  const lookups = { triggers, grants, decrypt, now: nowMicros() }
  for (const { kind, fields, source } of waiting) {
    loaded.records[kind].push({ source, converted: convertRecord(kind, fields, lookups) })
  }
  loaded.records.role_assignment = joinAssignments(loaded.records.role_assignment)
  for (const kind of recordKinds) loaded.records[kind] = refuseRepeated(loaded.records[kind])
  return loaded
}

function isOneOf<const T extends string>(names: readonly T[], name: string): name is T {
  return (names as readonly string[]).includes(name)
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf) : [])

/** Roughly, in bytes. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 2 * value.length + 16
  if (Buffer.isBuffer(value)) return value.length
  if (typeof value !== 'object' || value === null) return 16
  let sum = 16
  for (const [key, inner] of Object.entries(value)) sum += 2 * key.length + sizeOf(inner)
  return sum
}

/** A file of svc has all roles of a user. */
function joinAssignments(records: readonly LoadedRecord[]): LoadedRecord[] {
  const byUser = new Map<string, LoadedRecord>()
  const others: LoadedRecord[] = []
  for (const record of records) {
    const { converted } = record
    if (!('desired' in converted)) others.push(record)
    else {
      const known = byUser.get(converted.name)
      const before = known !== undefined && 'desired' in known.converted ? known.converted.desired['roles'] : []
      const roles = [...new Set([...textsOf(before), ...textsOf(converted.desired['roles'])])].toSorted()
      byUser.set(converted.name, {
        ...record,
        converted: { ...converted, desired: { username: converted.name, roles } },
      })
    }
  }
  return [...byUser.values(), ...others]
}

/** The same record in two exports counts once; two that differ would overwrite each other. */
function refuseRepeated(records: readonly LoadedRecord[]): LoadedRecord[] {
  const seen = new Map<string, { text: string; source: string }>()
  return records.flatMap((record) => {
    const { converted, source } = record
    if (!('desired' in converted)) return [record]
    const text = canonicalText(converted.desired)
    const first = seen.get(converted.name)
    if (first === undefined) {
      seen.set(converted.name, { text, source })
      return [record]
    }
    if (first.text === text) return []
    const why = `${first.source} has another record of this name than ${source}: keep one of them`
    return [{ source, converted: { name: converted.name, refused: why } }]
  })
}
