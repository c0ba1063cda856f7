import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../tests/helpers/folders.ts'
import { fullOnly, rounds } from '../tests/helpers/tiers.ts'
import { waitFor } from '../tests/helpers/wait.ts'
import { TextSink } from '../tests/helpers/text-sink.ts'
import { startApp, type App } from './app.ts'
import { loadConfig } from './config/load.ts'
import { createLog } from './lib/log/log.ts'

let folder: TemporaryFolder
let app: App | undefined

beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  app?.hurry()
  await app?.stop()
  app = undefined
  folder.remove()
})

async function start(flags: Record<string, string> = {}): Promise<App> {
  const ports = { 'auth.port': '0', 'api.port': '0', 'stream.port': '0' }
  const { config } = loadConfig({
    files: [],
    env: {},
    flags: { 'system.base_path': folder.path, 'actionrunner.shutdown_grace_seconds': '0', ...ports, ...flags },
    cwd: folder.path,
  })
  app = undefined
  app = await startApp(config, createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() }))
  return app
}

async function post(cmd: string): Promise<string> {
  const response = await fetch(`${app?.urls.api}/v1/executions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ action: 'core.local', parameters: { cmd } }),
  })
  const { id } = (await response.json()) as { id: string } // the test fails if it is none
  return id
}

function inDatabase<T>(use: (database: Sqlite.Database) => T): T {
  const database = new Sqlite(join(folder.path, 'svc.db'))
  try {
    return use(database)
  } finally {
    database.close()
  }
}

function statusOf(id: string): unknown {
  return inDatabase((database) => database.prepare('select status from executions where id = ?').pluck().get(id))
}

/** What a server leaves that was stopped while an execution waited for a slot. */
async function leaveRequested(cmd: string): Promise<string> {
  const server = await start({ 'actionrunner.actions_pool_size': '1' })
  const blocking = await post('exec sleep 1000')
  const id = await post(cmd)
  await waitFor('the first to run', () => statusOf(blocking) === 'running')
  await server.stop()
  return id
}

it('runs nothing when one of its ports is taken', async () => {
  const id = await leaveRequested('true')
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo // a TCP server has one
  try {
    await expect(start({ 'stream.port': String(port) })).rejects.toThrow(/stream\.port: .*the port is in use/)
    expect(statusOf(id)).toBe('requested')
  } finally {
    await new Promise((resolve) => other.close(resolve))
  }
  await start()
  await waitFor('it to run after all', () => statusOf(id) === 'succeeded')
})

it('tells actions that waited for its start the address of its API', async () => {
  const id = await leaveRequested('echo "$SVC_ACTION_API_URL"')
  const { urls } = await start()
  await waitFor('it to run', () => statusOf(id) === 'succeeded')
  expect(await (await fetch(`${urls.api}/v1/executions/${id}/output`)).text()).toBe(`${urls.api}/v1\n`)
})

fullOnly(it)('answers lists of everything, however much that is', { timeout: 240_000 }, async () => {
  const server = await start()
  const parent = await post('true')
  await waitFor('it to end', () => statusOf(parent) === 'succeeded')
  // More than a statement takes values in the full run, more descendants than are listed in both.
  const count = rounds({ daily: 10_001, full: 33_000 })
  inDatabase((database) => {
    const row = database.prepare('select * from executions').get() as Record<string, unknown> // the one there is
    const columns = Object.keys(row)
    const insert = database.prepare(
      `insert into executions (${columns.join()}) values (${columns.map((name) => `@${name}`).join()})`,
    )
    database.transaction(() => {
      for (let n = 1; n <= count; n++) {
        const id = n.toString(16).padStart(24, '0')
        insert.run({ ...row, id, liveaction_id: `${n}`, parent })
      }
    })()
  })
  const get = async (path: string): Promise<unknown> => (await fetch(`${server.urls.api}/v1/executions${path}`)).json()
  expect(await get('?limit=-1&include_attributes=id')).toHaveLength(count + 1)
  // Descendants are bounded.
  expect(await get(`/${parent}/children?include_attributes=id`)).toHaveLength(10_000)
  expect(await get(`/${parent}`)).toMatchObject({ children: { length: count } })
})
