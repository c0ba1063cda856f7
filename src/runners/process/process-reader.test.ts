import { expect, it } from 'vitest'
import { createProcessReader } from './process-reader.ts'
import { readProcess } from './process-table.ts'

const own = readProcess(process.pid)
const absent = 2 ** 22 + 1

it('answers in the order of the question, however long that is', async () => {
  const reader = createProcessReader()
  const pids = Array.from({ length: 1000 }, (_, i) => (i % 7 === 0 ? process.pid : absent))
  expect(await reader.rows(pids)).toEqual(pids.map((pid) => (pid === process.pid ? own : undefined)))
  const key = [process.pid, own?.startTime ?? 0]
  expect(await reader.areRunning([[], [absent, 1], [process.pid, 1], [absent, 1, ...key]])).toEqual([
    false,
    false,
    false,
    true,
  ])
  await reader.stop()
})

it('answers without its thread too', async () => {
  const reader = createProcessReader()
  await reader.stop()
  expect(await reader.rows([process.pid, absent])).toEqual([own, undefined])
})
