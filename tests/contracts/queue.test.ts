/** What every implementation of the work queue port must do; the rows are those of a real database. */
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { createRowQueue, type RowQueue } from '../../src/queue/row-queue.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { waitFor } from '../helpers/wait.ts'

/** The owed work of these tests: users; the name is the id. */
interface Item {
  name: string
}

const item = (n: number): Item => ({ name: String(n).padStart(6, '0') })
const items = (from: number, to: number): Item[] => Array.from({ length: to - from + 1 }, (_, i) => item(from + i))

let folder: TemporaryFolder
let database: Database
let queue: RowQueue<Item>
let loads: number
let problem: Error | undefined

beforeEach(async () => {
  folder = makeFolder()
  database = await openSqlite({ path: join(folder.path, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  loads = 0
  problem = undefined
  queue = openRowQueue()
})

afterEach(async () => {
  queue.stop()
  await database.close()
  folder.remove()
})

function openRowQueue(): RowQueue<Item> {
  const owed = () => database.build.selectFrom('users').select('name')
  return createRowQueue<Item>({
    idOf: ({ name }) => name,
    load(afterId, limit) {
      loads += 1
      if (problem !== undefined) throw problem
      return database.all(owed().where('name', '>', afterId).orderBy('name').limit(limit))
    },
    depth: () => database.all(owed()).length,
  })
}

async function owe(...owed: Item[]): Promise<void> {
  const steps = owed.map(({ name }) => ({
    query: database.build.insertInto('users').values({ name, is_service: 0, created_at: '' }),
  }))
  await database.write({ steps, facts: [] })
}

async function settle(...settled: Item[]): Promise<void> {
  for (let i = 0; i < settled.length; i += 100) {
    const names = settled.slice(i, i + 100).map(({ name }) => name)
    const query = database.build.deleteFrom('users').where('name', 'in', names)
    await database.write({ steps: [{ query, expect: names.length }], facts: [] })
  }
  for (const one of settled) queue.done(one)
}

describe('row queue', () => {
  test('offers what is in the rows, oldest first, each item once', async () => {
    await owe(item(3), item(1), item(2))
    expect(queue.take(2)).toEqual(items(1, 2))
    expect(queue.take(2)).toEqual([item(3)])
    expect(queue.take(2)).toEqual([])
    queue.wake()
    expect(queue.take(2)).toEqual([])
    expect(queue.depth()).toBe(3)
  })

  test('takes nothing for nobody', async () => {
    await owe(item(1))
    expect(queue.take(0)).toEqual([])
    expect(queue.take(-1)).toEqual([])
    expect(queue.take(1)).toEqual([item(1)])
  })

  test('offers everything of a long row, whatever is taken at a time, without item twice or overtaken', async () => {
    const all = items(1, 1500)
    await owe(...all)
    const taken: Item[] = []
    for (const limit of [1, 7, 199, 200, 201, 450, 3, 1000]) {
      const some = queue.take(limit)
      expect(some).toHaveLength(Math.min(limit, all.length - taken.length))
      // Some are settled at once, some stay with their takers.
      await settle(...some.slice(0, Math.floor(some.length / 2)))
      taken.push(...some)
    }
    expect(taken).toEqual(all)
  })

  test('reads the rows in pieces, and not at all while it holds enough', async () => {
    await owe(...items(1, 1000))
    for (let i = 1; i <= 200; i++) expect(queue.take(1)).toEqual([item(i)])
    expect(loads).toBe(1)
    await settle(...items(1, 200))
    expect(queue.take(1)).toEqual([item(201)])
    expect(loads).toBe(2)
  })

  test('offers an item again when it is done and still owed, after a wake-up', async () => {
    await owe(item(1))
    const [one = item(0)] = queue.take(1)
    queue.done(one)
    expect(queue.take(1)).toEqual([])
    queue.wake()
    expect(queue.take(1)).toEqual([item(1)])
    await settle(item(1))
    queue.wake()
    expect(queue.take(1)).toEqual([])
  })

  test('does not read the rows for new items that are offered to it', async () => {
    expect(queue.take(1)).toEqual([])
    expect(loads).toBe(1)
    for (const one of items(1, 100)) {
      await owe(one)
      queue.offer(one)
      expect(queue.take(5)).toEqual([one])
      await settle(one)
    }
    expect(loads).toBe(1)
  })

  test('hears of one item twice and offers it once', async () => {
    queue.take(1)
    await owe(item(1))
    queue.offer(item(1))
    queue.offer(item(1))
    expect(queue.take(5)).toEqual([item(1)])
    queue.offer(item(1))
    expect(queue.take(5)).toEqual([])
  })

  test('lets no new item overtake those that are still in the rows only', async () => {
    await owe(...items(1, 300))
    expect(queue.take(1)).toEqual([item(1)])
    // The queue holds the next 199 now; 201 to 300 it has not read.
    await owe(item(301))
    queue.offer(item(301))
    const rest = queue.take(1000)
    expect(rest).toEqual(items(2, 301))
  })

  test('holds a bounded number of offers and finds the rest in the rows', async () => {
    queue.take(1)
    await owe(...items(1, 1000))
    for (const one of items(1, 1000)) queue.offer(one)
    expect(loads).toBe(1)
    const taken: Item[] = []
    for (let some = queue.take(50); some.length > 0; some = queue.take(50)) taken.push(...some)
    expect(taken).toEqual(items(1, 1000))
    expect(loads).toBeGreaterThan(4)
  })

  test('tells every listener of an offer and of a wake-up until it leaves', async () => {
    const woken: string[] = []
    const leave = queue.onWake(() => woken.push('a'))
    queue.onWake(() => woken.push('b'))
    queue.offer(item(1))
    expect(woken).toEqual(['a', 'b'])
    queue.wake()
    expect(woken).toEqual(['a', 'b', 'a', 'b'])
    leave()
    queue.wake()
    expect(woken).toEqual(['a', 'b', 'a', 'b', 'b'])
    queue.stop()
    queue.wake()
    expect(woken).toHaveLength(5)
  })

  test('a listener can take within its wake-up', async () => {
    const taken: Item[] = []
    queue.onWake(() => taken.push(...queue.take(10)))
    await owe(item(1), item(2))
    queue.offer(item(2))
    expect(taken).toEqual(items(1, 2))
  })

  test('finds by polling what nobody told it of', async () => {
    expect(queue.take(1)).toEqual([])
    const taken: Item[] = []
    queue.onWake(() => taken.push(...queue.take(10)))
    queue.startPolling(0.02)
    await owe(item(1))
    expect(await waitFor('the item', () => taken[0])).toEqual(item(1))
    queue.stop()
  })

  test('forgets nothing when the rows cannot be read', async () => {
    await owe(...items(1, 250))
    problem = new Error('the disk does not answer')
    expect(() => queue.take(1)).toThrow(problem)
    problem = undefined
    expect(queue.take(1)).toEqual([item(1)])
    problem = new Error('again')
    expect(() => queue.take(240)).toThrow(problem)
    problem = undefined
    expect(queue.take(1000)).toEqual(items(2, 250))
  })
})
