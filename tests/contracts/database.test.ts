/** What every implementation of the database port must do, and what is particular to SQLite. */
import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Fact } from '../../src/bus/facts.ts'
import { Conflict, merge, type Compilable, type Database, type Step, type Unit } from '../../src/db/database.ts'
import { migrate, SchemaTooNew } from '../../src/db/migrate.ts'
import { DatabaseInUse } from '../../src/db/sqlite/lock.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { createStatementCache } from '../../src/db/sqlite/statements.ts'
import type { ExecutionTable } from '../../src/db/tables.ts'
import { isAppError } from '../../src/core/errors.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import type { WriteOrder, WriteReport } from '../fixtures/database-child.ts'
import { rounds, fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const childFile = join(import.meta.dirname, '../fixtures/database-child.ts')

let folder: TemporaryFolder
let path: string

beforeEach(() => {
  folder = makeFolder()
  path = join(folder.path, 'svc.db')
})

/** Killed at the end of their test, however that ended. */
const children: ChildProcess[] = []

function startChild(task: string, file: string): ChildProcess {
  const child = fork(childFile, [task, file])
  children.push(child)
  return child
}

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  folder.remove()
})

/** Names the fact, so that the order of announcements can be told. */
function fact(n: number): Fact {
  return {
    name: 'execution.output',
    payload: { execution_id: '', action_ref: '', user: 'ada', runner_ref: '', last_seq: n, records: [] },
  }
}

const numberOf = (announced: Fact): number | undefined =>
  announced.name === 'execution.output' ? announced.payload.last_seq : undefined

const addUser = (database: Database, name: string, createdAt = ''): Step => ({
  query: database.build.insertInto('users').values({ name, is_service: 0, created_at: createdAt }),
})

const addToken = (database: Database, id: string): Step => ({
  query: database.build.insertInto('tokens').values({ id, user: 'u', expiry: '', service: 0, metadata: '{}' }),
})

const rename = (database: Database, from: string, to: string, expectedRows?: number): Step => ({
  query: database.build.updateTable('users').set({ created_at: to }).where('created_at', '=', from),
  ...(expectedRows === undefined ? {} : { expect: expectedRows }),
})

const unit = (steps: Step[], facts: Fact[] = []): Unit => ({ steps, facts })

const usersOf = (database: Database): string[] =>
  database.all(database.build.selectFrom('users').select('name').orderBy('name')).map(({ name }) => name)

const outcomeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'resolved',
    (error: unknown) => error,
  )

const codeOf = (error: unknown): string => (isAppError(error) ? error.code : String(error))

/** Counts up to `n` inside the database: takes a while, on purpose. */
const count = (database: Database, n: number): Compilable<{ n: number }> => ({
  compile: () =>
    sql<{ n: number }>`with recursive c(i) as (select 1 union all select i + 1 from c where i < ${n})
      select count(*) as n from c`.compile(database.build),
})

const openedSqlite = (announce: (facts: Fact[]) => void = () => undefined): Promise<Database> =>
  openSqlite({ path, synchronous: 'normal', announce })

describe.each([{ name: 'SQLite', open: openedSqlite }])('database on $name', ({ open }) => {
  let database: Database
  let announced: (number | undefined)[]
  let onFacts: (facts: Fact[]) => void

  beforeEach(async () => {
    announced = []
    onFacts = () => undefined
    database = await open((facts) => {
      announced.push(...facts.map(numberOf))
      onFacts(facts)
    })
  })

  afterEach(async () => {
    await database.close()
  })

  describe('a unit', () => {
    test('is applied whole, and tells what each step changed', async () => {
      await database.write(
        unit([addUser(database, 'a', 'x'), addUser(database, 'b', 'x'), addUser(database, 'c', 'y')]),
      )
      const results = await database.write(
        unit([
          rename(database, 'x', 'z', 2),
          rename(database, 'nothing', 'z'),
          {
            query: database.build.deleteFrom('users').where('created_at', '=', 'z').returning('name'),
            expect: 2,
          },
        ]),
      )
      expect(results.map(({ changes }) => changes)).toEqual([2, 0, 2])
      expect(results[2]?.rows).toEqual(expect.arrayContaining([{ name: 'a' }, { name: 'b' }]))
      expect(usersOf(database)).toEqual(['c'])
    })

    test('may be empty', async () => {
      expect(await database.write(unit([]))).toEqual([])
      expect(await database.write(unit([], [fact(1)]))).toEqual([])
      expect(announced).toEqual([1])
    })

    test('that hits a taken key is a Conflict and leaves nothing', async () => {
      await database.write(unit([addToken(database, 'taken')]))
      const refused = await outcomeOf(database.write(unit([addUser(database, 'a'), addToken(database, 'taken')])))
      expect(refused).toBeInstanceOf(Conflict)
      expect(usersOf(database)).toEqual([])
    })

    test.each([0, 1, 3])(
      'that changes 2 rows instead of the expected %d is a Conflict and leaves nothing',
      async (n) => {
        await database.write(unit([addUser(database, 'a', 'x'), addUser(database, 'b', 'x')]))
        // Alone and after another step: the way back differs.
        const alone = database.write(unit([rename(database, 'x', 'z', n)]))
        const second = database.write(unit([addUser(database, 'c'), rename(database, 'x', 'z', n)]))
        expect(await outcomeOf(alone)).toBeInstanceOf(Conflict)
        expect(await outcomeOf(second)).toBeInstanceOf(Conflict)
        const users = database.all(database.build.selectFrom('users').select(['name', 'created_at']).orderBy('name'))
        expect(users).toEqual([
          { name: 'a', created_at: 'x' },
          { name: 'b', created_at: 'x' },
        ])
      },
    )

    test('that the driver cannot take is refused with the driver’s reason, alone', async () => {
      const values = { name: { not: 'text' }, is_service: 0, created_at: '' }
      // @ts-expect-error a value of a type that no column has
      const impossible = { query: database.build.insertInto('users').values(values) }
      const [refused, accepted] = await Promise.all([
        outcomeOf(database.write(unit([addUser(database, 'a'), impossible]))),
        outcomeOf(database.write(unit([addUser(database, 'b')]))),
      ])
      expect(refused).toBeInstanceOf(Error)
      expect(refused).not.toBeInstanceOf(Conflict)
      expect(accepted).toBe('resolved')
      expect(usersOf(database)).toEqual(['b'])
    })

    test('of merged units is one unit', async () => {
      await database.write(unit([addUser(database, 'taken')]))
      const both = merge(
        unit([addUser(database, 'a')], [fact(1)]),
        undefined,
        unit([addUser(database, 'taken')], [fact(2)]),
      )
      expect(await outcomeOf(database.write(both))).toBeInstanceOf(Conflict)
      expect(usersOf(database)).toEqual(['taken'])
      expect(announced).toEqual([])
    })
  })

  describe('a unit that promises nothing', () => {
    const unpromised = (steps: Step[], facts: Fact[] = []): Unit => ({ ...unit(steps, facts), isUnpromised: true })

    test('keeps its place among the others, and is refused like them', async () => {
      const writes = [
        unpromised([addUser(database, 'a', '0')], [fact(1)]),
        unit([rename(database, '0', '1', 1)], [fact(2)]),
        unpromised([rename(database, '1', '2', 1)], [fact(3)]),
        unpromised([rename(database, '1', 'too late', 1)], [fact(4)]),
        unit([rename(database, '2', '3', 1)], [fact(5)]),
      ].map((one) => outcomeOf(database.write(one)))
      expect(await Promise.all(writes)).toEqual(['resolved', 'resolved', 'resolved', expect.any(Conflict), 'resolved'])
      expect(announced).toEqual([1, 2, 3, 5])
      const { commits } = database.stats()
      await database.write(unpromised([rename(database, '3', '4', 1)], [fact(6)]))
      expect(database.stats().commits).toBe(commits + 1)
      expect(usersOf(database)).toEqual(['a'])
    })

    test('promises what is merged with it', () => {
      const some = unpromised([addUser(database, 'a')])
      expect(merge(some, undefined, some).isUnpromised).toBe(true)
      expect(merge(some, unit([addUser(database, 'b')])).isUnpromised).toBeUndefined()
      expect(merge({ ...unit([]), isVital: true }, some)).toEqual({ ...some, isVital: true, isUnpromised: undefined })
    })
  })

  describe('units that share a commit', () => {
    test('are refused one by one', async () => {
      const writes = ['a', 'b', 'a', 'c', 'b', 'd'].map((name, i) =>
        database.write(unit([addToken(database, `token-${i}`), addUser(database, name)], [fact(i)])),
      )
      const outcomes = await Promise.all(writes.map(outcomeOf))
      expect(outcomes.map((outcome) => (outcome instanceof Conflict ? 'conflict' : outcome))).toEqual([
        'resolved',
        'resolved',
        'conflict',
        'resolved',
        'conflict',
        'resolved',
      ])
      expect(usersOf(database)).toEqual(['a', 'b', 'c', 'd'])
      const tokens = database.all(database.build.selectFrom('tokens').select('id').orderBy('id'))
      expect(tokens.map(({ id }) => id)).toEqual(['token-0', 'token-1', 'token-3', 'token-5'])
      expect(announced).toEqual([0, 1, 3, 5])
    })

    test('see what those before them did', async () => {
      const writes = [
        database.write(unit([addUser(database, 'a', '0')])),
        ...Array.from({ length: 9 }, (_, i) => database.write(unit([rename(database, `${i}`, `${i + 1}`, 1)]))),
        database.write(unit([rename(database, '0', 'too late', 1)])),
      ]
      const outcomes = await Promise.all(writes.map(outcomeOf))
      expect(outcomes.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'resolved'))
      expect(outcomes[10]).toBeInstanceOf(Conflict)
    })

    fullOnly(test)('have a limit, keep their order, and leave the event loop its turns', async () => {
      const total = 2000
      const order: number[] = []
      const seen: { announced: number; stored: number }[] = []
      const turns = new Set<number>()
      let turn = 0
      let isOver = false
      const count = (): void => {
        turn += 1
        if (!isOver) setImmediate(count)
      }
      count()
      onFacts = () => {
        turns.add(turn)
        seen.push({ announced: announced.length, stored: usersOf(database).length })
      }
      await Promise.all(
        Array.from({ length: total }, async (_, i) => {
          await database.write(unit([addUser(database, `user-${i}`)], [fact(i)]))
          order.push(i)
        }),
      )
      isOver = true
      const all = Array.from({ length: total }, (_, i) => i)
      expect(order).toEqual(all)
      expect(announced).toEqual(all)
      expect(usersOf(database)).toHaveLength(total)
      expect(seen.filter(({ announced: told, stored }) => stored < told)).toEqual([])
      expect(turns.size).toBeGreaterThanOrEqual(total / 512)
      expect(database.stats().commits).toBeGreaterThanOrEqual(total / 256)
    })

    fullOnly(test)('may be larger together than what is sent at once', async () => {
      const sizes = [20_000_000, 1, 20_000_000, 20_000_000, 5]
      const written = await Promise.all(
        sizes.map((size, i) => database.write(unit([addUser(database, `${i}`, 'ä'.repeat(size))], [fact(i)]))),
      )
      expect(written.map(([result]) => result)).toEqual(sizes.map(() => ({ changes: 1, rows: [] })))
      expect(announced).toEqual([0, 1, 2, 3, 4])
      const stored = database.all(
        database.build
          .selectFrom('users')
          .select((eb) => eb.fn<number>('length', ['created_at']).as('size'))
          .orderBy('name'),
      )
      expect(stored.map(({ size }) => size)).toEqual(sizes)
      expect(database.stats().waitingUnits).toBe(0)
    })

    test('of which one holds a value that cannot be sent are stored without it', async () => {
      const unsendable: Step = {
        query: { compile: () => ({ ...count(database, 1).compile(), parameters: [() => 1] }) },
      }
      const outcomes = await Promise.all([
        outcomeOf(database.write(unit([addUser(database, 'a')], [fact(1)]))),
        outcomeOf(database.write(unit([addUser(database, 'never'), unsendable], [fact(2)]))),
        outcomeOf(database.write(unit([addUser(database, 'b')], [fact(3)]))),
      ])
      expect(outcomes).toEqual([
        'resolved',
        expect.objectContaining({ message: expect.stringMatching(/cloned/) }),
        'resolved',
      ])
      expect(usersOf(database)).toEqual(['a', 'b'])
      expect(announced).toEqual([1, 3])
    })

    test('that cannot be compiled is refused alone', async () => {
      const broken: Step = {
        query: {
          compile() {
            throw new Error('no such statement')
          },
        },
      }
      const [refused, accepted] = await Promise.all([
        outcomeOf(database.write(unit([broken]))),
        outcomeOf(database.write(unit([addUser(database, 'b')]))),
      ])
      expect([String(refused), accepted]).toEqual(['Error: no such statement', 'resolved'])
    })
  })

  describe('values', () => {
    test.each<[what: string, value: unknown]>([
      ['text', 'ä\0€😀'],
      ['a fraction', 0.1],
      ['nothing', null],
      ['a whole number', 2 ** 53 - 1],
      ['bytes', Buffer.from([0, 1, 255])],
      ['bytes in the middle of others', Buffer.from('before after').subarray(3, 8)],
      ['no bytes', Buffer.alloc(0)],
    ])('reach the file and come back as they are: %s', async (_, value) => {
      await database.write(
        unit([{ query: { compile: () => sql`create table any_value (v any)`.compile(database.build) } }]),
      )
      const [result] = await database.write(
        unit([
          {
            query: { compile: () => sql`insert into any_value values (${value}) returning v`.compile(database.build) },
          },
        ]),
      )
      expect(result?.rows).toStrictEqual([{ v: value }])
      expect(database.all({ compile: () => sql`select v from any_value`.compile(database.build) })).toStrictEqual([
        { v: value },
      ])
    })

    test('beyond the exact fractions stay whole numbers', async () => {
      await database.write(
        unit([{ query: { compile: () => sql`create table any_value (v any)`.compile(database.build) } }]),
      )
      const large = 9_007_199_254_740_993n
      await database.write(
        unit([{ query: { compile: () => sql`insert into any_value values (${large})`.compile(database.build) } }]),
      )
      expect(
        database.all({ compile: () => sql`select cast(v as text) as v from any_value`.compile(database.build) }),
      ).toEqual([{ v: String(large) }])
    })
  })

  describe('facts', () => {
    test('are announced after the commit and before the writer hears of it', async () => {
      const steps: string[] = []
      const stored: string[][] = []
      onFacts = (facts) => {
        steps.push(`fact ${facts.map(numberOf).join()}`)
        stored.push(usersOf(database))
      }
      await Promise.all([
        database.write(unit([addUser(database, 'a')], [fact(1), fact(2)])).then(() => steps.push('a written')),
        database.write(unit([addUser(database, 'b')], [fact(3)])).then(() => steps.push('b written')),
      ])
      // On a slow machine each has a commit of its own.
      expect(steps.filter((step) => !step.startsWith('b') && step !== 'fact 3')).toEqual(['fact 1,2', 'a written'])
      expect(steps.filter((step) => step.startsWith('fact'))).toEqual(['fact 1,2', 'fact 3'])
      expect(steps.at(-1)).toBe('b written')
      expect(stored).toEqual([expect.arrayContaining(['a']), ['a', 'b']])
    })

    test('may lead to more writing', async () => {
      const followed = new Promise((resolve) => {
        onFacts = (facts) => {
          if (facts.map(numberOf).includes(1)) resolve(database.write(unit([addUser(database, 'b')], [fact(2)])))
        }
      })
      await database.write(unit([addUser(database, 'a')], [fact(1)]))
      await followed
      expect(announced).toEqual([1, 2])
      expect(usersOf(database)).toEqual(['a', 'b'])
    })
  })

  describe('reading', () => {
    test('finds what was written as soon as that is promised', async () => {
      await database.write(unit([addUser(database, 'a'), addUser(database, 'b')]))
      const users = database.build.selectFrom('users').select('name').orderBy('name')
      expect(database.all(users)).toEqual([{ name: 'a' }, { name: 'b' }])
      expect(database.first(users)).toEqual({ name: 'a' })
      expect(database.first(users.where('name', '=', 'c'))).toBeUndefined()
      expect(await database.scan(users)).toEqual([{ name: 'a' }, { name: 'b' }])
    })

    test('cannot change anything', async () => {
      const insert = database.build.insertInto('users').values({ name: 'a', is_service: 0, created_at: '' })
      expect(() => database.all(insert.returning('name'))).toThrow(/readonly/)
      await expect(database.scan(insert.returning('name'))).rejects.toThrow(/readonly/)
      expect(usersOf(database)).toEqual([])
    })

    test('keeps text as it is', async () => {
      const texts = ['', 'ä€😀', 'a\0b', "'; drop table users; --", '\ufeff', 'x'.repeat(100_000)]
      await database.write(unit(texts.map((text) => addUser(database, text))))
      for (const text of texts) {
        expect(database.first(database.build.selectFrom('users').select('name').where('name', '=', text))).toEqual({
          name: text,
        })
      }
    })
  })

  describe('a scan', () => {
    test('keeps neither readers nor writers waiting', async () => {
      const ends: string[] = []
      const scan = database.scan(count(database, 2_000_000)).then((rows) => {
        ends.push('scan')
        return rows
      })
      await database.write(unit([addUser(database, 'a')]))
      expect(usersOf(database)).toEqual(['a'])
      ends.push('write')
      expect(await scan).toEqual([{ n: 2_000_000 }])
      expect(ends).toEqual(['write', 'scan'])
    })

    test('is refused while 32 wait, and accepted again afterwards', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, () => database.scan(count(database, 1000)).then(() => 'answered', codeOf)),
      )
      expect(outcomes.filter((outcome) => outcome === 'answered')).toHaveLength(32)
      expect(outcomes.filter((outcome) => outcome === 'QUEUE_FULL')).toHaveLength(8)
      expect(await database.scan(count(database, 10))).toEqual([{ n: 10 }])
    })

    test('that fails says why and takes no place', async () => {
      const wrong: Compilable = { compile: () => sql`select * from nowhere`.compile(database.build) }
      const unsendable: Compilable = {
        compile: () => ({ ...count(database, 1).compile(), parameters: [() => undefined] }),
      }
      for (let i = 0; i < 40; i++) {
        await expect(database.scan(wrong)).rejects.toThrow('no such table: nowhere')
        await expect(database.scan(unsendable)).rejects.toThrow(/could not be cloned/)
      }
      expect(await database.scan(count(database, 10))).toEqual([{ n: 10 }])
    })
  })

  describe('closing', () => {
    test('stores what waits', async () => {
      const writes = Array.from({ length: 600 }, (_, i) => database.write(unit([addUser(database, `user-${i}`)])))
      await database.close()
      expect(await Promise.all(writes.map(outcomeOf))).toEqual(writes.map(() => 'resolved'))
      database = await open()
      expect(usersOf(database)).toHaveLength(600)
    })

    test('refuses what comes after it, and is done once', async () => {
      const pending = outcomeOf(database.scan(count(database, 300_000)))
      const first = database.close()
      expect(database.close()).toBe(first)
      await first
      expect(codeOf(await pending)).toBe('SHUTTING_DOWN')
      expect(codeOf(await outcomeOf(database.write(unit([addUser(database, 'a')]))))).toBe('SHUTTING_DOWN')
      expect(codeOf(await outcomeOf(database.scan(count(database, 1))))).toBe('SHUTTING_DOWN')
      database = await open()
      expect(usersOf(database)).toEqual([])
    })
  })
})

describe('SQLite: an unclean end', () => {
  test('keeps everything that was promised', async () => {
    const child = startChild('write-and-die', path)
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    const database = await openedSqlite()
    expect(usersOf(database)).toHaveLength(300)
    await database.close()
  })
})

describe('SQLite: one server per file', () => {
  const openElsewhere = (file: string): string => execFileSync(process.execPath, [childFile, 'open', file]).toString()

  test('a second process is refused while the first one runs', async () => {
    const database = await openedSqlite()
    expect(openElsewhere(path)).toContain(`DatabaseInUse: database.path: ${path} is in use`)
    await database.close()
    expect(openElsewhere(path)).toBe('opened')
  })

  test('so it is in the same process, whose first connection goes on working', async () => {
    const database = await openedSqlite()
    await expect(openedSqlite()).rejects.toBeInstanceOf(DatabaseInUse)
    await database.write(unit([addUser(database, 'a')]))
    expect(openElsewhere(path)).toContain('DatabaseInUse')
    await database.close()
  })

  fullOnly(test)('a link to the file is the same file', async () => {
    const database = await openedSqlite()
    mkdirSync(join(folder.path, 'elsewhere'))
    const link = join(folder.path, 'elsewhere', 'link.db')
    symlinkSync(path, link)
    expect(openElsewhere(link)).toContain('DatabaseInUse')
    await database.close()
  })

  test('nobody else on the machine can read it', async () => {
    const database = await openedSqlite()
    await database.write(unit([addUser(database, 'a')]))
    for (const suffix of ['', '-wal', '-shm', '-lock']) expect(statSync(path + suffix).mode & 0o077).toBe(0)
    await database.close()
  })
})

describe('SQLite: a full disk', () => {
  let mount: string
  let mounted = false
  let child: ChildProcess

  beforeAll(() => {
    mount = makeFolder().path
    // Where file systems cannot be mounted, a limit on the size of files is the next best thing to a full one.
    mounted = isPossible(() =>
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'none', mount], { stdio: 'pipe' }),
    )
  })

  afterAll(() => {
    if (mounted) execFileSync('umount', [mount])
    rmSync(mount, { recursive: true })
  })

  function isPossible(act: () => unknown): boolean {
    try {
      act()
      return true
    } catch {
      return false
    }
  }

  function fill(): void {
    const filler = join(mount, 'filler')
    if (!mounted) limitFileSize('700000')
    else
      for (let size = 8_000_000; size > 500; size /= 2)
        isPossible(() => writeFileSync(filler, Buffer.alloc(size), { flag: 'a' }))
  }

  function makeRoom(): void {
    if (mounted) rmSync(join(mount, 'filler'))
    else limitFileSize('unlimited')
  }

  const limitFileSize = (bytes: string): unknown =>
    execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:unlimited`])

  async function write(names: string[]): Promise<WriteReport> {
    const answer = once(child, 'message')
    child.send({ names } satisfies WriteOrder)
    const [report] = (await answer) as [WriteReport] // the child sends nothing else
    return report
  }

  const largeNames = (prefix: string): string[] =>
    Array.from({ length: 100 }, (_, i) => prefix + i + 'x'.repeat(10_000))

  test('refuses the unit, keeps nothing of it, and goes on when there is room', async () => {
    child = startChild('obey', join(mount, 'svc.db'))
    const exited = once(child, 'exit')
    expect(await write(['first'])).toEqual({ outcome: 'stored', count: 1 })
    fill()
    for (let i = 0; i < 3; i++) {
      expect(await write(largeNames('refused-'))).toEqual({
        outcome: mounted ? 'STORAGE_FULL' : 'STORAGE_FAILED',
        count: 1,
      })
    }
    makeRoom()
    expect(await write(['second'])).toEqual({ outcome: 'stored', count: 2 })
    expect(await write(largeNames('stored-'))).toEqual({ outcome: 'stored', count: 102 })
    child.disconnect()
    expect(await exited).toEqual([0, null])
  })
})

describe('SQLite: a damaged file', () => {
  test('refuses the units that touch the damage, and only those', async () => {
    let database = await openedSqlite()
    await database.write(unit([addToken(database, 't1')]))
    await database.close()
    const connection = new Sqlite(path)
    const page = Number(connection.prepare(`select rootpage from sqlite_master where name = 'tokens'`).pluck().get())
    const pageSize = Number(connection.pragma('page_size', { simple: true }))
    connection.close()
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xab, (page - 1) * pageSize, page * pageSize))

    const announced: (number | undefined)[] = []
    database = await openedSqlite((facts) => announced.push(...facts.map(numberOf)))
    const outcomes = await Promise.all(
      [
        unit([addUser(database, 'a')], [fact(1)]),
        unit([addUser(database, 'b'), addToken(database, 't2')], [fact(2)]),
        unit([addToken(database, 't3')], [fact(3)]),
        unit([addUser(database, 'a')], [fact(4)]),
        unit([addUser(database, 'c')], [fact(5)]),
      ].map((one) => outcomeOf(database.write(one))),
    )
    expect(outcomes).toEqual([
      'resolved',
      expect.objectContaining({ code: 'SQLITE_CORRUPT' }),
      expect.objectContaining({ code: 'SQLITE_CORRUPT' }),
      expect.any(Conflict),
      'resolved',
    ])
    expect(announced).toEqual([1, 5])
    expect(usersOf(database)).toEqual(['a', 'c'])
    await database.close()
  })
})

describe('SQLite: files that are not in their place any more', () => {
  const elsewhere = (): string => join(folder.path, 'elsewhere.db')
  const shortageOf = (database: Database): string | undefined => String(database.shortage()?.cause)

  fullOnly(test)(
    'a moved database refuses new work in words, lets what ends be stored, and goes on when it is back',
    async () => {
      const database = await openedSqlite()
      await database.write(unit([addUser(database, 'a')]))
      renameSync(path, elsewhere())
      await waitFor('it to be noticed', () => !database.hasRoom())
      expect(shortageOf(database)).toContain(`${path} was deleted or moved while the server runs. Put it back`)
      expect(codeOf(await outcomeOf(database.write(unit([addUser(database, 'b')]))))).toBe('DATABASE_GONE')
      expect(codeOf(await outcomeOf(database.scan(count(database, 1))))).toBe('DATABASE_GONE')
      const backup = database.backup(join(folder.path, 'copy.db'), new AbortController().signal)
      expect(codeOf(await outcomeOf(backup))).toBe('DATABASE_GONE')
      await database.write({ ...unit([addUser(database, 'c')]), isVital: true })
      expect(usersOf(database)).toEqual(['a', 'c'])
      renameSync(elsewhere(), path)
      await waitFor('it to be back', () => database.hasRoom())
      await database.write(unit([addUser(database, 'd')]))
      await database.close()
      const again = await openedSqlite()
      expect(usersOf(again)).toEqual(['a', 'c', 'd'])
      await again.close()
    },
  )

  test('another file in its place is not it', async () => {
    const database = await openedSqlite()
    await database.write(unit([addUser(database, 'a')]))
    renameSync(path, elsewhere())
    writeFileSync(path, 'another')
    await waitFor('it to be noticed', () => !database.hasRoom())
    expect(shortageOf(database)).toContain('was replaced by another file')
    await database.close()
    expect(readFileSync(path, 'utf8')).toBe('another')
  })

  test.each(['-wal', '-shm'])('without its %s it loses nothing that was stored', async (suffix) => {
    const database = await openedSqlite()
    const names = Array.from({ length: 50 }, (_, i) => `user-${10 + i}`)
    await Promise.all(names.map((name) => database.write(unit([addUser(database, name)]))))
    rmSync(`${path}${suffix}`)
    await waitFor('it to be noticed', () => !database.hasRoom())
    expect(shortageOf(database)).toContain(`svc.db${suffix} was deleted or moved while the server runs. Restart`)
    expect(codeOf(await outcomeOf(database.write(unit([addUser(database, 'late')]))))).toBe('DATABASE_GONE')
    expect(usersOf(database)).toEqual(names)
    await database.close()
    const again = await openedSqlite()
    expect(usersOf(again)).toEqual(names)
    await again.close()
  })
})

describe('SQLite: migrations', () => {
  const applied = (): unknown[] => {
    const connection = new Sqlite(path)
    const names = connection.prepare('select name from kysely_migration order by name').pluck().all()
    connection.close()
    return names
  }

  test('of a new file run once', async () => {
    await (await openedSqlite()).close()
    const names = applied()
    expect(names[0]).toBe('0001-core')
    await (await openedSqlite()).close()
    expect(applied()).toEqual(names)
  })

  test('apply all or nothing, wherever they end', async () => {
    const ended = new Error('ended here')
    /** Migrates the file through a connection that runs so many statements and then no other. */
    const migrateUntil = async (statements: number): Promise<unknown> => {
      const connection = new Sqlite(path)
      let left = statements
      const breaking = {
        get inTransaction() {
          return connection.inTransaction
        },
        exec: connection.exec.bind(connection),
        prepare(text: string) {
          if (left-- === 0) throw ended
          return connection.prepare(text)
        },
      }
      // As much of a connection as a migration uses.
      const outcome = await migrate(breaking as unknown as Sqlite.Database).catch((error: unknown) => error)
      connection.close()
      return outcome
    }
    const tables = (): unknown[] => {
      const connection = new Sqlite(path)
      const names = connection.prepare('select name from sqlite_master').pluck().all()
      connection.close()
      return names
    }
    let statements = 0
    for (; (await migrateUntil(statements)) !== undefined; statements += rounds({ daily: 7, full: 1 }))
      expect(tables()).toEqual([])
    expect(statements).toBeGreaterThan(20)
    expect(tables()).toContain('executions')
    expect(applied()[0]).toBe('0001-core')
  })

  test('unknown here refuse the file, which stays as it is and unlocked', async () => {
    await (await openedSqlite()).close()
    const connection = new Sqlite(path)
    connection.prepare(`insert into kysely_migration values ('9999-later', '2040-01-01')`).run()
    connection.close()
    await expect(openedSqlite()).rejects.toThrow(SchemaTooNew)
    await expect(openedSqlite()).rejects.toThrow('9999-later')
    const again = new Sqlite(path)
    again.prepare(`delete from kysely_migration where name = '9999-later'`).run()
    again.close()
    await (await openedSqlite()).close()
  })

  test.each([
    ['/proc/none', 'it cannot be created there'],
    ['/proc/none/deeper', 'it cannot be created there'],
    ['/dev/null/none', '/dev/null is a file, not a directory'],
  ])('say where they cannot be made: %s', async (place, why) => {
    const unusable = openSqlite({ path: join(place, 'svc.db'), synchronous: 'normal', announce: () => undefined })
    await expect(unusable).rejects.toThrow(`${place}/svc.db cannot be used: ${why}`)
    await expect(unusable).rejects.toThrow(/^database\.path .*system\.base_path/)
  })

  test('do not touch what is no database', async () => {
    const text = 'this is somebody’s letter, not a database '.repeat(100)
    writeFileSync(path, text)
    await expect(openedSqlite()).rejects.toThrow(/not a database/)
    expect(readFileSync(path, 'utf8')).toBe(text)
    rmSync(path)
    await (await openedSqlite()).close()
  })
})

describe('SQLite: maintenance', () => {
  test('the statement cache is bounded and keeps what is used', () => {
    const connection = new Sqlite(':memory:')
    const prepared: string[] = []
    const statement = createStatementCache({
      prepare: (text: string) => {
        prepared.push(text)
        return connection.prepare(text)
      },
    })
    const hot = 'select 0'
    statement(hot)
    for (let i = 1; i <= 1200; i++) {
      statement(`select ${i}`)
      expect(statement(hot).pluck().get()).toBe(0)
    }
    expect(prepared).toHaveLength(1201)
    statement('select 1200')
    expect(prepared).toHaveLength(1201)
    statement('select 1')
    expect(prepared).toHaveLength(1202)
    connection.close()
  })

  test('closing leaves one file, with everything in it', async () => {
    const database = await openedSqlite()
    await database.write(unit([addUser(database, 'found-in-the-file')]))
    await database.close()
    expect(existsSync(`${path}-wal`)).toBe(false)
    expect(readFileSync(path, 'latin1')).toContain('found-in-the-file')
  })

  fullOnly(test)('an idle writer copies its log into the database', async () => {
    const database = await openedSqlite()
    await database.write(unit([addUser(database, 'found-in-the-file')]))
    const isCopied = () => readFileSync(path, 'latin1').includes('found-in-the-file')
    expect(await waitFor('the log to be copied', isCopied)).toBe(true)
    await database.close()
  })
})

describe('SQLite: the counts of executions', () => {
  const keys = ['action_ref', 'status', 'user', 'runner', 'child', 'rule', 'trigger', 'trigger_type'] as const

  test('equal a recount after any inserts, updates and deletes', async () => {
    const database = await openedSqlite()
    const { build } = database
    const any = <T>(...values: T[]): T => values[Math.floor(Math.random() * values.length)] as T // never empty
    const ids: string[] = []

    const columns = () => ({
      status: any('requested', 'running', 'succeeded'),
      action_ref: any('core.local', 'core.noop'),
      user: any('a', 'b'),
      runner: any('local-shell-cmd', 'noop'),
      parent: any(null, 'p1', 'p2'),
      rule: any(null, 'r'),
      trigger: any(null, 't', ''),
      trigger_type: any(null, 'tt'),
    })
    const insert = (): Step => {
      const id = `execution-${ids.length}`
      ids.push(id)
      const row: ExecutionTable = {
        id,
        liveaction_id: `live-${id}`,
        revision: 1,
        action_hash: '',
        runner_hash: '',
        trace_id: '',
        trigger_instance: null,
        origin_hash: null,
        sealed_parameters: null,
        start_timestamp: '',
        end_timestamp: null,
        elapsed_seconds: null,
        delay: null,
        due_timestamp: null,
        result_size: null,
        parameters: '{}',
        context: '{}',
        log: '[]',
        liveaction: '{}',
        ...columns(),
      }
      return { query: build.insertInto('executions').values(row) }
    }
    const update = (): Step => {
      const { status, ...others } = columns()
      const changed = any<Partial<ExecutionTable>>({ status }, { status, ...others }, others, { revision: 2 })
      return {
        query: build
          .updateTable('executions')
          .set(changed)
          .where('id', '=', any(...ids)),
      }
    }
    const updateMany = (): Step => ({
      query: build
        .updateTable('executions')
        .set({ status: any('failed', 'running') })
        .where('user', '=', any('a', 'b')),
    })
    const remove = (): Step => ({ query: build.deleteFrom('executions').where('id', '=', any(...ids)) })
    const conflicting = (): Step => ({
      query: build
        .updateTable('executions')
        .set({ status: 'lost' })
        .where('id', '=', any(...ids)),
      expect: 7,
    })

    await database.write(unit(Array.from({ length: 50 }, insert)))
    for (let round = 0; round < rounds({ daily: 6, full: 20 }); round++) {
      await Promise.all(
        Array.from({ length: 50 }, () =>
          outcomeOf(
            database.write(unit([any(insert, update, update, remove)(), any(update, updateMany, conflicting)()])),
          ),
        ),
      )
      const kept = database.all(build.selectFrom('execution_counts').selectAll().orderBy(keys[0]))
      const recount = database.all({
        compile: () =>
          sql<(typeof kept)[number]>`select action_ref, status, user, runner, parent is not null as child,
            ifnull(rule, '') as rule, ifnull(trigger, '') as trigger, ifnull(trigger_type, '') as trigger_type,
            count(*) as count from executions group by 1, 2, 3, 4, 5, 6, 7, 8`.compile(build),
      })
      const lines = (rows: typeof kept): string[] =>
        rows.map((row) => [...keys.map((key) => row[key]), row.count].join('|')).toSorted()
      expect(lines(kept)).toEqual(lines(recount))
    }
    expect(database.all(build.selectFrom('executions').select('id')).length).toBeGreaterThan(0)
    await database.close()
  })
})
