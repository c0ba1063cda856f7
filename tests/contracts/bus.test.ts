/** What every implementation of the bus port must do. */
import { describe, expect, test } from 'vitest'
import type { Bus } from '../../src/bus/bus.ts'
import type { Fact } from '../../src/bus/facts.ts'
import { createMemoryBus } from '../../src/bus/memory.ts'

function fact(executionId: string, seq: number): Fact {
  return {
    name: 'execution.output',
    payload: { execution_id: executionId, action_ref: '', user: 'ada', runner_ref: '', last_seq: seq, records: [] },
  }
}

interface TestedBus {
  bus: Bus
  /** What listeners threw. */
  errors: [error: unknown, factName: string][]
}

function openMemoryBus(): TestedBus {
  const errors: TestedBus['errors'] = []
  return { bus: createMemoryBus((error, name) => errors.push([error, name])), errors }
}

describe.each([{ name: 'memory', open: openMemoryBus }])('bus $name', ({ open }) => {
  test('delivers each fact once to every listener of its name, in order', () => {
    const { bus } = open()
    const first: number[] = []
    const second: number[] = []
    const others: unknown[] = []
    bus.subscribe('execution.output', ({ last_seq }) => first.push(last_seq))
    bus.subscribe('execution.output', ({ last_seq }) => second.push(last_seq))
    bus.subscribe('execution.created', (payload) => others.push(payload))
    for (let seq = 1; seq <= 100; seq++) bus.publish(fact('a', seq))
    const all = Array.from({ length: 100 }, (_, i) => i + 1)
    expect(first).toEqual(all)
    expect(second).toEqual(all)
    expect(others).toEqual([])
  })

  test('delivers to nobody without complaint', () => {
    const { bus, errors } = open()
    bus.publish(fact('a', 1))
    expect(errors).toEqual([])
  })

  test('reports what a listener throws; the others hear the fact, and it hears the next one', () => {
    const { bus, errors } = open()
    const heard: string[] = []
    const problem = new Error('a listener’s problem')
    bus.subscribe('execution.output', ({ last_seq }) => {
      heard.push(`faulty ${last_seq}`)
      if (last_seq === 1) throw problem
    })
    bus.subscribe('execution.output', ({ last_seq }) => heard.push(`sound ${last_seq}`))
    bus.publish(fact('a', 1))
    bus.publish(fact('a', 2))
    expect(heard).toEqual(['faulty 1', 'sound 1', 'faulty 2', 'sound 2'])
    expect(errors).toEqual([[problem, 'execution.output']])
  })

  test('a listener hears nothing from before it came and nothing after it left', () => {
    const { bus } = open()
    const heard: number[] = []
    bus.publish(fact('a', 1))
    const leave = bus.subscribe('execution.output', ({ last_seq }) => heard.push(last_seq))
    bus.publish(fact('a', 2))
    leave()
    leave()
    bus.publish(fact('a', 3))
    expect(heard).toEqual([2])
  })

  test('a listener may leave, or send another one away, while a fact is on its way', () => {
    const { bus } = open()
    const heard: string[] = []
    const leaveOnce = bus.subscribe('execution.output', ({ last_seq }) => {
      heard.push(`once ${last_seq}`)
      leaveOnce()
      leaveOther()
    })
    const leaveOther = bus.subscribe('execution.output', ({ last_seq }) => heard.push(`other ${last_seq}`))
    bus.subscribe('execution.output', ({ last_seq }) => heard.push(`stays ${last_seq}`))
    bus.publish(fact('a', 1))
    bus.publish(fact('a', 2))
    expect(heard).toEqual(['once 1', 'stays 1', 'stays 2'])
  })

  test('the same function subscribed twice is two listeners, which leave one by one', () => {
    const { bus } = open()
    let calls = 0
    const listener = (): void => {
      calls += 1
    }
    const leave = bus.subscribe('execution.output', listener)
    bus.subscribe('execution.output', listener)
    bus.publish(fact('a', 1))
    expect(calls).toBe(2)
    leave()
    bus.publish(fact('a', 2))
    expect(calls).toBe(3)
  })

  test('what a listener publishes comes after the fact it heard, for everybody', () => {
    const { bus, errors } = open()
    const heard: string[] = []
    bus.subscribe('execution.output', ({ execution_id, last_seq }) => {
      heard.push(`first ${execution_id} ${last_seq}`)
      if (execution_id === 'a') bus.publish(fact('b', last_seq))
      if (last_seq === 2) throw new Error('after publishing')
    })
    bus.subscribe('execution.output', ({ execution_id, last_seq }) => heard.push(`second ${execution_id} ${last_seq}`))
    bus.publish(fact('a', 1))
    bus.publish(fact('a', 2))
    expect(heard).toEqual([
      'first a 1',
      'second a 1',
      'first b 1',
      'second b 1',
      'first a 2',
      'second a 2',
      'first b 2',
      'second b 2',
    ])
    expect(errors).toHaveLength(2)
  })
})
