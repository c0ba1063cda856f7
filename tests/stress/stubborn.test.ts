/** Processes that do not want to end, two hundred times, ended in every way there is: nothing of them is left. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findProcesses, readOutput, readRows, type Row } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import {
  finalStatuses,
  projectRoot,
  run,
  startServer,
  type ExecutionAnswer,
  type TestServer,
} from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

const storm = 'forks-while-dying.sh'
const scripts = ['ignores-term.sh', 'leaves-session.sh', 'forks-twice.sh', storm]
/** The kernel lets nobody look at processes in the middle of exec: with more storms at once than this, seconds pass so. */
const STORMS_AT_ONCE = 2
const GRACE_SECONDS = 2
/** Time stamps are of the wall clock, waits are not. */
const CLOCKS_APART_SECONDS = 0.1

let folder: TemporaryFolder
let server: TestServer
let client: EventClient | undefined

beforeEach(async () => {
  folder = makeFolder()
  // Their copies have the folder in their command lines, by which they are found whatever else they do.
  for (const script of scripts) cpSync(join(projectRoot, 'tests', 'fixtures', script), join(folder.path, script))
  server = await startServer({
    basePath: folder.path,
    settings: { 'actionrunner.shutdown_grace_seconds': '0', 'actionrunner.actions_pool_size': '60' },
  })
})
afterEach(async () => {
  client?.close()
  client = undefined
  await server.stop('SIGKILL')
  for (const { pid } of findProcesses(folder.path)) process.kill(pid, 'SIGKILL')
  folder.remove()
})

interface Batch {
  ids: string[]
  /** Those of them that answer TERM with a storm of processes, by turns. */
  turns: string[][]
}

/** Starts some of each kind. Storms of later turns get one more second each. */
async function startBatch(perKind: number, timeoutSeconds: number): Promise<Batch> {
  const batch: Batch = { ids: [], turns: [] }
  for (const script of scripts) {
    for (let n = 0; n < perKind; n++) {
      const turn = script === storm ? Math.floor(n / STORMS_AT_ONCE) : 0
      const timeout = timeoutSeconds === 0 ? 0 : timeoutSeconds + turn
      const { id } = await run(server, { cmd: `exec sh ${folder.path}/${script}`, timeout })
      batch.ids.push(id)
      if (script === storm) (batch.turns[turn] ??= []).push(id)
    }
  }
  return batch
}

function waitUntilReady(ids: readonly string[]): Promise<unknown> {
  return waitFor('the commands to be ready', () =>
    ids.every((id) => readOutput(folder.path, id).some(({ data }) => data.includes('ready'))),
  )
}

/** Notes for each execution what is alive of it at the moment its end is announced. */
async function watchEnds(): Promise<Map<string, string[]>> {
  const survivors = new Map<string, string[]>()
  client = await openEvents(`${server.urls.stream}/v1/stream?events=svc.execution__update`, {}, (frame) => {
    const { id, status } = JSON.parse(frame.data) as { id: string; status: string } // a record of contract 03
    if (finalStatuses.includes(status)) survivors.set(id, describeProcesses(id))
  })
  return survivors
}

function describeProcesses(text: string): string[] {
  return findProcesses(text).map(({ pid, commandLine }) => `${pid} ${commandLine}`)
}

function secondsBetween(row: Row, from: string, to: string): number {
  const at = (status: string): number => Date.parse(row.log.find((entry) => entry.status === status)?.timestamp ?? '')
  return (at(to) - at(from)) / 1000
}

function rowsOf(ids: readonly string[]): Row[] {
  const rows = readRows(folder.path)
  return ids.flatMap((id) => rows.get(id) ?? [])
}

describe('stubborn commands', () => {
  it.each([1, 2, 3, 4])('are gone when they are canceled (batch %i)', async () => {
    const { ids, turns } = await startBatch(5, 0)
    await waitUntilReady(ids)
    const survivors = await watchEnds()
    const storms = new Set(turns.flat())
    const cancel = (id: string): Promise<unknown> => server.call('DELETE', `/v1/executions/${id}`)
    await Promise.all(ids.filter((id) => !storms.has(id)).map(cancel))
    for (const turn of turns) {
      await Promise.all(turn.map(cancel))
      await waitFor('the storms to end', () => turn.every((id) => survivors.has(id)), 30_000)
    }
    await waitFor('all to end', () => ids.every((id) => survivors.has(id)), 30_000)
    expect([...survivors.values()].flat()).toEqual([])
    const rows = rowsOf(ids)
    expect(rows.map(({ status }) => status)).toEqual(ids.map(() => 'canceled'))
    // Whoever only ignores TERM has the whole grace.
    for (const row of rows.filter(({ id }) => !storms.has(id))) {
      expect(secondsBetween(row, 'canceling', 'canceled')).toBeGreaterThan(GRACE_SECONDS - CLOCKS_APART_SECONDS)
    }
  })

  it.each([1, 2, 3, 4])('are gone when their time is up (batch %i)', async () => {
    const survivors = await watchEnds()
    const { ids } = await startBatch(5, 4)
    await waitFor('all to end', () => ids.every((id) => survivors.has(id)), 30_000)
    expect([...survivors.values()].flat()).toEqual([])
    const rows = rowsOf(ids)
    expect(rows.map(({ status }) => status)).toEqual(ids.map(() => 'timeout'))
    const answers = await Promise.all(ids.map((id) => server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)))
    for (const { body } of answers) {
      expect(body.result).toMatchObject({ return_code: -9, stdout: 'ready' })
    }
  })

  it.each([1, 2, 3, 4, 5])('are gone when the server stops (batch %i)', async () => {
    const { ids } = await startBatch(STORMS_AT_ONCE, 0)
    await waitUntilReady(ids)
    const { code } = await server.stop('SIGTERM')
    expect(describeProcesses(folder.path)).toEqual([])
    expect(code).toBe(0)
    const rows = rowsOf(ids)
    expect(rows.map(({ status }) => status)).toEqual(ids.map(() => 'abandoned'))
  })
})
