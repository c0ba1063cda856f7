import { afterAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../../tests/helpers/database.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { createCompanions, type Companions } from './companions.ts'
import { Conflict, type Database, type Unit } from './database.ts'

const folder = makeFolder()
const { database: opened } = await openDatabase(folder.path)
let companions: Companions
let database: Database
let given: (string | undefined)[]

beforeEach(() => {
  companions = createCompanions(opened)
  database = companions.database
  given = []
})
afterAll(async () => {
  await opened.close()
  folder.remove()
})

const user = (name: string, more: Partial<Unit> = {}): Unit => {
  const values = { name, is_service: 0, created_at: '', nicknames: '{}', is_disabled: 0 }
  return { steps: [{ query: opened.build.insertInto('users').values(values) }], facts: [], ...more }
}
const names = (): string[] =>
  opened.all(opened.build.selectFrom('users').select('name').orderBy('name')).map(({ name }) => name)
const plan =
  (name: string) =>
  (subject: string | undefined): Unit => {
    given.push(subject)
    return user(name)
  }

test('the first unit of the work carries the companion, and no other', async () => {
  const { result, hasCommitted } = companions.accompany(plan('companion1'), async () => {
    const results = await database.write(user('first1', { subject: 'id' }))
    await database.write(user('second1'))
    return results.length
  })
  expect(hasCommitted()).toBe(false)
  expect(await result).toBe(1)
  expect([hasCommitted(), given]).toEqual([true, ['id']])
  expect(names()).toEqual(['companion1', 'first1', 'second1'])
  await database.write(user('outside1'))
  expect(given).toHaveLength(1)
})

test('a unit that loses takes the companion back, and its repetition carries it', async () => {
  const { result, hasCommitted } = companions.accompany(plan('companion2'), async () => {
    await expect(database.write(user('first1'))).rejects.toBeInstanceOf(Conflict)
    expect([hasCommitted(), names().includes('companion2')]).toEqual([false, false])
    await database.write(user('first2'))
  })
  await result
  expect([hasCommitted(), names().includes('companion2')]).toEqual([true, true])
})

test('of units that are written at once, one carries it; a companion that loses undoes the unit', async () => {
  const together = companions.accompany(plan('companion3'), () =>
    Promise.all([database.write(user('a3')), database.write(user('b3'))]),
  )
  await together.result
  expect(names().filter((name) => name.endsWith('3'))).toEqual(['a3', 'b3', 'companion3'])
  const lost = companions.accompany(plan('companion3'), () => database.write(user('a4')))
  await expect(lost.result).rejects.toBeInstanceOf(Conflict)
  expect([lost.hasCommitted(), names().includes('a4')]).toEqual([false, false])
})

test('work that commits nothing leaves nothing, and what it began in the background carries nothing', async () => {
  let late: Promise<unknown> | undefined
  let go = (): void => undefined
  const waits = new Promise<void>((resolve) => (go = resolve))
  const { result, hasCommitted } = companions.accompany(plan('companion5'), async () => {
    late = waits.then(() => database.write(user('late5')))
    await Promise.resolve()
  })
  await result
  go()
  await late
  expect([hasCommitted(), names().filter((name) => name.endsWith('5'))]).toEqual([false, ['late5']])
})

test('two pieces of work at once each have their own', async () => {
  const work = (n: string) =>
    companions.accompany(plan(`companion${n}`), async () => {
      await Promise.resolve()
      await database.write(user(`work${n}`, { subject: n }))
    })
  await Promise.all([work('6').result, work('7').result])
  expect(given.toSorted((a = '', b = '') => a.localeCompare(b))).toEqual(['6', '7'])
})
