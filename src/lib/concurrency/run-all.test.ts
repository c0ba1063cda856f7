import { expect, test } from 'vitest'
import { runAll } from './run-all.ts'

test('every step runs in order, and all failures are reported together', async () => {
  const done: string[] = []
  const failures = [new Error('first'), new Error('second')]
  const run = runAll(
    [
      () => {
        throw failures[0]
      },
      async () => {
        done.push('a')
        return Promise.reject(failures[1])
      },
      () => done.push('b'),
    ],
    'It did not stop cleanly',
  )
  await expect(run).rejects.toMatchObject({ message: 'It did not stop cleanly', errors: failures })
  expect(done).toEqual(['a', 'b'])
})

test('without a failure nothing is thrown', async () => {
  await expect(runAll([() => 1, async () => undefined], 'unused')).resolves.toBeUndefined()
})
