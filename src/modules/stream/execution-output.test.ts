import { expect, test } from 'vitest'
import type { EventSink } from '../../http/route.ts'
import type { Execution, OutputRecord } from '../executions/types.ts'
import { followOutput } from './execution-output.ts'

const id = '65f0a1b2c3d4e5f60718293a'
const execution = { id, action_ref: 'core.local', runner: { name: 'local-shell-cmd' } } as Execution // what is read of it

function record(seq: number): OutputRecord {
  return { id: '', execution_id: id, seq, output_type: 'stdout', data: 'x\n', timestamp: '', host: null }
}

test('a long replay to a client that takes everything at once leaves the others their turns', async () => {
  const total = 100
  let reads = 0
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  let written = ''
  const sink: EventSink = {
    write(frames) {
      written += frames
      return true
    },
    drained: () => Promise.resolve(),
    queuedBytes: 0,
    closed: new AbortController().signal,
  }
  await followOutput(
    sink,
    {
      statusOf: () => 'succeeded',
      outputCursor: () => ({
        after(seq) {
          reads += 1
          return seq < total ? [record(seq + 1)] : []
        },
      }),
    },
    { follow: () => () => undefined },
    { execution, type: undefined, afterSeq: 0, stopping: new AbortController().signal },
  )
  isOver = true
  expect(written.match(/^id: /gm)).toHaveLength(total)
  expect(written.endsWith('event: EOF\ndata:\n\n')).toBe(true)
  expect(reads).toBe(total + 1)
  expect(turns).toBeGreaterThanOrEqual(total)
})
