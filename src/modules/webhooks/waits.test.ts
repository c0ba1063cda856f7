import { describe, expect, test, vi } from 'vitest'
import { createMemoryBus } from '../../bus/memory.ts'
import type { Bus } from '../../bus/bus.ts'
import type { Execution, ExecutionStatus } from '../executions/types.ts'
import type { TriggerInstance, TriggerInstanceStatus } from '../triggers/types.ts'
import { createWaits, type Waits } from './waits.ts'

/** Rows of instances and executions, as far as waiting reads them. */
interface Rows {
  instances: Record<string, TriggerInstanceStatus>
  executions: Record<string, { status: ExecutionStatus; instance: string }>
}

interface Stage {
  bus: Bus
  waits: Waits
  rows: Rows
  readonly processed: (id: string, executionIds?: string[]) => void
  readonly finished: (id: string) => void
}

function stage(rows: Rows = { instances: {}, executions: {} }, maxWaiting = 10): Stage {
  const bus = createMemoryBus((error) => {
    throw error
  })
  const waits = createWaits({
    bus,
    triggers: {
      findInstance: (id) => {
        const status = rows.instances[id]
        return status === undefined ? undefined : ({ id, status } as TriggerInstance) // no more is read
      },
    },
    executions: {
      statusOf: (id) => rows.executions[id]?.status,
      ofTriggerInstance: (id) => Object.keys(rows.executions).filter((name) => rows.executions[name]?.instance === id),
    },
    maxWaiting,
  })
  waits.start()
  return {
    bus,
    waits,
    rows,
    processed(id, executionIds = []) {
      rows.instances[id] = 'processed'
      for (const execution of executionIds) rows.executions[execution] ??= { status: 'requested', instance: id }
      bus.publish({ name: 'trigger_instance.processed', payload: { id, execution_ids: executionIds } })
    },
    finished(id) {
      const status = 'succeeded'
      rows.executions[id] = { status, instance: rows.executions[id]?.instance ?? '' }
      const execution = { id, status } as unknown as Execution // no more is read
      bus.publish({ name: 'execution.updated', payload: { execution, from: 'running' } })
    },
  }
}

const neverCloses = () => () => undefined

/** Whether a wait has ended by now, and how. */
async function stateOf(ended: Promise<boolean> | undefined): Promise<boolean | 'waiting'> {
  return Promise.race([ended ?? Promise.reject(new Error('nobody waits')), Promise.resolve('waiting' as const)])
}

describe('a wait', () => {
  test('ends when the instances are processed and the executions have finished', async () => {
    const { waits, processed, finished } = stage()
    const ended = waits.begin(['i1', 'i2'], false)?.end(100, neverCloses)
    processed('i1', ['e1', 'e2'])
    processed('other', ['e9'])
    finished('e1')
    finished('e9')
    expect(await stateOf(ended)).toBe('waiting')
    processed('i2')
    expect(await stateOf(ended)).toBe('waiting')
    finished('e2')
    expect(await ended).toBe(true)
  })

  test('ends at once without instances to wait for', async () => {
    expect(await stage().waits.begin([], false)?.end(100, neverCloses)).toBe(true)
  })

  test('includes what finished before it started or between two facts', async () => {
    const { waits, rows, processed, finished } = stage({
      instances: { old: 'processed', pending: 'pending' },
      executions: { done: { status: 'failed', instance: 'old' }, runs: { status: 'running', instance: 'old' } },
    })
    const ended = waits.begin(['old', 'pending'], true)?.end(100, neverCloses)
    rows.executions['quick'] = { status: 'failed', instance: 'pending' }
    processed('pending', ['quick'])
    expect(await stateOf(ended)).toBe('waiting')
    finished('runs')
    expect(await ended).toBe(true)
    expect(await waits.begin(['old'], true)?.end(100, neverCloses)).toBe(true)
  })

  test('two requests wait for the same instances', async () => {
    const { waits, processed, finished } = stage({ instances: { i: 'pending' }, executions: {} })
    const both = [waits.begin(['i'], true)?.end(100, neverCloses), waits.begin(['i'], true)?.end(100, neverCloses)]
    processed('i', ['e'])
    finished('e')
    expect([await both[0], await both[1]]).toEqual([true, true])
  })

  test('reads the rows when it times out, because facts can be lost', async () => {
    vi.useFakeTimers()
    try {
      const { waits, rows } = stage({ instances: { i: 'pending', j: 'pending' }, executions: {} })
      const [lost, late] = [
        waits.begin(['i'], true)?.end(5, neverCloses),
        waits.begin(['j'], true)?.end(5, neverCloses),
      ]
      rows.instances['i'] = 'processed'
      rows.executions['e'] = { status: 'succeeded', instance: 'i' }
      vi.advanceTimersByTime(4999)
      expect(await stateOf(lost)).toBe('waiting')
      vi.advanceTimersByTime(1)
      expect([await lost, await late]).toEqual([true, false])
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('ends when the client disconnects, svc stops or it is canceled, and frees its slot', async () => {
    const { waits } = stage(undefined, 1)
    const closes: (() => void)[] = []
    const gone = waits.begin(['i'], false)?.end(100, (listener) => {
      closes.push(listener)
      return () => closes.splice(0)
    })
    expect(waits.begin(['i'], false)).toBeUndefined()
    closes[0]?.()
    expect([await gone, closes]).toEqual([false, []])

    waits.begin(['i'], false)?.cancel()
    const stopped = waits.begin(['i'], false)?.end(100, neverCloses)
    waits.stop()
    expect(await stopped).toBe(false)
    expect(waits.begin(['i'], false)).toBeDefined()
  })
})
