import { expect, test } from 'vitest'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { createLog } from '../../lib/log/log.ts'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import type { Execution, ExecutionStatus } from '../executions/types.ts'
import { readDestination } from './definition.ts'
import { noticeOf } from './message.ts'
import { createPlanning } from './plan.ts'
import type { Notification } from './types.ts'

interface Case {
  status?: ExecutionStatus
  notify?: unknown
  ofAction?: unknown
  globals?: string[]
  execution?: Partial<Execution>
  willRetry?: boolean
  attempt?: number
  hasFailed?: boolean
  waiting?: number
}

const destination = (name: string, more: Record<string, unknown> = {}) => {
  const outcome = readDestination({ name, channel: 'ntfy', topic: 'x', ...more }, 'f', undefined)
  return 'destination' in outcome ? outcome.destination : undefined
}
const known = new Map([
  ['chat', destination('chat')],
  ['mail', destination('mail', { on: 'all' })],
  ['ok', destination('ok', { on: ['succeeded'] })],
])

function planned(given: Case) {
  const { status = 'failed', notify, ofAction = {}, globals = [], willRetry = false, attempt = 1 } = given
  const rows: (Notification & { recovery?: string })[] = []
  const marks: string[] = []
  const step = (what: string) => ({ query: { compile: () => ({}) as never }, what })
  const planning = createPlanning({
    store: {
      insert: (row) => (rows.push(row), step('insert')),
      insertRecovery: (row, recovery) => (rows.push({ ...row, recovery }), step('recovery')),
      hasFailed: () => given.hasFailed === true,
      markFailed: (job) => (marks.push(`failed ${job}`), step('mark')),
      clearFailed: (job) => (marks.push(`well ${job}`), step('clear')),
    },
    destinations: { find: (name) => known.get(name) },
    ruleOf: () => ({ ref: 'shop.nightly', pack: 'shop', notify, action: 'core.local' }),
    notifyOfAction: () => ({ notify: ofAction, pack: 'core' }),
    waiting: () => given.waiting ?? 0,
    log: createLog({ level: 'INFO', format: 'text', stream: new TextSink() }),
    settings: { enabled: true, globals, on: ['failed', 'timeout', 'recovered', 'missed'], maxPending: 10 },
  })
  const base = makeExecution({ status, action_ref: 'core.local', end_timestamp: '2026-01-31T12:00:00.000000Z' })
  const rule = { id: 'r', uid: '', ref: 'shop.nightly', name: 'nightly', pack: 'shop', description: '' }
  const origin = { rule, trigger: { ...rule, type: '' }, trigger_type: rule }
  const execution = { ...base, origin, action: { ...base.action, notify: ofAction as never }, ...given.execution }
  const unit = planning.planEnd(execution, { attempt, willRetry })
  return {
    told: rows.map((row) => `${row.destination} ${row.occasion}${row.status === 'pending' ? '' : ` ${row.status}`}`),
    rows,
    marks,
    facts: unit?.facts.length ?? 0,
    planning,
  }
}

test.each<[string, Case, string[]]>([
  ['a failure', { notify: 'chat' }, ['chat failed']],
  ['a time-out', { notify: ['chat'], status: 'timeout' }, ['chat timeout']],
  ['what a crash ended', { notify: ['chat'], status: 'abandoned' }, ['chat failed']],
  ['a success, unasked', { notify: ['chat'], status: 'succeeded' }, []],
  ['a success, asked', { notify: ['ok', 'mail'], status: 'succeeded' }, ['ok succeeded', 'mail succeeded']],
  ['a failure, of which nobody wants to hear', { notify: ['ok'] }, []],
  ['what was canceled', { notify: ['mail'], status: 'canceled' }, []],
  ['what is tried again', { notify: ['mail'], willRetry: true }, []],
  ['the last attempt', { notify: ['mail'], attempt: 3 }, ['mail failed']],
  ['a task of a workflow', { notify: ['mail'], execution: { parent: '6000000000000000000000aa' } }, []],
  ['a part of something', { notify: ['mail'], execution: { context: { parent: {} } } }, []],
  [
    'a recovery',
    { notify: ['chat', 'mail'], status: 'succeeded', hasFailed: true },
    ['chat recovered', 'mail recovered'],
  ],
  ['conditions of the rule', { notify: [{ use: 'chat', on: 'succeeded' }], status: 'succeeded' }, ['chat succeeded']],
  ['the same for YAML', { notify: [{ use: 'chat', true: ['succeeded'] }], status: 'succeeded' }, ['chat succeeded']],
  [
    'the nearest word about a destination',
    { notify: [{ use: 'chat', on: ['succeeded'] }], ofAction: ['chat'], globals: ['chat'] },
    [],
  ],
  [
    'rule, action and configuration',
    { notify: 'chat', ofAction: 'mail', globals: ['ok', 'mail'] },
    ['chat failed', 'mail failed'],
  ],
  ['the form of StackStorm, which names no destination', { ofAction: { 'on-failure': { routes: ['chat'] } } }, []],
  ['an unknown destination', { notify: 'nowhere' }, ['nowhere failed failed']],
  ['a destination with too many', { notify: 'chat', waiting: 10 }, ['chat failed suppressed']],
  ['nobody', {}, []],
])('%s', (_, given, told) => {
  expect(planned(given).told).toEqual(told)
})

test('remembers a failure, so that one recovery is told', () => {
  expect(planned({ notify: 'chat' })).toMatchObject({ marks: ['failed shop.nightly'], facts: 1 })
  expect(planned({ notify: 'ok' })).toMatchObject({ marks: [], facts: 0 })
  const recovered = planned({ notify: ['chat', 'mail'], status: 'succeeded', hasFailed: true })
  expect(recovered.marks).toEqual(['well shop.nightly'])
  expect(recovered.rows.map(({ recovery }) => recovery)).toEqual(['recovered only', 'recovered or succeeded'])
  expect(planned({ notify: 'nowhere' }).rows[0]?.error).toContain('notifications/nowhere.yaml')
})

test('tells the facts: bounded, of the host that failed, without control characters', () => {
  const contentOf = (result: unknown) => planned({ notify: 'chat', execution: { result } }).rows[0]?.content
  const stderr = `${'x'.repeat(10_000)}\n${Array.from({ length: 50 }, (_, i) => `line ${i}\u0007`).join('\r\n')}\n`
  const content = contentOf({ failed: true, return_code: 3, stderr })
  expect(content).toMatchObject({ exit_code: 3, outcome: 'failed', action: 'core.local' })
  expect(content?.stderr?.split('\n')).toHaveLength(20)
  expect(content?.stderr).toMatch(/line 49$/)
  expect(
    contentOf({ 'web-1': { succeeded: true }, 'web-2': { failed: true, return_code: 1, error: 'a\nb' } }),
  ).toMatchObject({
    exit_code: 1,
    error: 'web-2: a b',
  })
  expect(contentOf({ output: null, errors: [{ task_id: 'copy', message: 'no host' }] })).toMatchObject({
    error: 'copy: no host',
  })
  expect(contentOf({ error: 'e'.repeat(5000) })?.error?.length).toBeLessThan(510)
})

test('plans a missed run for those who want to hear of it', () => {
  const { planning, rows, marks } = planned({ notify: ['chat', 'ok'] })
  rows.length = marks.length = 0
  const missed = {
    rule: { id: 'r', ref: 'shop.nightly' },
    due: '2026-01-31T03:00:00.000000Z',
    expect: { within: '10m' },
    lastSuccess: null,
    reason: 'still_running',
    executionId: 'running',
  } as const
  expect(planning.planMissed(missed)?.facts).toHaveLength(1)
  expect(rows).toMatchObject([
    {
      destination: 'chat',
      occasion: 'missed',
      job: 'shop.nightly',
      execution: 'running',
      content: { due: missed.due, last_success: null, reason: 'still_running' },
    },
  ])
  const [row] = rows
  const notice = row && noticeOf(row, { webUrl: 'http://svc', template: undefined, warn: () => undefined })
  expect(notice?.facts).toContainEqual(['Reason', 'it still runs'])
  expect(notice?.link).toContain('/running/')
  expect(marks).toEqual(['failed shop.nightly'])
})
