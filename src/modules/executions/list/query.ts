/** From query parameters to a page of executions (contract 03, 3.3). */
import { queryInvalid } from '../../../core/errors.ts'
import {
  isNullFilter,
  parseItems,
  parsePlace,
  parseSort,
  parseTime,
  placeQuery,
  textFilter,
  type Place,
  type QueryParameter,
  type QueryValue,
} from '../../../http/index.ts'
import { MAX_FOUND_LINES, readCursor, type FindRequest } from '../output/find.ts'
import {
  snapshotParts,
  type ExecutionFilter,
  type PathColumn,
  type PathFilter,
  type Sort,
  type SortColumn,
} from './filter.ts'
import { shown } from '../../../lib/text/index.ts'

const text = (description: string): QueryParameter => ({ type: 'string', description })

export const filterParameters: Record<string, QueryParameter> = {
  id: { type: 'array', description: 'At most 100 ids.' },
  action: text('Action reference.'),
  status: { type: 'array', description: 'One status or several.' },
  user: text('Acting user.'),
  runner: text('Name of the runner type.'),
  parent: text('Id of the parent execution; `null` for top-level executions.'),
  liveaction: text('Id of the live action.'),
  rule: text('Name or reference of the rule that started it, or `null`.'),
  trigger: text('Name or reference of the trigger that started it, or `null`.'),
  trigger_type: text('Name or reference of the type of that trigger, or `null`.'),
  trigger_instance: text('Id of the trigger instance that started it, or `null`.'),
  timestamp: text('Start time, exact or an inclusive range `<a>..<b>`.'),
  timestamp_gt: text('Started after this time.'),
  timestamp_lt: text('Started before this time.'),
  filter: text('Tokens `path.to.field:value` separated by blanks; all must match.'),
  search: text(
    'Words separated by blanks: each is in the action reference, the name of the rule or the acting user, or is the beginning of the id (12 digits or more).',
  ),
  output: text(
    'Text in a line of the output, without the control sequences of terminals. Newest executions first; without `offset` and `sort`. Each request searches for about a second: continue with `output_cursor` while the answer has `X-Output-Cursor`.',
  ),
  output_ignore_case: { type: 'boolean', description: 'Finds `output` in upper and lower case.' },
  output_cursor: text('Where the search continues: `X-Output-Cursor` of the answer before.'),
  include_matches: {
    type: 'integer',
    description: `With \`output\`: most matching lines of each execution to include as \`output_matches\`, up to ${MAX_FOUND_LINES}. Default: 0.`,
  },
  ...placeQuery,
  sort: { type: 'array', description: 'Field names, `-` before a name for descending.' },
  sort_asc: text('Oldest first when not empty.'),
  sort_desc: text('Newest first when not empty.'),
}

export interface ListQuery {
  filter: ExecutionFilter
  sort: Sort[]
  /** In the order of ids. */
  place?: Place
}

/** @param hidesSecrets excludes secret parameters from the search @throws QUERY_INVALID */
export function parseListQuery(query: Record<string, QueryValue>, hidesSecrets: boolean): ListQuery {
  const filter: ExecutionFilter = {}
  const ids = parseItems(query['id'])
  if (ids !== undefined) filter.ids = ids
  const statuses = [...new Set(parseItems(query['status']))]
  if (statuses.length > 1) filter.statuses = statuses
  else if (statuses[0] !== undefined) filter.status = statuses[0]
  for (const name of ['action', 'user', 'runner', 'liveaction'] as const) {
    const value = textFilter(query, name)
    if (value !== undefined) filter[name] = value
  }
  for (const name of ['parent', 'rule', 'trigger', 'trigger_type', 'trigger_instance'] as const) {
    const value = textFilter(query, name)
    if (value !== undefined) filter[name] = isNullFilter(value) ? null : value
  }
  const after = parseTime(query, 'timestamp_gt')
  const before = parseTime(query, 'timestamp_lt')
  if (after !== undefined) filter.startedAfter = after
  if (before !== undefined) filter.startedBefore = before

  let direction: Sort['direction'] = after !== undefined && before === undefined ? 'asc' : 'desc'
  const range = textFilter(query, 'timestamp')
  if (range !== undefined) {
    const [from = '', to = from] = range.split('..', 2)
    const first = parseTime({ timestamp: from }, 'timestamp') ?? ''
    const second = parseTime({ timestamp: to }, 'timestamp') ?? ''
    filter.startedFrom = first < second ? first : second
    filter.startedTo = first < second ? second : first
    if (range.includes('..')) direction = first < second ? 'asc' : 'desc'
  }
  if (textFilter(query, 'sort_asc') !== undefined) direction = 'asc'
  if (textFilter(query, 'sort_desc') !== undefined) direction = 'desc'

  const tokens = textFilter(query, 'filter')
  if (tokens !== undefined) applyAdvanced(filter, tokens, hidesSecrets)
  const search = textFilter(query, 'search')
  if (search !== undefined) applySearch(filter, search)
  const sort = parseSort(query['sort'], [...sortColumns.keys()]).map(({ name, descending }): Sort => ({
    column: sortColumns.get(name) ?? 'id',
    direction: descending ? 'desc' : 'asc',
  }))
  const place = parsePlace(
    query,
    sort.every(({ column }) => column === 'id'),
  )
  return {
    filter,
    sort: sort.length > 0 ? sort : [{ column: 'id', direction }],
    ...(place === undefined ? {} : { place }),
  }
}

/** What to find in outputs; undefined: nothing. @throws QUERY_INVALID */
export function parseOutputQuery(query: Record<string, QueryValue>): Omit<FindRequest, 'page' | 'limit'> | undefined {
  const wanted = textFilter(query, 'output')
  if (wanted === undefined) {
    const other = ['output_cursor', 'include_matches', 'output_ignore_case'].find((name) => query[name] !== undefined)
    if (other === undefined) return undefined
    throw queryInvalid(`Parameter "${other}" needs "output", the text to find in outputs`)
  }
  const order = ['sort', 'sort_asc', 'offset', 'before_id'].find((name) => query[name] !== undefined)
  if (order !== undefined) {
    throw queryInvalid(
      `Parameter "${order}" does not go with "output": a search finds the newest executions first and continues with "output_cursor"`,
    )
  }
  const lines = query['include_matches'] ?? 0
  if (typeof lines !== 'number' || lines < 0 || lines > MAX_FOUND_LINES) {
    throw queryInvalid(`Parameter "include_matches" must be from 0 to ${MAX_FOUND_LINES}`)
  }
  const cursor = textFilter(query, 'output_cursor')
  return {
    text: wanted,
    ignoreCase: query['output_ignore_case'] === true,
    lines,
    cursor: cursor === undefined ? undefined : readCursor(cursor),
  }
}

const MAX_WORDS = 10
const beginningOfId = /^[0-9a-f]{12,24}$/

/** @throws QUERY_INVALID */
function applySearch(filter: ExecutionFilter, text: string): void {
  const words = text.split(/\s+/).filter((word) => word !== '')
  if (words.length > MAX_WORDS) throw queryInvalid(`Parameter "search" has more than ${MAX_WORDS} words`)
  const ids = words.filter((word) => beginningOfId.test(word))
  // One is the beginning of the other, or nothing begins with both.
  const longest = ids.reduce((one, other) => (other.length > one.length ? other : one), '')
  if (!ids.every((id) => longest.startsWith(id))) filter.ids = []
  if (longest !== '') filter.idBeginning = longest
  const others = words.filter((word) => !beginningOfId.test(word))
  if (others.length > 0) filter.words = others
}

const sortColumns = new Map<string, SortColumn>([
  ['id', 'id'],
  ['timestamp', 'id'],
  ['start_timestamp', 'id'],
  ['status', 'status'],
  ['action', 'action_ref'],
  ['action.ref', 'action_ref'],
  ['user', 'user'],
  ['runner', 'runner'],
  ['parent', 'parent'],
  ['rule', 'rule'],
  ['trigger', 'trigger'],
  ['trigger_type', 'trigger_type'],
])

type EqualityName =
  | 'action'
  | 'status'
  | 'user'
  | 'runner'
  | 'parent'
  | 'liveaction'
  | 'rule'
  | 'trigger'
  | 'trigger_type'
  | 'trigger_instance'

const indexedPaths = new Map<string, EqualityName>([
  ['status', 'status'],
  ['action.ref', 'action'],
  ['runner.name', 'runner'],
  ['context.user', 'user'],
  ['parent', 'parent'],
  ['liveaction.id', 'liveaction'],
  ['liveaction.action', 'action'],
  ['rule.name', 'rule'],
  ['trigger.name', 'trigger'],
  ['trigger_type.name', 'trigger_type'],
  ['trigger_instance.id', 'trigger_instance'],
])

/** Of what the record says about its action, its runner, and what started it: no schemas and no data. */
const snapshotNames: ReadonlySet<string> = new Set([
  'id',
  'uid',
  'ref',
  'name',
  'pack',
  'type',
  'runner_type',
  'entry_point',
  'enabled',
  'trigger',
  'occurrence_time',
])
const searchable: ReadonlySet<string> = new Set<PathColumn>(['parameters', 'context', 'liveaction', 'result'])
const isSnapshotPart = (name: string): boolean => (snapshotParts as readonly string[]).includes(name)
/** What is stored of the part `liveaction`; the rest of it says again what the execution says. */
const storedOfLiveaction: ReadonlySet<string> = new Set(['callback', 'runner_info', 'notify'])
const MAX_TOKENS = 20

/** @throws QUERY_INVALID */
function applyAdvanced(filter: ExecutionFilter, tokens: string, hidesSecrets: boolean): void {
  const list = tokens.split(/\s+/).filter((token) => token !== '')
  if (list.length > MAX_TOKENS) throw queryInvalid(`Parameter "filter" has more than ${MAX_TOKENS} conditions`)
  for (const token of list) {
    const match = /^([\w-]+(?:\.[\w-]+)*):(.+)$/.exec(token)
    const [, path, value] = match ?? []
    if (path === undefined || value === undefined) throw queryInvalid(`invalid format for filter "${shown(token)}"`)
    const equality = indexedPaths.get(path)
    const [column = '', ...inner] = path.replace(/^liveaction\.parameters\./, 'parameters.').split('.')
    const isStored =
      (searchable.has(column) && (column !== 'liveaction' || storedOfLiveaction.has(inner[0] ?? ''))) ||
      (isSnapshotPart(column) && inner.length === 1 && snapshotNames.has(inner[0] ?? ''))
    if (equality !== undefined && (filter[equality] === undefined || filter[equality] === value)) {
      filter[equality] = value
    } else if (equality !== undefined) {
      // Two different values for one attribute: nothing has both.
      filter.ids = []
    } else if (path === 'id') {
      filter.ids = filter.ids === undefined || filter.ids.includes(value) ? [value] : []
    } else if (isStored && inner.length > 0) {
      const jsonPath = `$${inner.map((name) => `."${name}"`).join('')}`
      const unlessSecret = hidesSecrets && column === 'parameters' ? inner[0] : undefined
      filter.paths = [
        ...(filter.paths ?? []),
        // `column` is in one of the sets of these names.
        {
          column: column as PathFilter['column'],
          path: jsonPath,
          value,
          ...(unlessSecret === undefined ? {} : { unlessSecret }),
        },
      ]
    } else {
      throw queryInvalid(`Cannot resolve field "${shown(path)}" of an execution`)
    }
  }
}
