/** What sensors leave behind when they go, and requests that wait when the server stops. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import type { TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { register, waitForOutput, waitForState, writePack } from './support.ts'

let folder: TemporaryFolder
let server: TestApp | undefined

beforeEach(() => {
  folder = makeFolder()
  const yaml = (name: string): string =>
    `sensor_type: process\nclass_name: ${name}\nentry_point: run.sh\ntrigger_types: [{ name: seen }]\n`
  writePack(folder.path, 'left', {
    'sensors/run.sh': `#!/bin/sh\necho '{"trigger": "left.seen", "id": "one"}'\necho words >&2\nread -r start\nread -r stored\necho "$stored" >&2\nexec sleep 1000\n`,
    'sensors/one.yaml': yaml('One'),
    'sensors/two.yaml': yaml('Two'),
  })
})

afterEach(async () => {
  await server?.stop()
  server = undefined
  folder.remove()
})

function inDatabase<T>(work: (database: Sqlite.Database) => T): T {
  const database = new Sqlite(join(folder.path, 'svc.db'))
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/** Names of the sensors that have rows, by table. */
const withRows = (): unknown[] =>
  inDatabase((database) =>
    ['sensor_dispatches', 'sensor_output'].map((table) =>
      database.prepare(`select distinct sensor_id from ${table} order by sensor_id`).pluck().all(),
    ),
  )

const idsOf = (): Record<string, string> =>
  inDatabase((database) => {
    const rows = database.prepare('select class_name, id from sensor_types').all() as {
      class_name: string
      id: string
    }[]
    return Object.fromEntries(rows.map(({ class_name: name, id }) => [name, id]))
  })

/** Both sensors have run, and the server has stopped. @returns their ids */
async function leaveRows(): Promise<{ one: string; two: string }> {
  server = await createTestApp({ basePath: folder.path })
  await register(server, 'left')
  for (const name of ['One', 'Two']) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await waitForOutput(server, `left.${name}`, '"stored"')
  }
  await server.stop()
  const { One: one = '', Two: two = '' } = idsOf()
  expect(withRows()).toEqual([[one, two].sort(), [one, two].sort()])
  return { one, two }
}

const startWithoutSensors = async (): Promise<TestApp> => {
  server = await createTestApp({ basePath: folder.path, settings: { 'sensorcontainer.enable': 'False' } })
  return server
}

/** The sensors with rows, when those that are gone have none. */
async function rowsWithout(...gone: string[]): Promise<unknown[]> {
  await waitFor('the rows to go', () => gone.every((id) => !JSON.stringify(withRows()).includes(id)))
  return withRows()
}

it('a start removes what is left of a sensor that is gone, also while sensors are off', async () => {
  const { one, two } = await leaveRows()
  // As a crash between the two writes does.
  inDatabase((database) => database.prepare('delete from sensor_types where id = ?').run(one))
  await startWithoutSensors()
  expect(await rowsWithout(one)).toEqual([[two], [two]])
})

fullOnly(it)('while sensors are off, the rows of a sensor go with it', async () => {
  const { one, two } = await leaveRows()
  const app = await startWithoutSensors()
  await app.call('POST', '/v1/packs/uninstall', { packs: ['left'] })
  expect(await rowsWithout(one, two)).toEqual([[], []])
})

it('a stop answers requests that wait for output', async () => {
  server = await createTestApp({ basePath: folder.path })
  await register(server, 'left')
  await waitForState(server, 'left.One', 'running')
  await waitForOutput(server, 'left.One', '"stored"')
  const waiting = server.call('GET', '/v1/sensortypes/left.One/output?after=1000&wait=60')
  await waitFor('the request to arrive', async () => {
    const { body } = await (server as TestApp).call<{ data: string }[]>('GET', '/v1/sensortypes/left.One/output')
    return body.length > 0
  })
  await server.stop()
  server = undefined
  const { status, body } = await waiting
  // 503: it came when the server had begun to stop.
  expect(status === 200 ? body : status).toEqual(status === 200 ? [] : 503)
})
