import { afterEach, beforeEach, expect, test } from 'vitest'
import { startEngine, type Engine } from '../../../tests/helpers/engine.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { AppError } from '../../core/errors.ts'
import { isFinal } from './index.ts'

let engine: Engine
/** What the runner was given, run by run. */
let given: Record<string, unknown>[]

beforeEach(async () => {
  given = []
  engine = await startEngine({
    parameters: { text: { type: 'string' }, more: {} },
    /** Waits to be stopped when told to, else ends at once. */
    async run(context) {
      const { actionParameters, signal } = context
      given.push(actionParameters)
      if (actionParameters['text'] === 'wait' && !signal.aborted) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        void context.emit('stdout', 'stopped')
      }
      return { status: 'succeeded', result: {} }
    },
  })
})

afterEach(() => engine.stop())

const request = (parameters: Record<string, unknown>) => engine.request({ parameters })
const rerun = async (id: string, parameters: Record<string, unknown> = {}) =>
  (await engine.call('post', '/executions/:id/re_run', id, { parameters })).id
const put = (id: string, status: string) => engine.call('put', '/executions/:id', id, { status })

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'none',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )

const reached = (id: string, isThere: (status: string) => boolean): Promise<string> =>
  waitFor('the status', () => {
    const status = engine.statusOf(id)
    return status !== undefined && isThere(status) && status
  })
const ended = (id: string): Promise<string> => reached(id, (status) => isFinal(status as 'failed')) // it is one of them

test('templates that could not be rendered are templates again when their execution is run again', async () => {
  expect(await codeOf(request({ text: '{{ missing }}', more: '{{ text }}' }))).toBe('TEMPLATE_FAILED')
  const failed = engine.executions.last()?.id ?? ''
  expect(await codeOf(rerun(failed))).toBe('TEMPLATE_FAILED')
  const again = engine.executions.last()?.id ?? ''
  expect(again).not.toBe(failed)

  for (const id of [failed, again]) {
    const mended = await rerun(id, { text: 'x' })
    expect(await ended(mended)).toBe('succeeded')
    expect(given.pop()).toEqual({ text: 'x', more: 'x' })
  }
  expect(given).toEqual([])
})

test('what was rendered once stays data, also over a run in between whose templates could not be rendered', async () => {
  const id = await request({ text: '{{ "{{" }} more }}' })
  await ended(id)
  expect(await codeOf(rerun(id, { more: '{{ missing }}' }))).toBe('TEMPLATE_FAILED')
  const mended = await rerun(engine.executions.last()?.id ?? '', { more: 1 })
  await ended(mended)
  expect(given.pop()).toEqual({ text: '{{ more }}', more: 1 })
})

test('a cancel by PUT that comes second is answered as if it had come later', async () => {
  const settled = await request({ text: 'wait' })
  await reached(settled, (status) => status === 'running')
  expect(await Promise.all([codeOf(put(settled, 'succeeded')), codeOf(put(settled, 'canceled'))])).toEqual([
    'none',
    'EXECUTION_UPDATE_REFUSED',
  ])

  const canceled = await request({ text: 'wait' })
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
  engine.database.write({ steps: [{ query: engine.database.build.schema.dropTable(table) }], facts: [] })

test.each(['execution_results', 'output_records'] as const)('a run ends also when %s is damaged', async (table) => {
  const id = await request({ text: 'wait' })
  await reached(id, (status) => status === 'running')
  await damage(table)
  // The answer to it may need what is damaged.
  await codeOf(put(id, 'canceling'))
  expect(await ended(id)).toBe('canceled')
})

test('a server starts also when the results of what ran before cannot be stored', async () => {
  const id = await request({ text: 'wait' })
  await reached(id, (status) => status === 'running')
  await damage('execution_results')
  const after = engine.createServer()
  await after.start?.()
  expect(after.find(id)?.status).toBe('abandoned')
  await after.stop?.()
})

test('the last tenth of the queue is not for rules', async () => {
  // Two run, ten may wait.
  for (let i = 0; i < 10; i++) await request({ text: 'wait' })
  expect(engine.executions.hasRoom()).toBe(true)
  await request({ text: 'wait' })
  expect(engine.executions.hasRoom()).toBe(false)
  await request({ text: 'wait' })
  expect(await codeOf(request({ text: 'wait' }))).toBe('QUEUE_FULL')
})
