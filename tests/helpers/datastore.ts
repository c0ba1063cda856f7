/** The datastore over a real database file and real HTTP, with users whose rights the test chooses. */
import { join } from 'node:path'
import type { Database } from '../../src/db/database.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { loadEncryption, type Encryption } from '../../src/core/encryption.ts'
import { openAccess } from '../../src/http/authenticate.ts'
import type { Rights } from '../../src/http/route.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { createDatastore, type Datastore } from '../../src/modules/datastore/index.ts'
import { createGrantSet, type Grant } from '../../src/modules/rbac/resolve.ts'
import { createRights } from '../../src/modules/rbac/rights.ts'
import { makeFolder } from './folders.ts'
import { startHttp } from './http.ts'
import { call, type Answer } from './server.ts'
import { TextSink } from './text-sink.ts'
import type { Scope } from '../../src/core/permissions.ts'

export interface TestUser {
  role?: 'admin' | 'observer'
  grants?: readonly Grant[]
  /** Of the API key that the user comes with. */
  scopes?: readonly Scope[]
}

export interface ErrorBody {
  faultstring: string
  code: string
}

export interface TestDatastore {
  datastore: Datastore
  database: Database
  encryption: Encryption
  folder: string
  /** Triggers that were to be told, in their order. */
  events: { ref: string; payload: Record<string, unknown> }[]
  /** @param as name of the user */
  call<T = Record<string, unknown>>(
    as: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Answer<T & ErrorBody>>
  put(name: string, value: string, more?: Record<string, unknown>, as?: string): Promise<void>
  /** Makes items expire that have a time to live. */
  expire(): Promise<void>
  log(): string
  rightsOf(user: string, scopes?: readonly Scope[]): Rights
  stop(): Promise<void>
}

export interface DatastoreOptions {
  /** By name; others have no rights. */
  users?: Readonly<Record<string, TestUser>>
  /** Default true. */
  accessControl?: boolean
  /** `keyvalue.encryption_key_path`; default: the server's own. */
  keyPath?: string
  maxPageSize?: number
  /** Puts itself between the module and the database. */
  around?: (database: Database, path: string) => Database
}

export async function startDatastore(options: DatastoreOptions = {}): Promise<TestDatastore> {
  const { users = {}, accessControl = true, around = (real) => real } = options
  const folder = makeFolder()
  const path = join(folder.path, 'svc.db')
  const database = await openSqlite({ path, synchronous: 'normal', announce: () => undefined })
  const encryption = await loadEncryption({
    enabled: true,
    keyPath: options.keyPath ?? '',
    ownKeyPath: join(folder.path, 'keys', 'secrets.json'),
  })
  const sink = new TextSink()
  const events: TestDatastore['events'] = []
  const grants = new Map(Object.entries(users).map(([name, user]) => [name, createGrantSet(user.grants ?? [])]))
  const none = createGrantSet([])
  const rightsOptions = {
    enabled: accessControl,
    isolation: false,
    ofUser: (name: string) => ({
      isAdmin: users[name]?.role === 'admin',
      isObserver: users[name]?.role === 'observer',
      grants: grants.get(name) ?? none,
    }),
  }
  const rightsOf = (user: string, scopes?: readonly Scope[]): Rights =>
    createRights({ user, isAdmin: false, method: 'token', ...(scopes === undefined ? {} : { scopes }) }, rightsOptions)
  const datastore = createDatastore({
    database: around(database, path),
    log: createLog({ level: 'DEBUG', format: 'text', stream: sink }),
    encryption,
    rightsOf,
    planEvent(ref, payload) {
      events.push({ ref, payload })
      return undefined
    },
    settings: { accessControl, maxPageSize: options.maxPageSize ?? 100 },
  })
  const http = await startHttp(datastore.routes ?? [], {
    maxBodyBytes: 4_000_000,
    access: {
      ...openAccess(''),
      authenticate(request) {
        const user = request.get('x-user') ?? ''
        const scopes = users[user]?.scopes
        const isAdmin = scopes === undefined && (!accessControl || users[user]?.role === 'admin')
        return { user, isAdmin, method: 'api_key', ...(scopes === undefined ? {} : { scopes }) }
      },
      rightsOf: ({ user, scopes }) => rightsOf(user, scopes),
    },
  })
  const test: TestDatastore = {
    datastore,
    database,
    encryption,
    folder: folder.path,
    events,
    call: (as, method, url, body) => call(`${http.urls.api}${url}`, method, body, { 'x-user': as }),
    async put(name, value, more = {}, as = 'root') {
      const answer = await test.call(as, 'PUT', `/v1/keys/${encodeURIComponent(name)}`, { name, value, ...more })
      if (answer.status !== 200) throw new Error(`${name} cannot be set (${answer.status}): ${answer.text}`)
    },
    async expire() {
      const query = database.build
        .updateTable('key_value_pairs')
        .set({ expire_timestamp: '2001-01-01T00:00:00.000000Z' })
        .where('expire_timestamp', 'is not', null)
      await database.write({ steps: [{ query }], facts: [] })
    },
    log: () => sink.text,
    rightsOf,
    async stop() {
      await http.close()
      await database.close()
      folder.remove()
    },
  }
  return test
}
