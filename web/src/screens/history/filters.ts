/** Filters of the history: in the address, in requests, and for executions of events. */
import type { QueryValues } from '../../api/client.ts'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import { writeJson } from '../../json.ts'

export interface HistoryFilter {
  /** Any of them; none: all. */
  status: readonly string[]
  /** Empty texts: not narrowed down. */
  action: string
  user: string
  /** Its name; `null`: what no rule has started. */
  rule: string
  trigger_type: string
  runner: string
  /** Id of the execution whose children are listed. */
  parent: string
  /** The last `1h`, `24h`, `7d`, `30d`, or a time. */
  since: string
  until: string
  search: string
  /** Text in a line of the output, in upper or lower case. */
  output: string
  hasChildren: boolean
}

export const timeSpans: readonly { name: string; title: string; ms: number }[] = [
  { name: '1h', title: 'Last hour', ms: 3_600_000 },
  { name: '24h', title: 'Last 24 hours', ms: 86_400_000 },
  { name: '7d', title: 'Last 7 days', ms: 7 * 86_400_000 },
  { name: '30d', title: 'Last 30 days', ms: 30 * 86_400_000 },
]

const texts = ['action', 'user', 'rule', 'trigger_type', 'runner', 'parent', 'since', 'until', 'output'] as const

export function historyFilterOf(query: URLSearchParams): HistoryFilter {
  const text = (name: string): string => query.get(name)?.trim() ?? ''
  return {
    status: [...new Set(text('status').split(','))].filter((one) => one !== ''),
    action: text('action'),
    user: text('user'),
    rule: text('rule'),
    trigger_type: text('trigger_type'),
    runner: text('runner'),
    parent: text('parent'),
    since: text('since'),
    until: text('until'),
    search: text('q'),
    output: text('output'),
    hasChildren: text('children') === '1',
  }
}

/** What of the address belongs to it; `undefined` removes a name. */
export function addressOfFilter(filter: Partial<HistoryFilter>): Record<string, string | undefined> {
  const values: Record<string, string | undefined> = {}
  for (const name of texts) if (name in filter) values[name] = filter[name] === '' ? undefined : filter[name]
  if (filter.status !== undefined) values['status'] = filter.status.join(',') || undefined
  if (filter.search !== undefined) values['q'] = filter.search.trim() || undefined
  if (filter.hasChildren !== undefined) values['children'] = filter.hasChildren ? '1' : undefined
  return values
}

export const noFilter: HistoryFilter = historyFilterOf(new URLSearchParams())

export function isHistoryFiltered(filter: HistoryFilter): boolean {
  return Object.values(addressOfFilter({ ...filter, hasChildren: false })).some((value) => value !== undefined)
}

/** Two that are equal list the same. */
export function historyKeyOf(filter: HistoryFilter): string {
  return writeJson(addressOfFilter(filter))
}

interface Search {
  words: string[]
  /** `parameters.hosts:web1`: conditions on what is inside of executions. */
  conditions: string[]
  /** Whether a word looks like an id, which is looked for among children, too. */
  hasId: boolean
}

const condition = /^[\w-]+(\.[\w-]+)+:./

export function searchOf(text: string): Search {
  const parts = text.split(/\s+/).filter((part) => part !== '')
  const words = parts.filter((part) => !condition.test(part))
  return {
    words,
    conditions: parts.filter((part) => condition.test(part)),
    hasId: words.some(isBeginningOfId),
  }
}

/** The server looks at each execution for these: they are not sent while somebody types. */
export function hasConditions(text: string): boolean {
  return searchOf(text).conditions.length > 0
}

/** As the server sees it. */
function isBeginningOfId(word: string): boolean {
  return /^[0-9a-f]{12,24}$/.test(word)
}

/** Of the list of executions, newest first. @param now milliseconds since the epoch */
export function historyQueryOf(filter: HistoryFilter, now: number): QueryValues {
  const { words, conditions, hasId } = searchOf(filter.search)
  const { from, to } = timesOf(filter, now)
  return {
    status: filter.status,
    action: filter.action,
    user: filter.user,
    rule: filter.rule,
    trigger_type: filter.trigger_type,
    runner: filter.runner,
    parent:
      filter.parent !== ''
        ? filter.parent
        : showsChildren(filter) || hasId || filter.output !== ''
          ? undefined
          : 'null',
    timestamp_gt: from === undefined ? undefined : wireTime(from),
    timestamp_lt: to === undefined ? undefined : wireTime(to),
    search: words.join(' '),
    filter: conditions.join(' '),
    output: filter.output,
    output_ignore_case: filter.output === '' ? undefined : 'true',
    // With a first time alone the server would begin with the oldest.
    sort_desc: from === undefined ? undefined : 1,
  }
}

function showsChildren({ hasChildren, parent }: HistoryFilter): boolean {
  return hasChildren || parent !== ''
}

/** Whether the server looks at each execution. */
export function isCostly({ search, output }: HistoryFilter): boolean {
  return output !== '' || hasConditions(search)
}

/** Whether an execution comes into the list, or leaves it, when its status changes. */
export function dependsOnStatus(filter: HistoryFilter): boolean {
  return filter.status.length > 0 || isCostly(filter)
}

/** @returns undefined when only the server can tell */
export function matches(filter: HistoryFilter, execution: ExecutionSummary, now: number): boolean | undefined {
  const { action, runner, context, rule, trigger_type: triggerType, parent, status } = execution
  const { words, hasId } = searchOf(filter.search)
  const { from, to } = timesOf(filter, now)
  const start = Date.parse(execution.start_timestamp)
  const fits =
    (filter.status.length === 0 || filter.status.includes(status)) &&
    (filter.action === '' || filter.action === action.ref) &&
    (filter.user === '' || filter.user === context.user) &&
    (filter.runner === '' || filter.runner === runner.name) &&
    equals(filter.rule, rule?.name) &&
    equals(filter.trigger_type, triggerType?.name) &&
    (filter.parent !== ''
      ? filter.parent === parent
      : showsChildren(filter) || hasId || filter.output !== '' || parent === undefined) &&
    (from === undefined || start > from) &&
    (to === undefined || start < to) &&
    words.every((word) => hasWord(execution, word))
  return fits && isCostly(filter) ? undefined : fits
}

function equals(wanted: string, value: string | undefined): boolean {
  if (wanted === '') return true
  return wanted.toLowerCase() === 'null' ? value === undefined : wanted === value
}

function hasWord({ id, action, rule, context }: ExecutionSummary, word: string): boolean {
  if (isBeginningOfId(word)) return id.startsWith(word)
  const wanted = word.toLowerCase()
  return [action.ref, rule?.name ?? '', context.user].some((text) => text.toLowerCase().includes(wanted))
}

/** Milliseconds since the epoch. */
function timesOf({ since, until }: HistoryFilter, now: number): { from: number | undefined; to: number | undefined } {
  const span = timeSpans.find(({ name }) => name === since)
  return { from: span === undefined ? parseTime(since) : now - span.ms, to: parseTime(until) }
}

function parseTime(text: string): number | undefined {
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

function wireTime(ms: number): string {
  return new Date(ms).toISOString()
}
