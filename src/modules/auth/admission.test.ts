import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { createLog, type RootLog } from '../../lib/log/log.ts'
import { createLoginAdmission, type AdmitLogin } from './admission.ts'
import { createAuthStore, type AuthStore } from './store.ts'

const folder = makeFolder()
const logged = new TextSink()
let log: RootLog
let database: Database
let store: AuthStore
/** What was handed on to become roles. */
let synced: [user: string, groups: readonly string[]][]

beforeAll(async () => {
  log = createLog({ level: 'INFO', format: 'text', stream: logged })
  database = await openSqlite({
    path: join(folder.path, 'svc.db'),
    synchronous: 'normal',
    announce: () => undefined,
  })
  store = createAuthStore(database)
  const user = { is_service: 0, created_at: '', nicknames: '{}' }
  await database.write({
    steps: [
      store.insertNewUser({ ...user, name: 'alice', is_disabled: 0 }),
      store.insertNewUser({ ...user, name: 'gone', is_disabled: 1 }),
    ],
    facts: [],
  })
})

afterAll(async () => {
  await database.close()
  await log.close()
  folder.remove()
})

beforeEach(() => {
  synced = []
  logged.text = ''
})

function createAdmit(groupsOf: ((user: string) => Promise<string[]>) | undefined): AdmitLogin {
  const syncGroups = (user: string, groups: readonly string[]): Promise<void> => {
    synced.push([user, groups])
    return Promise.resolve()
  }
  return createLoginAdmission({ store, log, rbac: { syncGroups }, groupsOf })
}

const about = { remote_address: '192.0.2.1' }

test('whoever is known, or new, is let in with all groups', async () => {
  const admit = createAdmit((user) => Promise.resolve([`group of ${user}`, 'staff']))
  for (const user of ['alice', 'newcomer']) await admit(user, about)
  expect(synced).toEqual([
    ['alice', ['group of alice', 'staff']],
    ['newcomer', ['group of newcomer', 'staff']],
  ])
})

test('who is disabled is refused before the groups are asked for', async () => {
  let asked = 0
  const admit = createAdmit(() => {
    asked += 1
    return Promise.resolve([])
  })
  await expect(admit('gone', about)).rejects.toMatchObject({ code: 'LOGIN_REFUSED' })
  expect(asked).toBe(0)
  expect(logged.text).toMatch(/AUDIT .*disabled/)
  expect(logged.text).toContain('192.0.2.1')
})

test('groups that cannot be read keep nobody out', async () => {
  await createAdmit(() => Promise.reject(new Error('directory is down')))('alice', about)
  expect(synced).toEqual([])
  expect(logged.text).toMatch(/ERROR .*roles of the last login/)
  expect(logged.text).toContain('directory is down')
})

test('where groups bring no roles nobody asks for them', async () => {
  await createAdmit(undefined)('alice', about)
  expect(synced).toEqual([])
})
