import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createDirectoryCheck } from './directory-check.ts'

it('lets every directory pass that is answered for, whatever the answer', async () => {
  const check = createDirectoryCheck()
  const paths = ['/', '/proc/self', '/no-such-directory', '/etc/passwd', 'a\0b', '/', '/tmp']
  expect(await Promise.all(paths.map(check))).toEqual(paths.map(() => true))
})

it('waits for a silent file system for its time only, and asks it little', async () => {
  const asked: string[] = []
  const silent = new Map<string, () => void>()
  const check = createDirectoryCheck({
    limitMs: 30,
    ask: (path) => {
      asked.push(path)
      return path === '/good' ? Promise.resolve() : new Promise<void>((resolve) => silent.set(path, resolve))
    },
  })
  expect(await Promise.all([check('/dead/1'), check('/good'), check('/dead/1')])).toEqual([false, true, false])
  expect(await Promise.all(['/dead/2', '/dead/3', '/good'].map(check))).toEqual([false, false, false])
  expect(asked).toEqual(['/dead/1', '/good', '/dead/2'])
  const waiting = check('/good')
  silent.get('/dead/2')?.()
  expect(await waiting).toBe(true)
})

it('takes no stall of the event loop for a silent file system', async () => {
  const check = createDirectoryCheck({ limitMs: 30 })
  await setImmediate() // of a turn of the loop only the timers follow, then the next answers
  const answered = check('/')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  expect(await answered).toBe(true)
})
