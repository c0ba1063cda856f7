import { describe, expect, test } from 'vitest'
import type { EventSink } from '../../http/route.ts'
import type { Execution, ExecutionStatus, OutputRecord } from '../executions/types.ts'
import { createReplay, type Replay } from './replay.ts'

const id = '65f0a1b2c3d4e5f60718293a'

/** Rows, facts and one client, in the order that a test gives them. */
class World {
  readonly sent: string[] = []
  /** Rows. */
  statuses: ExecutionStatus[] = ['requested']
  output = 0
  /** What has been announced; undefined: everything. */
  announced: ExecutionStatus | undefined
  accepts = Infinity
  /** Called while the client is waited for. */
  betweenReads: () => void = () => undefined
  readonly replay: Replay
  isOver = false

  constructor(wantsOutput = true) {
    const sink: Pick<EventSink, 'drained'> = {
      drained: () => {
        this.betweenReads()
        return Promise.resolve()
      },
    }
    this.replay = createReplay({
      id,
      wantsOutput,
      sink: sink as EventSink, // all that is asked of it
      executions: {
        findWithResult: () => this.row(),
        statusOf: () => this.announced ?? this.statuses.at(-1),
        outputCursor: () => ({
          after: (seq) => Array.from({ length: Math.min(this.output - seq, 2) }, (_, i) => record(seq + i + 1)),
        }),
      },
      isOver: () => this.isOver,
      sendUpdate: ({ status, log }) => this.sent.push(`${status}/${log.length}`),
      sendOutput: ({ seq }) => {
        this.sent.push(`line ${seq}`)
        this.accepts -= 1
        return this.accepts > 0
      },
    })
  }

  row(): Execution {
    const log = this.statuses.map((status) => ({ status, timestamp: '' }))
    return { id, revision: log.length, status: this.statuses.at(-1), log, result: 'r' } as unknown as Execution
  }

  /** Whether a fact about the newest change reaches the client. */
  isDelivered(): boolean {
    return !this.replay.covers({ executionId: id, revision: this.statuses.length })
  }
}

function record(seq: number): OutputRecord {
  return { id: '', execution_id: id, seq, output_type: 'stdout', data: 'x\n', timestamp: '', host: null }
}

describe('what a client is sent of the execution that ends its stream', () => {
  test('one that has ended: the begin, the output, the end', async () => {
    const world = new World()
    world.statuses = ['requested', 'scheduled', 'running', 'succeeded']
    world.output = 5
    await world.replay.run()
    expect(world.sent).toEqual(['running/3', 'line 1', 'line 2', 'line 3', 'line 4', 'line 5', 'succeeded/4'])
    expect(world.isDelivered()).toBe(false)
  })

  test.each<[ExecutionStatus[], string[]]>([
    [['requested'], []],
    [['requested', 'scheduled'], []],
    [['requested', 'delayed'], []],
    [['requested', 'canceled'], ['canceled/2']],
    [['requested', 'scheduled', 'running'], ['running/3']],
    [
      ['requested', 'scheduled', 'running', 'paused'],
      ['running/3', 'paused/4'],
    ],
    [
      ['requested', 'scheduled', 'running', 'canceling'],
      ['running/3', 'canceling/4'],
    ],
    [
      ['requested', 'scheduled', 'running', 'timeout'],
      ['running/3', 'timeout/4'],
    ],
  ])('%j: %j', async (statuses, expected) => {
    const world = new World()
    world.statuses = statuses
    await world.replay.run()
    expect(world.sent).toEqual(expected)
    // A fact about the same change is no news; the next change is.
    expect(world.isDelivered()).toBe(false)
    world.statuses.push('succeeded')
    expect(world.isDelivered()).toBe(true)
  })

  test('one that begins and ends while its output is read: each once, in order', async () => {
    const world = new World()
    world.statuses = ['requested', 'scheduled']
    world.output = 1
    world.betweenReads = () => {
      world.output = 4
      if (world.statuses.at(-1) === 'scheduled') world.statuses.push('running')
      else if (world.statuses.at(-1) === 'running') world.statuses.push('failed')
      // Facts that come meanwhile: the rows have it all.
      expect(world.isDelivered()).toBe(false)
      expect(world.replay.covers({ executionId: id, seq: world.output })).toBe(true)
    }
    await world.replay.run()
    expect(world.sent).toEqual(['line 1', 'running/3', 'line 2', 'line 3', 'line 4', 'failed/4'])
  })

  test('an end that is stored and not announced yet comes after the output that is announced with it', async () => {
    const world = new World()
    world.statuses = ['requested', 'running', 'succeeded']
    world.announced = 'running'
    await world.replay.run()
    expect(world.sent).toEqual(['running/2'])
    expect(world.replay.covers({ executionId: id, seq: 1 })).toBe(false)
    expect(world.isDelivered()).toBe(true)
  })

  test('output that was stored and whose fact comes later is not sent twice', async () => {
    const world = new World()
    world.statuses = ['requested', 'running']
    world.output = 3
    await world.replay.run()
    expect(world.sent).toEqual(['running/2', 'line 1', 'line 2', 'line 3'])
    const reaches = [1, 2, 3, 4].filter((seq) => !world.replay.covers({ executionId: id, seq }))
    expect(reaches).toEqual([4])
  })

  test('a slow client gets no more than it takes, and nothing twice', async () => {
    const world = new World()
    world.statuses = ['requested', 'running', 'succeeded']
    world.output = 6
    world.accepts = 1
    world.betweenReads = () => (world.accepts = 1)
    await world.replay.run()
    expect(world.sent).toEqual(['running/2', ...[1, 2, 3, 4, 5, 6].map((seq) => `line ${seq}`), 'succeeded/3'])
  })

  test('a client that has gone ends it', async () => {
    const world = new World()
    world.statuses = ['requested', 'running', 'succeeded']
    world.output = 6
    world.betweenReads = () => (world.isOver = true)
    await world.replay.run()
    expect(world.sent).toEqual(['running/2', 'line 1', 'line 2'])
  })

  test('a client that wants no output: it is not read', async () => {
    const world = new World(false)
    world.statuses = ['requested', 'running', 'succeeded']
    world.output = 6
    await world.replay.run()
    expect(world.sent).toEqual(['running/2', 'succeeded/3'])
  })

  test('other executions are never covered', async () => {
    const world = new World()
    expect(world.replay.covers({ executionId: 'other', revision: 1 })).toBe(false)
    expect(world.replay.covers({ executionId: id, revision: 1 })).toBe(true)
    await world.replay.run()
    expect(world.replay.covers({ executionId: 'other', seq: 1 })).toBe(false)
  })
})
