import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createThread } from './thread.ts'
import { rounds } from '../../tests/helpers/tiers.ts'

const ROUNDS = rounds({ daily: 5, full: 20 })
/** By then the code is loaded. */
const LATEST_STOP_MS = 4

it('rejects when the thread cannot be started', async () => {
  const thread = createThread({ name: 'the thread of this test', file: new URL('https://localhost/thread.js') })
  await expect(thread.ask(1)).rejects.toThrow(/scheme file/)
  expect(thread.waitingCount).toBe(0)
  await thread.stop()
})

it('may be stopped while it loads native code: ended there, it would take the process along', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const loading = new Int32Array(new SharedArrayBuffer(4))
    const thread = createThread({
      name: 'the thread of this test',
      file: new URL('../../tests/fixtures/native-thread.ts', import.meta.url),
      data: loading,
    })
    const outcome = thread.ask('select 1').catch((error: unknown) => (error as { code?: string }).code ?? error) // ours have one
    await Atomics.waitAsync(loading, 0, 0).value
    await delay((LATEST_STOP_MS * round) / ROUNDS)
    await thread.stop()
    expect(await outcome).toBeOneOf([1, 'SHUTTING_DOWN'])
  }
}, 60_000)
