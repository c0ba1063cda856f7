import { afterEach, beforeEach, expect, test } from 'vitest'
import { startEngine, type Engine } from '../../../../tests/helpers/engine.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import type { Unit } from '../../../db/database.ts'
import { createLog } from '../../../lib/log/log.ts'
import type { RunContext, RunResult } from '../../../runners/runner.ts'
import { createStartNotes } from './start-notes.ts'

let engine: Engine
let folder: TemporaryFolder
let run: (context: RunContext) => Promise<RunResult>
/** Each write waits for it. */
let beforeWrite: (unit: Unit) => Promise<void> | undefined

beforeEach(async () => {
  beforeWrite = () => undefined
  folder = makeFolder()
  engine = await startEngine({
    basePath: folder.path,
    run: (context) => run(context),
    around: (real) => ({
      ...real,
      async write(unit) {
        await beforeWrite(unit)
        return real.write(unit)
      },
    }),
  })
})

afterEach(async () => {
  await engine.stop()
  folder.remove()
})

/** Holds the first write of this kind until `go` is called. */
function holdFirst(isMeant: (unit: Unit) => boolean): { isHeld: Promise<void>; go: () => void } {
  const held = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  beforeWrite = (unit) => {
    if (!isMeant(unit)) return undefined
    beforeWrite = () => undefined
    held.resolve()
    return gone.promise
  }
  return { isHeld: held.promise, go: () => gone.resolve() }
}

const ended = (id: string): Promise<string> =>
  waitFor('the end of the execution', () => {
    const status = engine.statusOf(id)
    return (status === 'succeeded' || status === 'failed') && status
  })

test('a result that cannot be stored fails the execution, keeps its output and frees its slot', async () => {
  run = (context) => {
    void context.emit('stdout', 'kept')
    return Promise.resolve({ status: 'succeeded', result: { never: 1n } })
  }
  const ids = [await engine.request(), await engine.request(), await engine.request()]
  for (const id of ids) expect(await ended(id)).toBe('failed')
  for (const id of ids) {
    const records = engine.executions.outputCursor(id).after(0, undefined)
    expect(records.map(({ data }) => data)).toEqual(['kept'])
  }

  run = () => Promise.resolve({ status: 'succeeded', result: {} })
  expect(await ended(await engine.request())).toBe('succeeded')
})

test('a runner that throws fails the execution with what it said', async () => {
  run = () => Promise.reject(new Error('no such host'))
  expect(await ended(await engine.request())).toBe('failed')
})

test('a run that has ended before the server is stopped keeps its status, however slow its output is written', async () => {
  const { isHeld, go } = holdFirst(({ facts }) => facts.some(({ name }) => name === 'execution.output'))
  let hasEnded = false
  run = async (context) => {
    void context.emit('stdout', 'done')
    await isHeld
    hasEnded = true
    return { status: 'succeeded', result: {} }
  }
  const id = await engine.request()
  await waitFor('the end of the run', () => hasEnded)
  const stopped = engine.executions.stop?.()
  go()
  await stopped
  expect(engine.statusOf(id)).toBe('succeeded')
})

test('a child that is cancelled while its start is committed ends canceled and does not run', async () => {
  const runs: string[] = []
  run = ({ executionId }) => {
    runs.push(executionId)
    return Promise.resolve({ status: 'succeeded', result: {} })
  }
  const parent = await engine.request()
  await ended(parent)
  const { isHeld, go } = holdFirst(({ facts }) =>
    facts.some(({ payload }) => 'execution' in payload && payload.execution.status === 'running'),
  )
  const id = await engine.request({ context: { parent: { execution_id: parent } } })
  await isHeld
  await engine.call('put', '/executions/:id', id, { status: 'canceling' })
  expect(engine.statusOf(id)).toBe('canceling')
  go()
  await waitFor('its end', () => engine.statusOf(id) === 'canceled')
  expect(runs).toEqual([parent])
})

test('an action whose end is not stored yet counts as begun for the next server, whatever else begins', async () => {
  run = () => Promise.resolve({ status: 'succeeded', result: {} })
  const { isHeld, go } = holdFirst(({ facts }) =>
    facts.some(({ payload }) => 'execution' in payload && payload.execution.status === 'succeeded'),
  )
  const id = await engine.request()
  await isHeld
  expect(await ended(await engine.request())).toBe('succeeded')
  const log = createLog({ level: 'ERROR', format: 'text', stream: new TextSink() })
  const hadBegun = createStartNotes(folder.path, 'boot', log).hadBegun(id)
  go()
  expect(hadBegun).toBe(true)
  expect(await ended(id)).toBe('succeeded')
})
