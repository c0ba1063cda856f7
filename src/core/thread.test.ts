import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createThread, ThreadTooSlow } from './thread.ts'
import { TestClock } from '../../tests/helpers/clock.ts'
import { rounds, fullOnly } from '../../tests/helpers/tiers.ts'
import { waitFor } from '../../tests/helpers/wait.ts'

const ROUNDS = rounds({ daily: 5, full: 20 })
/** By then the code is loaded. */
const LATEST_STOP_MS = 4

it('rejects when the thread cannot be started', async () => {
  const thread = createThread({ name: 'the thread of this test', file: new URL('https://localhost/thread.js') })
  await expect(thread.ask(1)).rejects.toThrow(/scheme file/)
  expect(thread.waitingCount).toBe(0)
  await thread.stop()
})

fullOnly(it)(
  'may be stopped while it loads native code: ended there, it would take the process along',
  async () => {
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
  },
  60_000,
)

fullOnly(it)(
  'is replaced when a question takes too long, which is refused; the others are answered',
  async () => {
    const clock = new TestClock()
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const thread = createThread<string, string>({
      name: 'the thread of this test',
      file: new URL('../../tests/fixtures/endless-thread.ts', import.meta.url),
      data: begun,
      maxMilliseconds: 1000,
      clock,
    })
    const endless = [thread.ask('endless'), thread.ask('endless')].map((asked) =>
      asked.catch((error: unknown) => error),
    )
    const others = [thread.ask('one'), thread.ask('two')]
    for (const [i, asked] of endless.entries()) {
      await waitFor('the question', () => Atomics.load(begun, 0) === i + 1 && clock.waits === 1)
      clock.advance(1000)
      expect(await asked).toBeInstanceOf(ThreadTooSlow)
    }
    expect(await Promise.all(others)).toEqual(['one', 'two'])
    expect([thread.waitingCount, clock.waits]).toEqual([0, 0])
    expect(await thread.ask('three')).toBe('three')
    await thread.stop()
  },
  60_000,
)
