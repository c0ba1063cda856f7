import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeExecution } from '../../../../tests/helpers/execution.ts'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import type { Bus } from '../../../bus/bus.ts'
import { Conflict, type Database, type Unit } from '../../../db/database.ts'
import { storageFailed } from '../../../core/errors.ts'
import { newId } from '../../../core/ids.ts'
import { createLog } from '../../../lib/log/log.ts'
import type { OutputType } from '../../../runners/runner.ts'
import { noPlace } from './place.ts'
import { createOutput, type ExecutionOutput, type OutputIntake } from './output.ts'
import { createOutputStore, type OutputStore } from './store.ts'
import type { OutputRecord } from '../types.ts'

const MAX_CHUNK_LENGTH = 16_384
const types: OutputType[] = ['stdout', 'stderr', 'other']

let folder: TemporaryFolder
let database: Database
let store: OutputStore
let bus: Bus
let output: ExecutionOutput
let logged: TextSink
/** Units that were handed to the database, accepted or not. */
let units: Unit[]
/** What the database says to a unit instead of storing it. */
let failure: Error | undefined
let stopRetrying: AbortController
/** Holds units back until it resolves. */
let gate: Promise<void> | undefined
let facts: { id: string; seqs: number[]; lastSeq: number }[]

beforeEach(async () => {
  folder = makeFolder()
  const opened = await openDatabase(folder.path)
  const real = opened.database
  bus = opened.bus
  units = []
  failure = undefined
  gate = undefined
  stopRetrying = new AbortController()
  database = {
    ...real,
    async write(unit) {
      units.push(unit)
      await gate
      if (failure !== undefined) throw failure
      return real.write(unit)
    },
  }
  logged = new TextSink()
  store = createOutputStore(database)
  output = createOutput({
    store,
    database,
    bus,
    log: createLog({ level: 'DEBUG', format: 'text', stream: logged }),
    stopRetrying: stopRetrying.signal,
  })
  facts = []
  bus.subscribe('execution.output', ({ execution_id, records, last_seq }) => {
    facts.push({ id: execution_id, seqs: records.map(({ seq }) => seq), lastSeq: last_seq })
  })
})

afterEach(async () => {
  vi.useRealTimers()
  failure = undefined
  await output.flush()
  await database.close()
  folder.remove()
})

function open(execution = makeExecution({ status: 'running' })): { id: string; intake: OutputIntake } {
  return { id: execution.id, intake: output.open(execution, true) }
}

const rowsOf = (id: string): OutputRecord[] => store.outputAfter(id, 0, 1_000_000)

const textOf = (records: readonly OutputRecord[], type?: OutputType): string =>
  records
    .filter(({ output_type }) => type === undefined || output_type === type)
    .map(({ data }) => data)
    .join('')

/** A long text in short, for comparison. */
const brief = (text: string): string => `${text.length} ${createHash('sha1').update(text).digest('hex')}`

/** Everything a cursor has, read as a stream reads it. */
function readAll(id: string, type?: OutputType): OutputRecord[] {
  const cursor = output.cursor(id)
  const read: OutputRecord[] = []
  for (;;) {
    const some = cursor.after(read.at(-1)?.seq ?? 0, type)
    if (some.length === 0) return read
    read.push(...some)
  }
}

const pick = <T>(values: readonly [T, ...T[]]): T => values[Math.floor(Math.random() * values.length)] ?? values[0]

/** Text of any length up to `max` with characters of one to four bytes, whole ones. */
function randomText(max: number): string {
  const alphabet = ['a', '\n', 'ä', '€', '😀', '\0', '\ufeff'] as const
  let text = ''
  const length = Math.floor(Math.random() ** 3 * max)
  while (text.length < length) text += pick(alphabet).repeat(1 + Math.floor(Math.random() * 50))
  return text
}

describe('records', () => {
  test('of several executions hold what was emitted, in order, in any pieces', async () => {
    const runs = Array.from({ length: 5 }, () => ({ ...open(), sent: [] as { type: OutputType; text: string }[] }))
    for (let round = 0; round < 300; round++) {
      const run = pick(runs as [(typeof runs)[0], ...typeof runs])
      const type = pick(['stdout', 'stderr', 'other'] as const)
      const text = randomText(60_000)
      run.sent.push({ type, text })
      await run.intake.emit(type, text)
      if (Math.random() < 0.05) await output.flush()
    }
    for (const { intake } of runs) await database.write(await intake.finish())

    for (const { id, sent } of runs) {
      const rows = rowsOf(id)
      for (const type of types) {
        expect(brief(textOf(rows, type))).toBe(brief(sent.map((one) => (one.type === type ? one.text : '')).join('')))
      }
      expect(brief(textOf(rows))).toBe(brief(sent.map(({ text }) => text).join('')))
      expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, i) => i + 1))
      expect(rows.map((row) => row.id)).toEqual(rows.map((row) => row.id).toSorted())
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length)
      expect(rows.map(({ timestamp }) => timestamp)).toEqual(rows.map(({ timestamp }) => timestamp).toSorted())
      expect(rows.filter(({ data }) => data === '' || data.length > MAX_CHUNK_LENGTH)).toEqual([])
      expect(rows.filter(({ data }) => !data.isWellFormed())).toEqual([])
      const announced = facts.filter((fact) => fact.id === id)
      expect(announced.flatMap(({ seqs }) => seqs)).toEqual(rows.map(({ seq }) => seq))
      expect(announced.every(({ seqs, lastSeq }) => seqs.at(-1) === lastSeq)).toBe(true)
    }
  })

  test.each([
    ['a'.repeat(MAX_CHUNK_LENGTH), [MAX_CHUNK_LENGTH]],
    ['a'.repeat(MAX_CHUNK_LENGTH + 1), [MAX_CHUNK_LENGTH, 1]],
    [`${'a'.repeat(MAX_CHUNK_LENGTH - 1)}😀`, [MAX_CHUNK_LENGTH - 1, 2]],
    [`${'a'.repeat(MAX_CHUNK_LENGTH - 2)}😀b`, [MAX_CHUNK_LENGTH, 1]],
    ['😀'.repeat(MAX_CHUNK_LENGTH), [MAX_CHUNK_LENGTH, MAX_CHUNK_LENGTH]],
    [`a${'😀'.repeat(MAX_CHUNK_LENGTH)}`, [MAX_CHUNK_LENGTH - 1, MAX_CHUNK_LENGTH, 2]],
  ])('are cut at 16,384 units, between characters (case %#)', async (text, lengths) => {
    const { id, intake } = open()
    void intake.emit('stdout', text)
    await output.flush()
    const rows = rowsOf(id)
    expect(rows.map(({ data }) => data.length)).toEqual(lengths)
    expect(brief(textOf(rows))).toBe(brief(text))
  })

  test('join what comes close together, by type, up to 16,384 units', async () => {
    const { id, intake } = open()
    for (let i = 0; i < 100; i++) void intake.emit('stdout', 'line\n')
    void intake.emit('stderr', 'problem\n')
    void intake.emit('stdout', '')
    void intake.emit('stderr', 'problem\n')
    void intake.emit('stdout', 'x'.repeat(MAX_CHUNK_LENGTH))
    void intake.emit('stdout', 'y')
    await output.flush()
    expect(rowsOf(id).map(({ output_type, data }) => [output_type, data.length])).toEqual([
      ['stdout', 500],
      ['stderr', 16],
      ['stdout', MAX_CHUNK_LENGTH],
      ['stdout', 1],
    ])
  })

  test('are not made where output is not to be stored', async () => {
    const execution = makeExecution({ status: 'running' })
    const intake = output.open(execution, false)
    for (let i = 0; i < 100; i++) expect(intake.emit('stdout', 'x'.repeat(10_000))).toBeUndefined()
    await output.flush()
    expect(await intake.finish()).toEqual({ steps: [], facts: [] })
    expect(units).toEqual([])
    expect(output.cursor(execution.id).after(0, undefined)).toEqual([])
  })
})

describe('flushing', () => {
  test('what comes while a commit is under way waits for the next one, all of it for the same one', async () => {
    const runs = [open(), open(), open()]
    let openGate: () => void = () => undefined
    gate = new Promise((resolve) => (openGate = resolve))
    void runs[0]?.intake.emit('stdout', 'first')
    await waitFor('the first commit to be under way', () => units.length === 1)
    for (let i = 0; i < 50; i++) for (const { intake } of runs) void intake.emit('stdout', `${i} `)
    expect(units).toHaveLength(1)
    gate = undefined
    openGate()
    await output.flush()
    expect(units).toHaveLength(4)
    const counted = Array.from({ length: 50 }, (_, i) => `${i} `).join('')
    expect(runs.map(({ id }) => textOf(rowsOf(id)))).toEqual([`first${counted}`, counted, counted])
  })

  test('happens without being asked for, and ends', async () => {
    const { id, intake } = open()
    void intake.emit('stdout', 'a')
    await waitFor('the row', () => textOf(rowsOf(id)) === 'a')
    void intake.emit('stdout', 'b')
    await waitFor('the row', () => textOf(rowsOf(id)) === 'ab')
    await output.flush()
    expect(units).toHaveLength(2)
  })
})

describe('back-pressure', () => {
  test('a source is held back while 256 KiB wait, and let go once they are stored', async () => {
    const { id, intake } = open()
    let openGate: () => void = () => undefined
    gate = new Promise((resolve) => (openGate = resolve))
    void intake.emit('stdout', 'x')
    await waitFor('a commit to be under way', () => units.length === 1)
    let accepted = 0
    let held: Promise<void> | undefined
    while (held === undefined) {
      held = intake.emit('stdout', 'y'.repeat(1000))
      accepted += 1000
    }
    expect(accepted).toBeGreaterThan(200_000)
    expect(accepted).toBeLessThan(270_000)
    expect(intake.emit('stderr', 'z')).toBe(held)
    let isReleased = false
    void held.then(() => (isReleased = true))
    const other = open()
    expect(other.intake.emit('stdout', 'not held')).toBeUndefined()
    await new Promise((resolve) => setImmediate(resolve))
    expect(isReleased).toBe(false)
    // From here on no timer fires: whoever holds a source back does not pause between commits.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    gate = undefined
    openGate()
    await held
    vi.useRealTimers()
    expect(brief(textOf(rowsOf(id)))).toBe(brief(`x${'y'.repeat(accepted)}z`))
    expect(intake.emit('stdout', 'more')).toBeUndefined()
  })

  test('counts pieces as well as text: a million tiny ones are no way around it', async () => {
    const { id, intake } = open()
    let n = 0
    let held: Promise<void> | undefined
    while (held === undefined) {
      n += 1
      held = intake.emit(n % 2 === 0 ? 'stdout' : 'stderr', 'x')
    }
    expect(n).toBeLessThan(2000)
    await held
    expect(rowsOf(id)).toHaveLength(n)
  })
})

describe('a storage that fails', () => {
  test('is tried again until it works; nothing is lost, nothing is stored twice, and sources wait', async () => {
    const { id, intake } = open()
    failure = storageFailed(new Error('disk full'))
    void intake.emit('stdout', 'a'.repeat(100_000))
    await waitFor('the first attempt', () => units.length === 1)
    let sent = 'a'.repeat(100_000)
    let held: Promise<void> | undefined
    for (let i = 0; held === undefined; i++) {
      const text = `${i} `.repeat(1000)
      held = intake.emit('stdout', text)
      sent += text
    }
    expect(sent.length).toBeLessThan(400_000)
    await waitFor('a second attempt', () => units.length === 2)
    expect(rowsOf(id)).toEqual([])
    expect(facts).toEqual([])
    failure = undefined
    await held
    await output.flush()
    expect(brief(textOf(rowsOf(id)))).toBe(brief(sent))
    expect(brief(textOf(readAll(id)))).toBe(brief(sent))
    expect(logged.text.match(/output\.not_stored/g)).toHaveLength(2)
    expect(logged.text).not.toContain('aaa')
  })

  test('holds up the end of a run until what came before it is stored', async () => {
    const { id, intake } = open()
    failure = storageFailed(new Error('disk full'))
    void intake.emit('stdout', 'first ')
    await waitFor('the first attempt', () => units.length === 1)
    void intake.emit('stdout', 'last')
    const finished = intake.finish()
    failure = undefined
    await database.write(await finished)
    expect(textOf(rowsOf(id))).toBe('first last')
    expect(facts.map(({ lastSeq }) => lastSeq)).toEqual([1, 2])
  })

  test('is not waited for by a server that stops and was told to hurry', async () => {
    const { intake } = open()
    failure = storageFailed(new Error('disk full'))
    void intake.emit('stdout', 'lost')
    await waitFor('the first attempt', () => units.length === 1)
    const finished = intake.finish()
    stopRetrying.abort()
    await finished
    await output.flush()
    expect(units.length).toBeLessThanOrEqual(2)
    expect(logged.text).toContain('output.not_stored')
  })

  test('another failure costs the output of its own execution only', async () => {
    const doomed = open()
    const fine = open()
    await database.write({
      steps: [
        store.insertOutput(
          {
            id: newId(),
            execution_id: doomed.id,
            seq: 1,
            host: null,
            output_type: 'other',
            data: 'in the way',
            timestamp: '',
          },
          noPlace,
        ),
      ],
      facts: [],
    })
    void doomed.intake.emit('stdout', 'collides')
    void fine.intake.emit('stdout', 'is stored')
    await output.flush()
    expect(textOf(rowsOf(fine.id))).toBe('is stored')
    expect(logged.text).toContain('output.lost')
    expect(logged.text).toContain(doomed.id)
    expect(logged.text).not.toContain(fine.id)
    void doomed.intake.emit('stdout', 'goes on')
    await output.flush()
    expect(textOf(readAll(doomed.id))).toBe('in the waygoes on')
    await expect(
      database.write({ steps: [store.insertOutput(rowsOf(fine.id)[0] as OutputRecord, noPlace)], facts: [] }),
    ).rejects.toThrow(Conflict)
  })
})

describe('finish', () => {
  test('hands over what is not durable yet, after everything that is', async () => {
    const { id, intake } = open()
    void intake.emit('stdout', 'one ')
    await output.flush()
    void intake.emit('stdout', 'two ')
    void intake.emit('stderr', 'three')
    const unit = await intake.finish()
    expect(textOf(rowsOf(id))).toBe('one ')
    await output.flush()
    expect(textOf(rowsOf(id))).toBe('one ')
    await database.write(unit)
    expect(textOf(rowsOf(id))).toBe('one two three')
    expect(facts.map(({ seqs }) => seqs)).toEqual([[1], [2, 3]])
    expect(await intake.finish()).toEqual({ steps: [], facts: [] })
  })

  test('waits for no other run, however much that writes', async () => {
    const loud = open()
    let isOver = false
    const loudRun = (async () => {
      while (!isOver) await loud.intake.emit('stdout', 'x'.repeat(100_000))
    })()
    const quiet = open()
    for (let i = 0; i < 10; i++) {
      void quiet.intake.emit('stdout', `${i}`)
      await waitFor('the row', () => textOf(rowsOf(quiet.id)).endsWith(`${i}`))
    }
    void quiet.intake.emit('stdout', ' end')
    await database.write(await quiet.intake.finish())
    expect(isOver).toBe(false)
    isOver = true
    await loudRun
    expect(textOf(rowsOf(quiet.id))).toBe('0123456789 end')
  })

  test('lets a source go that is held back', async () => {
    const { intake } = open()
    let openGate: () => void = () => undefined
    gate = new Promise((resolve) => (openGate = resolve))
    void intake.emit('stdout', 'x')
    await waitFor('a commit to be under way', () => units.length === 1)
    const held = intake.emit('stdout', 'y'.repeat(300_000))
    expect(held).toBeInstanceOf(Promise)
    const finished = intake.finish()
    openGate()
    gate = undefined
    expect((await finished).steps).toHaveLength(19)
    expect(await held).toBeUndefined()
  })
})

describe('a cursor', () => {
  test('reads the same from recent output as from the rows, from any place, in any type', async () => {
    const { id, intake } = open()
    for (let i = 0; i < 400; i++) {
      await intake.emit(pick(['stdout', 'stdout', 'stderr', 'other'] as const), randomText(8000) || 'x')
      if (i % 7 === 0) await output.flush()
    }
    await output.flush()
    const rows = rowsOf(id)
    const cursor = output.cursor(id)
    for (const type of [undefined, ...types]) {
      for (const seq of [
        0,
        1,
        Math.floor(rows.length / 2),
        rows.length - 2,
        rows.length - 1,
        rows.length,
        rows.length + 5,
      ]) {
        const expected = rows.filter((row) => row.seq > seq && (type === undefined || row.output_type === type))
        const some = cursor.after(seq, type)
        expect(some).toEqual(expected.slice(0, some.length))
        expect(some.length > 0).toBe(expected.length > 0)
        expect(textOf(some).length).toBeLessThan(400_000)
      }
      const expected = rows.filter((row) => type === undefined || row.output_type === type)
      expect(readAll(id, type)).toEqual(expected)
    }
    intake.close()
    for (const type of [undefined, ...types]) {
      expect(readAll(id, type)).toEqual(rows.filter((row) => type === undefined || row.output_type === type))
    }
  })

  test('that follows one type finds each new record, and passes the others once', async () => {
    const { id, intake } = open()
    const cursor = output.cursor(id)
    const readRows = store.outputAfter.bind(store)
    const readFrom: number[] = []
    store.outputAfter = (...asked) => {
      readFrom.push(asked[1])
      return readRows(...asked)
    }
    let found = ''
    let seq = 0
    const follow = (): void => {
      for (let some = cursor.after(seq, 'stderr'); some.length > 0; some = cursor.after(seq, 'stderr')) {
        found += textOf(some)
        seq = some.at(-1)?.seq ?? seq
      }
    }
    follow()
    for (let i = 0; i < 60; i++) {
      void intake.emit('stdout', 'x'.repeat(50_000))
      if (i % 20 === 19) void intake.emit('stderr', `found ${i} `)
      await output.flush()
      // Now and then recent output reaches back far enough, mostly not.
      if (i % 10 === 0 || i < 3) follow()
    }
    follow()
    expect(found).toBe('found 19 found 39 found 59 ')
    // From the same place again and again it would pass the same rows each time.
    expect(readFrom.length).toBeGreaterThan(5)
    expect(readFrom.slice(2).filter((seq) => seq === 0)).toEqual([])
    expect(readFrom).toEqual(readFrom.toSorted((a, b) => a - b))
  })

  test('of an execution without output, or of none at all, finds nothing', () => {
    const { id } = open()
    expect(output.cursor(id).after(0, undefined)).toEqual([])
    expect(output.cursor(id).after(0, 'stdout')).toEqual([])
    expect(output.cursor('no such id').after(0, undefined)).toEqual([])
  })
})
