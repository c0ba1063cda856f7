import { expect, test } from 'vitest'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Database, Unit } from '../../db/database.ts'
import { storageFailed } from '../../core/errors.ts'
import { createLog } from '../../lib/log/log.ts'
import { createChange } from './change.ts'
import type { ExecutionStore } from './store.ts'
import type { Execution } from './types.ts'
import { noMetrics } from '../../core/metrics.ts'

test('a full storage is waited for until nobody wants to wait any more', async () => {
  let attempts = 0
  const write = (): Promise<never> => {
    attempts += 1
    return Promise.reject(storageFailed(new Error('disk full')))
  }
  const stopRetrying = new AbortController()
  const change = createChange({
    metrics: noMetrics,
    // Only what settling calls.
    store: { update: () => [] } as Partial<ExecutionStore> as ExecutionStore,
    database: { write } as Partial<Database> as Database,
    log: createLog({ level: 'CRITICAL', format: 'text' }),
    stopRetrying: stopRetrying.signal,
  })
  const execution = { id: '0'.repeat(24), status: 'requested', log: [] } as Partial<Execution> as Execution
  let isSettled = false
  const settled = change.settle(execution, [{ kind: 'schedule' }]).finally(() => {
    isSettled = true
  })
  await waitFor('a second attempt', () => attempts === 2)
  expect(isSettled).toBe(false)
  stopRetrying.abort()
  await expect(settled).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
  expect(attempts).toBe(3)
})

test('each status brings about what it does, also where several are one change', async () => {
  const written: Unit[] = []
  const change = createChange({
    metrics: noMetrics,
    // Only what settling calls.
    store: { update: () => [] } as Partial<ExecutionStore> as ExecutionStore,
    database: {
      write(unit: Unit) {
        written.push(unit)
        return Promise.resolve([])
      },
    } as Partial<Database> as Database,
    log: createLog({ level: 'CRITICAL', format: 'text' }),
    stopRetrying: new AbortController().signal,
    planReaction: ({ id, status }) => ({ steps: [], facts: [{ name: 'token.revoked', payload: { id: id + status } }] }),
  })
  const execution = makeExecution()
  const runnerInfo = { hostname: 'here', pid: 1 }
  await change.settle(execution, [{ kind: 'schedule' }, { kind: 'start', runner_info: runnerInfo }])
  const facts = written.flatMap((unit) => unit.facts)
  expect(facts.filter(({ name }) => name === 'token.revoked')).toEqual(
    ['scheduled', 'running'].map((status) => ({ name: 'token.revoked', payload: { id: execution.id + status } })),
  )
})
