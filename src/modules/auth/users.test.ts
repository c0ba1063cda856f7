import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { createMemoryBus } from '../../bus/memory.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { createLog, type RootLog } from '../../lib/log/log.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { createApiKeys } from './api-keys/index.ts'
import { createLogins } from './logins.ts'
import { createAuthStore } from './store.ts'
import { createUsers } from './users.ts'

const folder = makeFolder()
let log: RootLog
let database: Database

beforeAll(async () => {
  log = createLog({ level: 'INFO', format: 'text', stream: new TextSink() })
  database = await openSqlite({
    path: join(folder.path, 'svc.db'),
    synchronous: 'normal',
    announce: () => undefined,
  })
})

afterAll(async () => {
  await database.close()
  await log.close()
  folder.remove()
})

test('what a user was just allowed to store goes with the user', async () => {
  const store = createAuthStore(database)
  const token = { id: 'a'.repeat(24), user: 'alice', expiry: formatMicros(nowMicros()), service: 0, metadata: '{}' }
  const admitted = { steps: [store.insertUser('alice', token.expiry), store.insertToken(token)], facts: [] }
  let late: Promise<unknown> | undefined
  const users = createUsers({
    // Whoever was admitted while the deletion waits for its commit writes behind it.
    database: {
      ...database,
      write(unit) {
        const written = database.write(unit)
        late ??= database.write(admitted)
        return written
      },
    },
    store,
    apiKeys: createApiKeys({
      database,
      bus: createMemoryBus(() => undefined),
      log,
      users: store,
      maxPageSize: 100,
      maskSecrets: true,
      now: nowMicros,
    }),
    planDeletion: () => ({ steps: [], facts: [] }),
    logins: createLogins(),
    log,
    accounts: undefined,
    checkPassword: undefined,
    backendName: 'proxy',
    forgetGroups: () => Promise.resolve(),
    now: nowMicros,
  })
  await database.write({ steps: [store.insertUser('alice', token.expiry)], facts: [] })
  await users.delete('alice', {
    principal: { user: 'root', isAdmin: true, method: 'token' },
    requestId: 'r1',
    remoteAddress: '192.0.2.1',
  })
  await late
  expect(late).toBeDefined()
  expect(store.findToken(token.id)).toBeUndefined()
  expect(store.findUser('alice')).toBeUndefined()
})
