import { expect, it } from 'vitest'
import { createThread } from './thread.ts'

it('rejects when the thread cannot be started', async () => {
  const thread = createThread({ name: 'the thread of this test', file: new URL('https://localhost/thread.js') })
  await expect(thread.ask(1)).rejects.toThrow(/scheme file/)
  expect(thread.waitingCount).toBe(0)
  await thread.stop()
})
