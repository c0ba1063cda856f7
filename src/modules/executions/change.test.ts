import { expect, test } from 'vitest'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Database } from '../../db/database.ts'
import { storageFailed } from '../../errors.ts'
import { createLog } from '../../log.ts'
import { createChange } from './change.ts'
import type { ExecutionStore } from './store.ts'
import type { Execution } from './types.ts'

test('a full storage is waited for until nobody wants to wait any more', async () => {
  let attempts = 0
  const write = (): Promise<never> => {
    attempts += 1
    return Promise.reject(storageFailed(new Error('disk full')))
  }
  const givingUp = new AbortController()
  const change = createChange({
    // Only what settling calls.
    store: { update: () => [] } as Partial<ExecutionStore> as ExecutionStore,
    database: { write } as Partial<Database> as Database,
    log: createLog({ level: 'CRITICAL', format: 'text' }),
    givingUp: givingUp.signal,
  })
  const execution = { id: '0'.repeat(24), status: 'requested', log: [] } as Partial<Execution> as Execution
  let isSettled = false
  const settled = change.settle(execution, [{ kind: 'schedule' }]).finally(() => {
    isSettled = true
  })
  await waitFor('a second attempt', () => attempts === 2)
  expect(isSettled).toBe(false)
  givingUp.abort()
  await expect(settled).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
  expect(attempts).toBe(3)
})
