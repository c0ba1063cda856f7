import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createMemoryBus } from '../../bus/memory.ts'
import type { Bus } from '../../bus/bus.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import type { JsonRoute } from '../../http/route.ts'
import { createLog } from '../../log.ts'
import type { RunContext, Runner, RunResult } from '../../runners/runner.ts'
import { createActions } from '../actions/index.ts'
import { createTraces } from '../traces/index.ts'
import { createExecutions, type Executions } from './index.ts'

let folder: TemporaryFolder
let database: Database
let executions: Executions
let run: (context: RunContext) => Promise<RunResult>

const runner: Runner = {
  definition: {
    name: 'scripted',
    description: 'Does what the test says.',
    enabled: true,
    runner_package: 'scripted',
    runner_module: 'scripted',
    runner_parameters: {},
  },
  run: (context) => run(context),
}

beforeEach(async () => {
  folder = makeFolder()
  const log = createLog({ level: 'CRITICAL', format: 'text', stream: new Writable({ write: (_, __, done) => done() }) })
  const bus: Bus = createMemoryBus(() => undefined)
  database = await openSqlite({
    path: `${folder.path}/svc.db`,
    synchronous: 'normal',
    announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
  })
  const actions = createActions({ database, maxPageSize: 100 })
  await actions.registerRunnerTypes([runner.definition])
  const definition = { name: 'do', runner_type: 'scripted' }
  await actions.registerActions({
    pack: 'test',
    definitions: [{ metadataFile: 'actions/do.yaml', definition }],
    metadataFiles: new Set(['actions/do.yaml']),
  })
  actions.usePackFolder('test', folder.path)
  executions = createExecutions({
    database,
    bus,
    log,
    actions,
    traces: createTraces({ database }),
    runners: [runner],
    sweep: () => Promise.resolve(0),
    bootId: 'boot',
    settings: {
      streamOutput: true,
      actionsPoolSize: 2,
      shutdownGraceSeconds: 0,
      queueLimit: 10,
      pollSeconds: 60,
      maxPageSize: 100,
      maskSecrets: true,
      webUrl: () => 'http://127.0.0.1',
      apiUrl: () => 'http://127.0.0.1/v1',
    },
  })
  await executions.start?.()
})

afterEach(async () => {
  await executions.stop?.()
  await database.close()
  folder.remove()
})

/** Requests an execution as the endpoint does. */
async function request(): Promise<string> {
  const route = executions.routes?.find(({ method, path }) => method === 'post' && path === '/executions')
  const { id } = (await (route as JsonRoute).handler({
    principal: { user: 'svc', isAdmin: true, method: 'none' },
    params: {},
    query: {},
    body: { action: 'test.do' },
    headers: {},
    requestId: '-',
    remoteAddress: '127.0.0.1',
  })) as { id: string } // an execution record has one
  return id
}

const ended = (id: string): Promise<string> =>
  waitFor('the end of the execution', () => {
    const status = executions.find(id)?.status
    return (status === 'succeeded' || status === 'failed') && status
  })

test('a result that cannot be stored fails the execution, keeps its output and frees its slot', async () => {
  run = (context) => {
    void context.emit('stdout', 'kept')
    return Promise.resolve({ status: 'succeeded', result: { never: 1n } })
  }
  const ids = [await request(), await request(), await request()]
  for (const id of ids) expect(await ended(id)).toBe('failed')
  for (const id of ids)
    expect(
      executions
        .outputCursor(id)
        .after(0, undefined)
        .map(({ data }) => data),
    ).toEqual(['kept'])

  run = () => Promise.resolve({ status: 'succeeded', result: {} })
  expect(await ended(await request())).toBe('succeeded')
})

test('a runner that throws fails the execution with what it said', async () => {
  run = () => Promise.reject(new Error('no such host'))
  const id = await request()
  expect(await ended(id)).toBe('failed')
})
