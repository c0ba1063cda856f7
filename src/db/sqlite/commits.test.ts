import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { createCommits, type Answer, type Commits, type PlainStep, type PlainUnit } from './commits.ts'

let folder: TemporaryFolder
let connection: Sqlite.Database
let commits: Commits
let msPerReading = 0

beforeEach(() => {
  folder = makeFolder()
  connection = new Sqlite(join(folder.path, 'some.db'))
  connection.pragma('synchronous = off')
  connection.exec('create table t (id integer primary key, v text unique)')
  let ms = 0
  msPerReading = 0
  // Moves only when it is read.
  commits = createCommits(connection, { monotonic: () => (ms += msPerReading) })
})

afterEach(() => {
  connection.close()
  folder.remove()
})

const addStep = (v: string): PlainStep => ['insert into t (v) values (?)', [v]]
const add = (v: string): PlainUnit => ({ steps: [addStep(v)] })
const stored = (): unknown[] => connection.prepare('select v from t order by id').pluck().all()

function commitAll(): Answer[] {
  const answers: Answer[] = []
  for (let left = 10_000; commits.waitingCount > 0 && left > 0; left--) {
    const answer = commits.commitNext()
    if (answer !== undefined) answers.push(answer)
  }
  return answers
}

describe('a commit', () => {
  test.each([
    ['256 units', 0, [256, 256, 88]],
    ['the units of 8 ms', 3, Array.from({ length: 200 }, () => 3)],
    ['one unit that takes longer', 20, Array.from({ length: 600 }, () => 1)],
  ])('holds at most %s, in the order in which they came', (_, ms, sizes) => {
    msPerReading = ms
    commits.add(Array.from({ length: 400 }, (__, n) => add(`${n}`)))
    commits.add(Array.from({ length: 200 }, (__, n) => add(`${400 + n}`)))
    expect(commitAll().map(({ outcomes }) => outcomes.length)).toEqual(sizes)
    expect(stored()).toEqual(Array.from({ length: 600 }, (__, n) => `${n}`))
  })

  test('without units is none', () => {
    expect(commits.commitNext()).toBeUndefined()
    expect(connection.inTransaction).toBe(false)
  })

  test('keeps what is not refused', () => {
    commits.add([
      add('a'),
      { steps: [addStep('b'), addStep('a')] },
      { steps: [addStep('c'), ['update t set v = v', [], 7]] },
      add('d'),
    ])
    expect(commitAll()).toEqual([
      {
        isCommitted: true,
        isSynced: false,
        outcomes: [
          [1],
          expect.objectContaining({ code: 'SQLITE_CONSTRAINT_UNIQUE' }),
          expect.objectContaining({ name: 'UnexpectedRows' }),
          [1],
        ],
      },
    ])
    expect(stored()).toEqual(['a', 'd'])
  })
})

describe('a disk that takes nothing', () => {
  test('refuses the whole commit, and the next one begins anew', () => {
    connection.pragma('max_page_count = 12')
    const large = 'x'.repeat(20_000)
    commits.add([add('a'), add(large + 1), add(large + 2), add(large + 3)])
    const [answer] = commitAll()
    expect(answer).toMatchObject({ isCommitted: false, outcomes: [1, 2, 3, 4].map(() => ({ code: 'SQLITE_FULL' })) })
    expect(stored()).toEqual([])
    connection.pragma('max_page_count = 1000')
    commits.add([add('b')])
    expect(commitAll()).toEqual([{ isCommitted: true, isSynced: false, outcomes: [[1]] }])
    expect(stored()).toEqual(['b'])
  })
})

describe('the wait for the disk', () => {
  const unpromised = (v: string): PlainUnit => ({ ...add(v), isUnpromised: true })
  const synced = (): boolean[] => commitAll().map(({ isSynced }) => isSynced)

  function begin(synchronous: 'normal' | 'full'): void {
    connection.pragma('journal_mode = wal')
    connection.pragma(`synchronous = ${synchronous}`)
    commits = createCommits(connection, { monotonic: () => 0 })
  }

  test('is for commits with something promised in them', () => {
    begin('full')
    const levels = [[unpromised('a')], [add('b')], [unpromised('c'), add('d'), unpromised('e')], [unpromised('f')]].map(
      (units) => {
        commits.add(units)
        return [synced(), connection.pragma('synchronous', { simple: true })]
      },
    )
    // 2: full, 1: normal.
    expect(levels).toEqual([
      [[false], 1],
      [[true], 2],
      [[true], 2],
      [[false], 1],
    ])
    expect(stored()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  test('is back after an unpromised commit that failed', () => {
    begin('full')
    connection.pragma('max_page_count = 5')
    commits.add([unpromised('x'.repeat(50_000))])
    expect(commitAll()).toMatchObject([{ isCommitted: false }])
    connection.pragma('max_page_count = 1000')
    commits.add([add('a')])
    expect(synced()).toEqual([true])
    commits.beginUnpromised()
    connection.exec('commit')
    commits.add([add('b')])
    expect(synced()).toEqual([true])
  })

  test('is for none where the configuration says so', () => {
    begin('normal')
    commits.add([add('a')])
    expect(synced()).toEqual([false])
    expect(connection.pragma('synchronous', { simple: true })).toBe(1)
  })
})
