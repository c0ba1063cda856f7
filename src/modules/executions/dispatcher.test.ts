import { afterEach, beforeEach, expect, test } from 'vitest'
import { startEngine, type Engine } from '../../../tests/helpers/engine.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { RunContext, RunResult } from '../../runners/runner.ts'

let engine: Engine
let run: (context: RunContext) => Promise<RunResult>
/** Called with each write of output, which waits for it. */
let onOutput: () => Promise<void>

beforeEach(async () => {
  onOutput = () => Promise.resolve()
  engine = await startEngine({
    run: (context) => run(context),
    around: (real) => ({
      ...real,
      async write(unit) {
        if (unit.facts.some(({ name }) => name === 'execution.output')) await onOutput()
        return real.write(unit)
      },
    }),
  })
})

afterEach(() => engine.stop())

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
  let write: () => void = () => undefined
  const isWriting = new Promise<void>((resolve) => {
    onOutput = () => {
      resolve()
      return new Promise((written) => {
        write = written
      })
    }
  })
  let hasEnded = false
  run = async (context) => {
    void context.emit('stdout', 'done')
    await isWriting
    hasEnded = true
    return { status: 'succeeded', result: {} }
  }
  const id = await engine.request()
  await waitFor('the end of the run', () => hasEnded)
  const stopped = engine.executions.stop?.()
  write()
  await stopped
  expect(engine.statusOf(id)).toBe('succeeded')
})
