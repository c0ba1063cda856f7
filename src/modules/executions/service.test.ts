import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createMemoryBus } from '../../bus/memory.ts'
import type { Bus } from '../../bus/bus.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { AppError } from '../../errors.ts'
import type { ApiRequest, JsonRoute } from '../../http/route.ts'
import { createLog } from '../../log.ts'
import type { RunContext, Runner } from '../../runners/runner.ts'
import { createActions } from '../actions/index.ts'
import { createTraces } from '../traces/index.ts'
import { createExecutions, isFinal, type Executions } from './index.ts'

let folder: TemporaryFolder
let database: Database
let executions: Executions
/** What the runner was given, run by run. */
let given: Record<string, unknown>[]

const runner: Runner = {
  definition: {
    name: 'patient',
    description: 'Waits to be stopped when told to, else ends at once.',
    enabled: true,
    runner_package: 'patient',
    runner_module: 'patient',
    runner_parameters: {},
  },
  async run(context: RunContext) {
    const { actionParameters, signal } = context
    given.push(actionParameters)
    if (actionParameters['text'] === 'wait' && !signal.aborted) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      void context.emit('stdout', 'stopped')
    }
    return { status: 'succeeded', result: {} }
  },
}

let createServer: () => Executions

beforeEach(async () => {
  folder = makeFolder()
  given = []
  const log = createLog({ level: 'CRITICAL', format: 'text', stream: new Writable({ write: (_, __, done) => done() }) })
  const bus: Bus = createMemoryBus(() => undefined)
  database = await openSqlite({
    path: `${folder.path}/svc.db`,
    synchronous: 'normal',
    announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
  })
  const actions = createActions({ database, maxPageSize: 100 })
  await actions.registerRunnerTypes([runner.definition])
  const definition = { name: 'do', runner_type: 'patient', parameters: { text: { type: 'string' }, more: {} } }
  await actions.registerActions({
    pack: 'test',
    definitions: [{ metadataFile: 'actions/do.yaml', definition }],
    metadataFiles: new Set(['actions/do.yaml']),
  })
  actions.usePackFolder('test', folder.path)
  createServer = () =>
    createExecutions({
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
  executions = createServer()
  await executions.start?.()
})

afterEach(async () => {
  await executions.stop?.()
  await database.close()
  folder.remove()
})

async function call(method: 'post' | 'put', path: string, id: string, body: unknown): Promise<{ id: string }> {
  const route = executions.routes?.find((candidate) => candidate.method === method && candidate.path === path)
  const request: ApiRequest = {
    principal: { user: 'svc', isAdmin: true, method: 'none' },
    params: { id },
    query: {},
    body,
    headers: {},
    requestId: '-',
    remoteAddress: '127.0.0.1',
  }
  return (await (route as JsonRoute).handler(request)) as { id: string } // an execution record has one
}

const request = (parameters: Record<string, unknown>) =>
  call('post', '/executions', '', { action: 'test.do', parameters })
const rerun = (id: string, parameters: Record<string, unknown> = {}) =>
  call('post', '/executions/:id/re_run', id, { parameters })
const put = (id: string, status: string) => call('put', '/executions/:id', id, { status })

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'none',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )

const reached = (id: string, isThere: (status: string) => boolean): Promise<string> =>
  waitFor('the status', () => {
    const status = executions.find(id)?.status
    return status !== undefined && isThere(status) && status
  })
const ended = (id: string): Promise<string> => reached(id, (status) => isFinal(status as 'failed')) // it is one of them

test('templates that could not be rendered are templates again when their execution is run again', async () => {
  expect(await codeOf(request({ text: '{{ missing }}', more: '{{ text }}' }))).toBe('TEMPLATE_FAILED')
  const failed = executions.last()?.id ?? ''
  expect(await codeOf(rerun(failed))).toBe('TEMPLATE_FAILED')
  const again = executions.last()?.id ?? ''
  expect(again).not.toBe(failed)

  for (const id of [failed, again]) {
    const { id: mended } = await rerun(id, { text: 'x' })
    expect(await ended(mended)).toBe('succeeded')
    expect(given.pop()).toEqual({ text: 'x', more: 'x' })
  }
  expect(given).toEqual([])
})

test('what was rendered once stays data, also over a run in between whose templates could not be rendered', async () => {
  const { id } = await request({ text: '{{ "{{" }} more }}' })
  await ended(id)
  expect(await codeOf(rerun(id, { more: '{{ missing }}' }))).toBe('TEMPLATE_FAILED')
  const { id: mended } = await rerun(executions.last()?.id ?? '', { more: 1 })
  await ended(mended)
  expect(given.pop()).toEqual({ text: '{{ more }}', more: 1 })
})

test('a cancel by PUT that comes second is answered as if it had come later', async () => {
  const { id: settled } = await request({ text: 'wait' })
  await reached(settled, (status) => status === 'running')
  expect(await Promise.all([codeOf(put(settled, 'succeeded')), codeOf(put(settled, 'canceled'))])).toEqual([
    'none',
    'EXECUTION_UPDATE_REFUSED',
  ])

  const { id: canceled } = await request({ text: 'wait' })
  await reached(canceled, (status) => status === 'running')
  expect(await Promise.all([codeOf(put(canceled, 'canceling')), codeOf(put(canceled, 'canceled'))])).toEqual([
    'none',
    'none',
  ])
  expect(await ended(canceled)).toBe('canceled')
})

test('requests that come together do not get past the limit of the queue', async () => {
  const codes = await Promise.all(Array.from({ length: 30 }, () => codeOf(request({ text: 'wait' }))))
  expect(codes.filter((code) => code === 'none')).toHaveLength(10)
  expect(codes.filter((code) => code === 'QUEUE_FULL')).toHaveLength(20)
})

/** The cheapest damage there is: statements on the table fail as on one whose pages are damaged. */
const damage = (table: 'execution_results' | 'output_records') =>
  database.write({ steps: [{ query: database.build.schema.dropTable(table) }], facts: [] })

test.each(['execution_results', 'output_records'] as const)('a run ends also when %s is damaged', async (table) => {
  const { id } = await request({ text: 'wait' })
  await reached(id, (status) => status === 'running')
  await damage(table)
  // The answer to it may need what is damaged.
  await codeOf(put(id, 'canceling'))
  expect(await ended(id)).toBe('canceled')
})

test('a server starts also when the results of what ran before cannot be stored', async () => {
  const { id } = await request({ text: 'wait' })
  await reached(id, (status) => status === 'running')
  await damage('execution_results')
  const after = createServer()
  await after.start?.()
  expect(after.find(id)?.status).toBe('abandoned')
  await after.stop?.()
})
