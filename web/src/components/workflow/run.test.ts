import { describe, expect, test } from 'vitest'
import type { WorkflowTaskRecord } from '../../api/records.ts'
import { linkKey } from './graph.ts'
import { areSettled, lastSettled, rerunChoices, statesOf, takenOf } from './run.ts'

let position = 0
const task = (name: string, more: Partial<WorkflowTaskRecord> = {}): WorkflowTaskRecord => ({
  position: position++,
  id: '5e0d8a7c1b2f4e6d9a8b7c6d',
  name,
  action: 'core.noop',
  route: 0,
  pass: 1,
  status: 'succeeded',
  attempt: 1,
  max_attempts: 1,
  items: null,
  previous: [],
  previous_total: 0,
  transitions: null,
  executions: [],
  executions_total: 0,
  waits_for: null,
  start_timestamp: null,
  end_timestamp: null,
  elapsed_seconds: null,
  ...more,
})

describe('the state of a task', () => {
  test('is that of its latest pass, with counts of all', () => {
    const states = statesOf([
      task('a'),
      task('b', { route: 0 }),
      task('b', { route: 1, status: 'failed' }),
      task('b', { route: 2, status: 'running' }),
      task('c', { pass: 1 }),
      task('c', { pass: 2 }),
    ])
    expect(states.get('a')).toEqual({ status: 'succeeded', note: '' })
    expect(states.get('b')).toEqual({ status: 'running', note: '3 times: 1 succeeded, 1 failed, 1 running' })
    expect(states.get('c')).toEqual({ status: 'succeeded', note: '2 times' })
  })

  test('has the items that have ended, and the attempt', () => {
    const items = {
      total: 5,
      concurrency: 2,
      not_started: 1,
      running: 1,
      waiting: 0,
      succeeded: 1,
      failed: 1,
      canceled: 1,
    }
    const states = statesOf([
      task('each', { status: 'running', items }),
      task('again', { status: 'retrying', attempt: 2, max_attempts: 3 }),
      task('more', { attempt: 3, max_attempts: 1 }),
    ])
    expect([...states.values()].map(({ note }) => note)).toEqual(['3 of 5 items', 'attempt 2 of 3', 'attempt 3'])
  })
})

test('engine commands have the state that a transition to them gives', () => {
  const states = statesOf([
    task('a', { transitions: [{ id: 'fail__t0', task: 'fail' }] }),
    task('b', { transitions: [{ id: 'noop__t0', task: 'noop' }] }),
  ])
  expect([states.get('fail')?.status, states.get('noop')?.status, states.has('continue')]).toEqual([
    'failed',
    'succeeded',
    false,
  ])
})

test('transitions that were taken are known by their ends', () => {
  const tasks = [task('a', { transitions: [{ id: 'b__t0', task: 'b' }] }), task('b', { transitions: [] })]
  expect([...takenOf(tasks)]).toEqual([linkKey('a', 'b')])
})

test('what has ended is not read again', () => {
  position = 0
  const tasks = [task('a'), task('b'), task('c', { status: 'running' }), task('d')]
  expect(lastSettled(tasks)).toBe(1)
  expect(lastSettled(tasks.slice(0, 2))).toBe(1)
  expect(lastSettled(tasks.slice(2))).toBe(-1)
  expect(lastSettled([])).toBe(-1)
  expect([areSettled(tasks), areSettled(tasks.slice(0, 2))]).toEqual([false, true])
})

test('tasks without success are proposed for a re-run', () => {
  const failed = task('b', { status: 'failed', transitions: [{ id: 'fail__t0', task: 'fail' }] })
  expect(rerunChoices([task('a'), failed])).toEqual([
    { name: 'a', status: 'succeeded', isProposed: false, hasItems: false },
    { name: 'b', status: 'failed', isProposed: true, hasItems: false },
  ])
})
