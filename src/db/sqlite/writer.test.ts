import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { isAppError } from '../../core/errors.ts'
import { createWriter } from './writer.ts'

test('a thread that ends by itself refuses all units, and says so once', async () => {
  const folder = makeFolder()
  const ended: Error[] = []
  const announced: unknown[] = []
  const writer = createWriter(
    { path: join(folder.path, 'no folder', 'svc.db'), synchronous: 'full' },
    {
      announce: (facts) => announced.push(...facts),
      committed: () => undefined,
      idle: () => undefined,
      isDiskFull: () => false,
      damaged: () => undefined,
      ended: (error) => ended.push(error),
    },
  )
  const codeOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'resolved',
      (error: unknown) => (isAppError(error) ? error.code : String(error)),
    )
  // Before it has died, the second one in its last moments, and afterwards.
  const codes = [codeOf(writer.write({ steps: [], facts: [] })), codeOf(writer.checkpoint())]
  await waitFor('its end', () => ended.length > 0)
  codes.push(codeOf(writer.write({ steps: [], facts: [] })), codeOf(writer.vacuum(1)))
  expect(await Promise.all(codes)).toEqual(codes.map(() => 'STORAGE_FAILED'))
  await writer.drain()
  await writer.close()
  expect(ended).toHaveLength(1)
  expect([writer.stats(), announced]).toEqual([{ waitingUnits: 0, commits: 0, syncs: 0, units: 0 }, []])
  folder.remove()
})
