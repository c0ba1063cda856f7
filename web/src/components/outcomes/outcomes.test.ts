import { describe, expect, test } from 'vitest'
import type { ExecutionState } from '../../api/execution-states.ts'
import type { ExecutionStatus, RuleEnforcement } from '../../api/records.ts'
import { mergedOutcome, noOutcome, outcomesOf, restOf, withExecution } from './outcomes.ts'

const execution = (id: string, ...statuses: ExecutionStatus[]): ExecutionState => ({
  id,
  status: statuses.at(-1) ?? 'requested',
  start_timestamp: '',
  log: statuses.map((status) => ({ status, timestamp: '' })),
  action: { ref: 'core.local' },
})

const enforcement = (instance: string, started: string | undefined): RuleEnforcement => ({
  id: `${instance}-${started}`,
  trigger_instance_id: instance,
  ...(started === undefined ? { failure_reason: 'why' } : { execution_id: started }),
  rule: { ref: 'default.a', uid: '', id: '' },
  enforced_at: '',
  status: started === undefined ? 'failed' : 'succeeded',
})

test('what came of instances is told apart, and what may not be seen is counted', () => {
  const outcomes = outcomesOf(
    ['1', '2', '3', '4'],
    [enforcement('1', 'e2'), enforcement('1', 'e1'), enforcement('2', undefined), enforcement('1', 'gone')],
    [execution('e1', 'running'), execution('e2', 'succeeded')],
    new Map([['4', 7]]),
  )
  const rest = (id: string): unknown => restOf(outcomes.get(id) ?? noOutcome)
  expect(outcomes.get('1')).toMatchObject({ executions: [{ id: 'e1' }, { id: 'e2' }], failures: [] })
  expect(rest('1')).toEqual({ hidden: 1, unlisted: 0 })
  expect(outcomes.get('2')).toMatchObject({ executions: [], failures: [{ failure_reason: 'why' }] })
  expect(rest('2')).toEqual({ hidden: 0, unlisted: 0 })
  expect(outcomes.get('3')).toEqual(noOutcome)
  expect(outcomes.get('4')).toMatchObject({ executions: [], failures: [] })
  expect(rest('4')).toEqual({ hidden: 0, unlisted: 7 })
})

describe('events', () => {
  test('add and change executions, and do not turn back time', () => {
    const running = execution('e1', 'requested', 'running')
    const first = withExecution(noOutcome, running)
    const ended = withExecution(first, execution('e1', 'requested', 'running', 'failed'))
    expect(ended.executions).toMatchObject([{ status: 'failed' }])
    expect(withExecution(ended, running)).toEqual(ended)
    expect(withExecution(ended, execution('e0', 'requested')).executions.map(({ id }) => id)).toEqual(['e0', 'e1'])
  })

  test('that were faster than an answer are not lost to it', () => {
    const told = withExecution(withExecution(noOutcome, execution('e1', 'requested', 'running')), execution('e2'))
    const loaded = { ...noOutcome, executions: [execution('e1', 'requested')], started: new Set(['e1', 'e2']) }
    expect(restOf(loaded)).toEqual({ hidden: 1, unlisted: 0 })
    const merged = mergedOutcome(told, loaded)
    expect(merged).toMatchObject({ executions: [{ id: 'e1', status: 'running' }, { id: 'e2' }] })
    expect(restOf(merged)).toEqual({ hidden: 0, unlisted: 0 })
    expect(mergedOutcome(undefined, loaded)).toBe(loaded)
  })

  test('of executions whose enforcements were not listed do not count these twice', () => {
    const loaded = { ...noOutcome, executions: [execution('e1', 'running')], started: new Set(['e1']), unlisted: 2 }
    const told = withExecution(withExecution(loaded, execution('e1', 'running', 'failed')), execution('e2', 'running'))
    expect(restOf(told)).toEqual({ hidden: 0, unlisted: 1 })
    expect(restOf(mergedOutcome(told, loaded))).toEqual({ hidden: 0, unlisted: 1 })
  })
})
