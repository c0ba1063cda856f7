import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { OutputLine, OutputLines } from '../../api/records.ts'
import { createOutputModel, type FollowListener, type OutputModel, type OutputSource } from './output-model.ts'

/** A server with one execution. Each write is a record. */
function createServer() {
  const records: string[] = []
  const answers = {
    maxLines: 1000,
    isComplete: false,
    failure: undefined as string | undefined,
    reads: 0,
    endsAtOnce: false,
  }
  const followers = new Set<{ seq: number; listener: FollowListener }>()
  const textOf = (): string => records.join('')
  function read({ from, limit }: { from: number; limit: number }): Promise<OutputLines> {
    answers.reads += 1
    if (answers.failure !== undefined) return Promise.reject(new Error(answers.failure))
    const text = textOf()
    const all = text.split('\n')
    const isOpen = all.at(-1) !== ''
    if (!isOpen) all.pop()
    const first = from < 0 ? Math.max(1, all.length + 1 + from) : from
    const lines = all
      .slice(first - 1, first - 1 + Math.min(limit, answers.maxLines))
      .map((data, i): OutputLine => ({ number: first + i, timestamp: 't', parts: [{ output_type: 'stdout', data }] }))
    return Promise.resolve({
      total: all.length,
      is_last_line_open: isOpen,
      bytes: { stdout: text.length, stderr: 0, other: 0 },
      is_complete: answers.isComplete,
      is_stored: true,
      is_beginning_removed: false,
      last_seq: records.length,
      lines,
    })
  }
  const source: OutputSource = {
    read,
    follow(seq, listener) {
      const follower = { seq, listener }
      followers.add(follower)
      queueMicrotask(() => {
        listener.onConnection('connecting')
        listener.onConnection('open')
        send(follower)
        if (answers.endsAtOnce) listener.onConnection('ended')
      })
      return () => followers.delete(follower)
    },
    messageOf: (error) => (error as Error).message,
  }
  function send(follower: { seq: number; listener: FollowListener }): void {
    while (followers.has(follower) && follower.seq < records.length) {
      const data = records[follower.seq] ?? ''
      follower.seq += 1
      follower.listener.onRecord({ output_type: 'stdout', data, timestamp: 't' })
    }
  }
  return {
    source,
    answers,
    followers,
    /** Told to nobody: it comes with the next one. */
    store: (data: string) => records.push(data),
    write(data: string) {
      records.push(data)
      for (const follower of followers) send(follower)
    },
    forget: (count: number) => records.splice(0, count),
    end() {
      answers.isComplete = true
      for (const { listener } of followers) listener.onConnection('ended')
    },
  }
}

let server: ReturnType<typeof createServer>
let model: OutputModel
let drawings: number
/** How many lines there were when it was drawn last. */
let drawn: number

beforeEach(() => {
  vi.useFakeTimers()
  server = createServer()
  drawings = 0
  drawn = 0
})

afterEach(() => {
  model.stop()
  vi.useRealTimers()
})

const settle = async (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

async function open(): Promise<void> {
  model = createOutputModel(server.source, () => {
    drawings += 1
    drawn = model.total
  })
  await settle()
}

const lastLines = (count: number): (string | undefined)[] =>
  Array.from({ length: count }, (_, i) =>
    model
      .line(model.total - count + 1 + i)
      ?.parts.map(({ data }) => data)
      .join(''),
  )

describe('output that is written', () => {
  test('is followed from where the lines end that were read', async () => {
    server.store('one\ntw')
    await open()
    expect(model.state.phase).toBe('live')
    expect(lastLines(2)).toEqual(['one', 'tw'])
    server.write('o\nthree\n')
    expect(lastLines(3)).toEqual(['one', 'two', 'three'])
    expect([...server.followers][0]?.seq).toBe(2)
    expect(drawings).toBeGreaterThan(1)
  })

  test('ends when all of it has come', async () => {
    await open()
    expect([model.state.phase, model.total]).toEqual(['live', 0])
    server.write('last')
    server.end()
    await settle()
    expect(model.state.phase).toBe('complete')
    expect(lastLines(1)).toEqual(['last'])
    expect(server.followers.size).toBe(0)
  })

  test('of a workflow that pauses is asked for now and then: its stream ends at once, and its output goes on', async () => {
    await open()
    server.answers.endsAtOnce = true
    for (const { listener } of server.followers) listener.onConnection('ended')
    const { reads } = server.answers
    await settle(60_000)
    expect(server.answers.reads - reads).toBeLessThan(65)
    expect(model.state.phase).toBe('live')
    server.answers.endsAtOnce = false
    await settle(5000)
    server.write('goes on\n')
    expect(lastLines(1)).toEqual(['goes on'])
    expect(server.followers.size).toBe(1)
  })

  test('that comes too fast is looked at now and then, and followed again when it is slower', async () => {
    await open()
    const piece = `${'x'.repeat(9999)}\n`
    for (let i = 0; i < 60; i++) server.write(piece)
    expect(server.followers.size).toBe(0)
    for (let i = 0; i < 5; i++) {
      for (let n = 0; n < 20; n++) server.write(piece)
      await settle(400)
      expect([model.total, model.state.phase]).toEqual([60 + (i + 1) * 20, 'live'])
      expect(server.followers.size).toBe(0)
    }
    await settle(2000)
    expect(server.followers.size).toBe(1)
    server.write('slow\n')
    expect(lastLines(2)).toEqual([piece.trimEnd(), 'slow'])
    expect(model.total).toBe(161)
  })

  test('that may not be followed is looked at now and then', async () => {
    await open()
    for (const { listener } of server.followers) listener.onConnection('ended', 'You may not.')
    await settle()
    expect([model.state.phase, server.followers.size]).toEqual(['live', 0])
    server.write('new\n')
    await settle(2000)
    expect(lastLines(1)).toEqual(['new'])
    server.answers.isComplete = true
    await settle(2000)
    expect(model.state.phase).toBe('complete')
    const { reads } = server.answers
    await settle(60_000)
    expect(server.answers.reads).toBe(reads)
  })

  test('of long lines is read to its end', async () => {
    server.store('line\n'.repeat(500))
    server.answers.maxLines = 16
    await open()
    expect(model.line(500)).toBeDefined()
  })
})

describe('a connection', () => {
  test('that is lost is told, and that it is back', async () => {
    await open()
    const [{ listener } = { listener: undefined }] = server.followers
    listener?.onConnection('lost', 'The connection closed.')
    expect(model.state).toMatchObject({ phase: 'lost', reason: 'The connection closed.' })
    listener?.onConnection('open')
    expect(model.state).toMatchObject({ phase: 'live', reason: undefined })
  })

  test('that there is none of at first is told, and tried again when asked', async () => {
    server.answers.failure = 'Could not reach the server. Check the connection.'
    await open()
    expect(model.state).toMatchObject({ phase: 'failed', reason: 'Could not reach the server. Check the connection.' })
    server.answers.failure = undefined
    server.store('a\n')
    model.retry()
    await settle()
    expect([model.state.phase, model.total]).toEqual(['live', 1])
  })

  test('that fails after the end of the stream is tried again', async () => {
    await open()
    server.answers.failure = 'gone'
    server.end()
    await settle()
    expect(model.state).toMatchObject({ phase: 'lost', reason: 'gone' })
    server.answers.failure = undefined
    await settle(2000)
    expect(model.state).toMatchObject({ phase: 'complete', reason: undefined })
  })
})

describe('lines that are to be seen', () => {
  beforeEach(async () => {
    server.store(Array.from({ length: 5000 }, (_, i) => `line ${i + 1}\n`).join(''))
    await open()
  })

  test('are read, and those next to them', async () => {
    expect(model.line(1000)).toBeUndefined()
    model.show(1000, 1050)
    await settle()
    expect(model.line(1000)?.parts[0]?.data).toBe('line 1000')
    expect(model.line(1049)).toBeDefined()
    expect(model.line(1149)).toBeDefined()
    const { reads } = server.answers
    model.show(1010, 1060)
    await settle()
    expect(server.answers.reads).toBe(reads)
  })

  test('are those that are to be seen now, whatever was asked for meanwhile', async () => {
    for (let first = 1; first < 4000; first += 100) model.show(first, first + 50)
    await settle()
    expect(model.line(3901)).toBeDefined()
    expect(model.line(2000)).toBeUndefined()
    expect(server.answers.reads).toBeLessThan(8)
  })

  test('are asked for again after a failure, which is told', async () => {
    server.answers.failure = 'busy'
    model.show(1000, 1050)
    await settle()
    expect(model.state).toMatchObject({ readFailure: 'busy', phase: 'live' })
    server.answers.failure = undefined
    await settle(2000)
    expect(model.state.readFailure).toBeUndefined()
    expect(model.line(1000)).toBeDefined()
  })

  test('whose reading has failed are not told of any more when others are to be seen that are there', async () => {
    model.show(1000, 1050)
    await settle()
    server.answers.failure = 'busy'
    model.show(3000, 3050)
    await settle()
    expect(model.state.readFailure).toBe('busy')
    model.show(1010, 1040)
    await settle(2000)
    expect(model.state.readFailure).toBeUndefined()
  })

  test('have other numbers when the first ones have been removed', async () => {
    model.show(1000, 1050)
    await settle()
    server.forget(1)
    server.store('only one\n')
    model.show(2000, 2050)
    await settle()
    expect([model.total, model.line(1)?.parts[0]?.data]).toEqual([1, 'only one'])
  })

  test('that were all removed are not drawn any more', async () => {
    server.end()
    await settle()
    expect(drawn).toBeGreaterThan(1000)
    server.forget(Infinity)
    model.show(1000, 1050)
    await settle()
    expect(drawn).toBe(0)
  })

  test('are not read when nobody looks any more', async () => {
    model.stop()
    const { reads } = server.answers
    model.show(1000, 1050)
    server.write('x\n')
    await settle(60_000)
    expect(server.answers.reads).toBe(reads)
    expect(server.followers.size).toBe(0)
  })
})
