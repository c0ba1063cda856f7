/** Output by line, and searches in it: beside contract 03, 3.3, whose text of the output they number. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OutputLine, OutputLines, OutputMatches } from '../../src/modules/executions/types.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { linesIn } from '../helpers/output-rows.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { createTestApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type Answer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { fullOnly, rounds, tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { unknownId, type ErrorAnswer } from './support.ts'

const node = process.execPath
const types = ['all', 'stdout', 'stderr', 'other'] as const
type Type = (typeof types)[number]

let folder: TemporaryFolder
let server: TestApp

beforeAll(async () => {
  folder = makeFolder()
  server = await start()
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

const start = (): Promise<TestApp> => createTestApp({ basePath: folder.path })

/** Changes rows while nobody else has them. */
async function withRows(change: (database: Sqlite.Database) => void): Promise<void> {
  await server.stop()
  const database = new Sqlite(join(folder.path, 'svc.db'))
  change(database)
  database.close()
  server = await start()
}

const textOf = async (id: string, type: Type = 'all'): Promise<string> =>
  (await server.call<string>('GET', `/v1/executions/${id}/output?output_type=${type}`)).text

function lines(id: string, query: Record<string, string | number> = {}): Promise<Answer<OutputLines>> {
  return server.call<OutputLines>('GET', `/v1/executions/${id}/output/lines?${written(query)}`)
}

function search(id: string, query: Record<string, string | number | boolean>): Promise<Answer<OutputMatches>> {
  return server.call<OutputMatches>('GET', `/v1/executions/${id}/output/search?${written(query)}`)
}

function written(query: Record<string, string | number | boolean>): string {
  const pairs = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])
  return new URLSearchParams(pairs).toString()
}

const shown = ({ parts }: OutputLine): string => parts.map(({ data }) => data).join('')

/** All of them, in as many answers as it takes. */
async function allLines(id: string, type: Type = 'all', limit = 1000): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const { body } = await lines(id, { output_type: type, from: found.length + 1, limit })
    if (body.lines.length === 0) return found
    if (body.lines[0]?.number !== found.length + 1) throw new Error('these are other lines')
    found.push(...body.lines.map(shown))
  }
}

/** That lines are those of the text, of each type and of all. */
async function expectLinesOfText(id: string, limit?: number): Promise<void> {
  for (const type of types) {
    const expected = linesIn(await textOf(id, type))
    expect(await allLines(id, type, limit)).toEqual(expected)
    const { body } = await lines(id, { output_type: type, from: -2 })
    expect(body.total).toBe(expected.length)
    expect(body.lines.map(shown)).toEqual(expected.slice(-2))
  }
}

/** Runs a Node program. @returns the id of the execution, once it has ended */
async function runProgram(source: string): Promise<string> {
  const file = join(folder.path, `program-${Math.random()}.cjs`)
  writeFileSync(file, `const { writeSync } = require('node:fs')\n${source}`)
  return (await runToEnd(server, { cmd: `${node} ${file}` })).id
}

describe('lines', () => {
  const programs: [what: string, source: string][] = [
    ['nothing', ''],
    ['one line', `writeSync(1, 'a\\n')`],
    ['no line end', `writeSync(1, 'a')`],
    ['only line ends', `writeSync(1, '\\n\\n\\n')`],
    ['carriage returns', `writeSync(1, 'a\\r\\nb\\rc\\r\\n')`],
    [
      'invalid bytes',
      `writeSync(1, Buffer.from([0xff, 0x0a, 0xc3, 0x0a, 0xf0, 0x9f, 0x0a, 0x00, 0x0a, 0xed, 0xa0, 0x80]))`,
    ],
    [
      'characters of four bytes in pieces',
      `for (const byte of Buffer.from('😀\\n😀😀\\n😀')) { writeSync(1, Buffer.from([byte])); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 15) }`,
    ],
    [
      'both streams in one line',
      `for (let i = 0; i < 30; i++) { writeSync(1 + i % 2, i % 3 ? 'a' + i : 'b\\n'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 12) }`,
    ],
  ]
  // The texts of the random test hold most of these, too.
  it.each(tier === 'full' ? programs : programs.slice(-4))('03.3 are those of the text: %s', async (_, source) => {
    const id = await runProgram(source)
    await expectLinesOfText(id)
    expect((await lines(id)).body.is_complete).toBe(true)
  })

  const seed = seedOfRun()
  it(`03.3 are those of the text, whatever was written (seed ${seed})`, async () => {
    const random = createRandom(seed)
    const pieces = Array.from({ length: rounds({ daily: 20, full: 300 }) }, () => ({
      to: random.once(4) ? 2 : 1,
      text: Array.from({ length: 1 + random.below(30) }, () =>
        random.pick(['a', '\n', '\r\n', '😀', '\u001b[31m', '\0', 'x'.repeat(200), 'y'.repeat(20_000)]),
      ).join(''),
    }))
    const id = await runProgram(`for (const { to, text } of ${JSON.stringify(pieces)}) writeSync(to, text)`)
    for (const type of types) {
      const expected = linesIn(await textOf(id, type))
      const { body } = await lines(id, { output_type: type, from: 1, limit: 1000 })
      expect(body.total).toBe(expected.length)
      const wrong = body.lines.filter((line, i) => {
        const whole = expected[i] ?? ''
        return line.next_offset === undefined
          ? shown(line) !== whole
          : !whole.startsWith(shown(line)) || line.length !== Buffer.byteLength(whole)
      })
      expect(wrong).toEqual([])
    }
  })

  it('03.3 say when they began and where they were written to', async () => {
    const go = join(folder.path, `go-${Math.random()}`)
    const { id } = await run(server, { cmd: `echo out; until [ -e ${go} ]; do sleep 0.02; done; echo err >&2` })
    await waitFor('the first line', async () => (await lines(id)).body.total === 1)
    const between = Date.now()
    writeFileSync(go, '')
    await waitForStatus(server, id)
    const { body } = await lines(id)
    expect(body).toMatchObject({
      total: 2,
      is_last_line_open: false,
      bytes: { stdout: 4, stderr: 4, other: 0 },
      is_complete: true,
      is_stored: true,
      is_beginning_removed: false,
      last_seq: 2,
      lines: [
        { number: 1, parts: [{ output_type: 'stdout', data: 'out' }] },
        { number: 2, parts: [{ output_type: 'stderr', data: 'err' }] },
      ],
    })
    const [first = '', second = ''] = body.lines.map(({ timestamp }) => timestamp)
    expect(first).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    expect(Date.parse(first)).toBeLessThanOrEqual(between)
    expect(Date.parse(second)).toBeGreaterThanOrEqual(between)
  })

  it('03.3 of a line that never ends are a part of it, and the rest is had by its bytes', async () => {
    const id = await runProgram(
      `const b = Buffer.from('€'.repeat(10000)); for (let i = 0; i < 700; i++) writeSync(1, b); writeSync(1, '\\nlast')`,
    )
    const { body } = await lines(id)
    expect(body.total).toBe(2)
    expect(body.lines.map(({ length }) => length)).toEqual([21_000_000, undefined])
    expect(shown(body.lines[0] as OutputLine)).toBe('€'.repeat(16_384))
    expect(body.lines[0]?.next_offset).toBe(16_384 * 3)
    const middle = await lines(id, { from: 1, limit: 1, offset: 10_000_001 })
    // In the middle of a character: from its beginning on.
    expect(middle.body.lines[0]).toMatchObject({ offset: 9_999_999 + 1 - ((9_999_999 + 1) % 3), length: 21_000_000 })
    const end = await lines(id, { from: 1, offset: 21_000_000 - 3 })
    expect(end.body.lines.map(shown)).toEqual(['€', 'last'])
    expect((await lines(id, { from: 1, offset: 21_000_001 })).body.lines).toEqual([])
  })

  fullOnly(it)('03.3 are few when they are long', async () => {
    const id = await runProgram(`for (let i = 0; i < 200; i++) writeSync(1, String(i % 10).repeat(16000) + '\\n')`)
    const { body } = await lines(id, { limit: 1000 })
    expect(body.lines.length).toBeGreaterThan(10)
    expect(body.lines.length).toBeLessThan(40)
    await expectLinesOfText(id)
  })

  it('03.3 while it runs: with the stream that goes on behind them nothing is missing and nothing comes twice', async () => {
    const flag = join(folder.path, 'write-on')
    const file = join(folder.path, 'running.cjs')
    writeFileSync(
      file,
      `const { existsSync } = require('node:fs')
      let i = 0
      const t = setInterval(() => {
        if (i === 60 && !existsSync(${JSON.stringify(flag)})) return
        process.stdout.write('o' + i + (i % 3 ? '' : '\\n'))
        process.stderr.write('e' + i + '\\n')
        if (++i === 180) clearInterval(t)
      }, 4)`,
    )
    const { id } = await run(server, { cmd: `${node} ${file}` })
    await waitFor('half of the lines', async () => (await lines(id, { output_type: 'stderr' })).body.total === 60)
    const followed = ['all', 'stdout', 'stderr'].map(async (type) => {
      const { body } = await lines(id, { output_type: type, limit: 1000 })
      const client = await openEvents(`${server.urls.stream}/v1/executions/${id}/output?output_type=${type}`, {
        'Last-Event-ID': `${id}/${body.last_seq}`,
      })
      return { type, body, client }
    })
    const clients = await Promise.all(followed)
    writeFileSync(flag, '')
    for (const { type, body, client } of clients) {
      await client.ended
      expect(body.is_complete).toBe(false)
      const begun = body.lines.map(shown).join('\n') + (body.is_last_line_open ? '' : '\n')
      const more = client.frames.flatMap(({ event, data }) =>
        event === 'EOF' ? [] : [(JSON.parse(data) as { data: string }).data],
      )
      expect(begun + more.join('')).toBe(await textOf(id, type as Type))
    }
    expect((await lines(id)).body.is_complete).toBe(true)
    await expectLinesOfText(id)
  })

  it('03.3 answers for "last", under the old name, and for types that there are none of', async () => {
    const id = await runProgram(`writeSync(1, 'a\\nb\\n')`)
    expect((await lines('last', { from: 2 })).body.lines.map(shown)).toEqual(['b'])
    const old = await server.call<OutputLines>('GET', `/v1/actionexecutions/${id}/output/lines`)
    expect(old.body.total).toBe(2)
    expect((await lines(id, { output_type: 'nothing' })).body).toMatchObject({ total: 0, lines: [], last_seq: 1 })
    expect((await lines(id, { output_type: 'stderr' })).body).toMatchObject({
      total: 0,
      lines: [],
      is_last_line_open: false,
    })
    expect((await lines(id, { from: 3 })).body).toMatchObject({ total: 2, lines: [] })
    expect((await lines(id, { from: -100 })).body.lines.map(({ number }) => number)).toEqual([1, 2])
  })

  it.each([
    ['from=0', /"from" is 0/],
    ['limit=0', /"limit" must be from 1 to 1000/],
    ['limit=1001', /"limit" must be from 1 to 1000/],
    ['offset=-1', /"offset" must not be negative/],
    ['from=x', /"from" is not of type integer/],
  ])('03.3 %s → 400', async (query, message) => {
    const id = await runProgram('')
    const answer = await server.call<ErrorAnswer>('GET', `/v1/executions/${id}/output/lines?${query}`)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(message)
  })

  it('03.3 of an unknown execution → 404', async () => {
    expect((await lines(unknownId)).status).toBe(404)
    expect((await search(unknownId, { query: 'a' })).status).toBe(404)
  })
})

describe('lines after a restart', () => {
  it('03.3 are the same', async () => {
    const id = await runProgram(
      `for (let i = 0; i < 3000; i++) writeSync(1 + (i % 7 === 0), 'line ' + i + (i % 5 ? '\\n' : '😀'))`,
    )
    const before = (await lines(id, { from: -50 })).body
    await withRows(() => undefined)
    expect((await lines(id, { from: -50 })).body).toEqual(before)
    await expectLinesOfText(id)
  })

  fullOnly(it)('03.3 are those that are left when retention has removed the first ones, or all', async () => {
    const id = await runProgram(
      `let i = 0; const t = setInterval(() => { writeSync(1, 'line ' + i + '\\nhalf'); writeSync(2, 'e' + i + '\\n'); if (++i === 40) clearInterval(t) }, 11)`,
    )
    const { last_seq: lastSeq } = (await lines(id)).body
    expect(lastSeq).toBeGreaterThan(20)
    for (const removed of [1, 7, lastSeq - 1]) {
      await withRows((database) => {
        database.prepare('delete from output_records where execution_id = ? and seq <= ?').run(id, removed)
      })
      expect((await lines(id)).body).toMatchObject({ is_beginning_removed: true, last_seq: lastSeq })
      await expectLinesOfText(id, 7)
    }
    // A part for each request.
    for (let after: string | null = ''; after !== null;) {
      const old = { before: '2999-01-01T00:00:00Z', after }
      const purged: Answer<{ next: string | null }> = await server.call('POST', '/v1/purge/output', old)
      expect(purged.status).toBe(200)
      after = purged.body.next
    }
    expect((await lines(id)).body).toMatchObject({ total: 0, lines: [], last_seq: 0, is_complete: true })
    expect((await search(id, { query: 'line' })).body).toMatchObject({ matches: [], is_at_end: true })
  })

  fullOnly(it)('03.3 are told apart by their hosts', async () => {
    const id = await runProgram(`writeSync(1, 'one'); setTimeout(() => writeSync(1, 'two\\n'), 60)`)
    await withRows((database) => {
      database.prepare(`update output_records set host = 'host' || seq where execution_id = ?`).run(id)
    })
    expect((await lines(id)).body.lines[0]?.parts).toEqual([
      { output_type: 'stdout', data: 'one', host: 'host1' },
      { output_type: 'stdout', data: 'two', host: 'host2' },
    ])
  })

  fullOnly(it)('03.3 are found when a record between them was lost', async () => {
    const id = await runProgram(
      `let i = 0; const t = setInterval(() => { writeSync(1, 'line ' + i + '\\n'); if (++i === 20) clearInterval(t) }, 12)`,
    )
    await withRows((database) => {
      database.prepare('delete from output_records where execution_id = ? and seq in (5, 6, 11)').run(id)
    })
    const { body } = await lines(id, { limit: 1000 })
    expect(body.lines.map(shown)).toEqual(linesIn(await textOf(id)))
    expect((await lines(id, { from: -1 })).body.lines.map(shown)).toEqual(['line 19'])
    expect((await search(id, { query: 'line 19' })).body.matches).toHaveLength(1)
  })
})

describe('a search', () => {
  it('03.3 finds lines of the text, and goes on where it has ended', async () => {
    const id = await runProgram(
      `for (let i = 1; i <= 2000; i++) writeSync(1 + (i % 2), i % 100 ? 'nothing here\\n' : 'a \\u001b[31mnee\\u001b[0mdle in ' + i + '\\n')`,
    )
    for (const type of types) {
      const text = linesIn(await textOf(id, type))
      const expected = text.flatMap((line, i) => (line.startsWith('a ') ? [i + 1] : []))
      const found: number[] = []
      let place: Record<string, number> = {}
      for (let isAtEnd = false; !isAtEnd;) {
        const { body } = await search(id, { query: 'needle', output_type: type, limit: 3, ...place })
        found.push(...body.matches.map(({ line }) => line))
        place = body.next
        isAtEnd = body.is_at_end
      }
      expect(found).toEqual(expected)
    }
  })

  it('03.3 shows what it has found', async () => {
    const id = await runProgram(`writeSync(1, 'x'.repeat(500) + 'Needle' + 'y'.repeat(500) + '\\n')`)
    const { body } = await search(id, { query: 'needle', ignore_case: true })
    expect(body).toEqual({
      total: 1,
      matches: [{ line: 1, before: 'x'.repeat(80), match: 'Needle', after: 'y'.repeat(120) }],
      next: { from: 2, offset: 0 },
      is_at_end: true,
      is_complete: true,
    })
    expect((await search(id, { query: 'needle' })).body.matches).toEqual([])
    expect((await search(id, { query: 'N[aeiou]+dle', is_pattern: true })).body.matches[0]?.match).toBe('Needle')
  })

  it('03.3 finds what is written while it runs', async () => {
    const flag = join(folder.path, 'go-on')
    const { id } = await run(server, {
      cmd: `printf 'needle one\\nnee'; while [ ! -e ${flag} ]; do sleep 0.05; done; printf 'dle two\\n'`,
    })
    await waitFor('the first lines', async () => (await lines(id)).body.total === 2)
    const first = (await search(id, { query: 'needle' })).body
    expect(first).toMatchObject({ matches: [{ line: 1 }], is_at_end: true, is_complete: false })
    writeFileSync(flag, '')
    await waitForStatus(server, id)
    const second = (await search(id, { query: 'needle', ...first.next })).body
    expect(second).toMatchObject({
      matches: [{ line: 2, before: '', match: 'needle' }],
      is_at_end: true,
      is_complete: true,
    })
  })

  it.each([
    ['', /Required parameter "query" is missing/],
    ['query=', /is empty/],
    ['query=a%0Ab', /line end/],
    ['query=a&from=0', /"from" is 0/],
    ['query=a&from=-1', /"from" must be 1 or more/],
    ['query=a&limit=0', /"limit" must be/],
    ['query=(&is_pattern=true', /regular expression is invalid/],
    ['query=(a%7B100%7D)%7B100%7D&is_pattern=true', /too large/],
  ])('03.3 %s → 400', async (query, message) => {
    const id = await runProgram('')
    const answer = await server.call<ErrorAnswer>('GET', `/v1/executions/${id}/output/search?${query}`)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(message)
  })
})

it('03.3 a search for a text that is too long → 400', async () => {
  const id = await runProgram('')
  const answer = await search(id, { query: 'a'.repeat(1001) })
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('longer than 1000')])
})

it('03.3 lines say that output is not stored, where it is not', async () => {
  const other = await createTestApp({ settings: { 'actionrunner.stream_output': 'False' } })
  try {
    const { id } = await runToEnd(other, { cmd: 'echo a' })
    const { body } = await other.call<OutputLines>('GET', `/v1/executions/${id}/output/lines`)
    expect(body).toMatchObject({ total: 0, is_stored: false, is_complete: true, last_seq: 0 })
  } finally {
    await other.stop()
  }
})
