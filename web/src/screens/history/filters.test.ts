import { describe, expect, test } from 'vitest'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import {
  addressOfFilter,
  dependsOnStatus,
  historyFilterOf,
  isHistoryFiltered,
  historyKeyOf,
  matches,
  noFilter,
  historyQueryOf,
} from './filters.ts'

const now = Date.parse('2030-01-02T00:00:00Z')
const id = '65f0a0b0c0d0e0f0a1b2c3d4'

const execution: ExecutionSummary = {
  id,
  status: 'failed',
  start_timestamp: '2030-01-01T23:30:00.000000Z',
  log: [],
  action: { ref: 'core.local', name: 'local', pack: 'core' },
  runner: { name: 'local-shell-cmd' },
  context: { user: 'Ada' },
  liveaction: { id: 'l', runner_info: {} },
}

describe('an address', () => {
  test.each([
    '',
    'status=failed,timeout',
    'action=core.local&user=ada&rule=on_order&trigger_type=svc.webhook&runner=noop',
    'since=24h&until=2030-01-01T00%3A00%3A00.000Z',
    'q=core+65f0&children=1',
    'output=a+b',
    `parent=${id}`,
  ])('%j leads to a filter and back', (text) => {
    const query = new URLSearchParams(text)
    const filter = historyFilterOf(query)
    const values = Object.entries(addressOfFilter(filter)).filter(([, value]) => value !== undefined)
    expect(Object.fromEntries(values)).toEqual(Object.fromEntries(query))
    expect(isHistoryFiltered(filter)).toBe(text !== '')
  })

  test('with other things in it, blanks, or the same status twice', () => {
    const filter = historyFilterOf(new URLSearchParams('line=7&status=failed,,failed&action= core.local &children=0'))
    expect(filter).toEqual({ ...noFilter, status: ['failed'], action: 'core.local' })
    expect(historyKeyOf(filter)).toBe(
      historyKeyOf(historyFilterOf(new URLSearchParams('action=core.local&status=failed'))),
    )
  })

  test('to show children is no narrowing', () => {
    expect(isHistoryFiltered(historyFilterOf(new URLSearchParams('children=1')))).toBe(false)
  })
})

test.each<[address: string, query: Record<string, unknown>]>([
  ['', { parent: 'null' }],
  ['children=1', {}],
  [`parent=${id}`, { parent: id }],
  [`parent=${id}&children=1`, { parent: id }],
  ['status=failed,timeout&action=a.b', { status: ['failed', 'timeout'], action: 'a.b', parent: 'null' }],
  ['q=core+ada', { search: 'core ada', parent: 'null' }],
  // What is looked for by its id may be a child.
  [`q=${id}`, { search: id }],
  ['q=parameters.hosts:web1+core', { search: 'core', filter: 'parameters.hosts:web1', parent: 'null' }],
  ['output=Connection+refused', { output: 'Connection refused', output_ignore_case: 'true' }],
  ['q=http://x', { search: 'http://x', parent: 'null' }],
  ['since=1h', { parent: 'null', timestamp_gt: '2030-01-01T23:00:00.000Z', sort_desc: 1 }],
  ['until=2030-01-01T00:00:00Z', { parent: 'null', timestamp_lt: '2030-01-01T00:00:00.000Z' }],
  ['since=nonsense', { parent: 'null' }],
])('the request of %j', (address, query) => {
  const sent = Object.entries(historyQueryOf(historyFilterOf(new URLSearchParams(address)), now)).filter(
    ([, value]) => value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0),
  )
  expect(Object.fromEntries(sent)).toEqual(query)
})

describe('an execution matches', () => {
  test.each<[address: string, expected: boolean | undefined, more?: Partial<ExecutionSummary>]>([
    ['', true],
    ['', false, { parent: id }],
    ['children=1', true, { parent: id }],
    [`parent=${id}`, true, { parent: id }],
    [`parent=${id}`, false],
    ['status=failed,timeout', true],
    ['status=running', false],
    ['action=core.local', true],
    ['action=core', false],
    ['user=Ada', true],
    ['user=ada', false],
    ['runner=noop', false],
    ['rule=null', true],
    ['rule=null', false, { rule: { name: 'r' } }],
    ['rule=r', true, { rule: { name: 'r' } }],
    ['trigger_type=svc.webhook', true, { trigger_type: { name: 'svc.webhook' } }],
    ['trigger_type=svc.webhook', false],
    ['since=1h', true],
    ['since=1h', false, { start_timestamp: '2030-01-01T22:59:59.000000Z' }],
    ['until=2030-01-01T00:00:00Z', false],
    ['q=LOCAL+ada', true],
    ['q=remote', false],
    ['q=order', true, { rule: { name: 'on_order' } }],
    [`q=${id.slice(0, 12)}`, true, { parent: id }],
    [`q=${id.slice(1, 13)}`, false],
    ['q=parameters.cmd:x', undefined],
    ['q=parameters.cmd:x+remote', false],
  ])('%j: %s', (address, expected, more = {}) => {
    expect(matches(historyFilterOf(new URLSearchParams(address)), { ...execution, ...more }, now)).toBe(expected)
  })

  test('for good, or only while it has a status', () => {
    const depends = (address: string): boolean => dependsOnStatus(historyFilterOf(new URLSearchParams(address)))
    expect([depends(''), depends('action=a.b&q=x'), depends('status=failed'), depends('q=result.code:1')]).toEqual([
      false,
      false,
      true,
      true,
    ])
  })
})
