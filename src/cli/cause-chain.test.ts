import { describe, expect, test } from 'vitest'
import { computedMs } from '../../tests/helpers/work.ts'
import { causeChainOf, withoutNoopTriggers, type ComponentKind } from './cause-chain.ts'
import type { Json } from './output/print.ts'

const component = (id: string, cause?: [type: ComponentKind, id: string]): Json => ({
  object_id: id,
  ref: `core.${id}`,
  updated_at: '2030-01-01T00:00:00.000000Z',
  caused_by: cause === undefined ? {} : { type: cause[0], id: cause[1] },
})

/** A webhook `w` → rule `r` → execution `a` → its completion `c` → rule `r` again, and rule `s` → execution `b`, whose completion `d` moves nobody. */
const trace: Json = {
  id: 't',
  trace_tag: 'order-17',
  trigger_instances: [
    component('w'),
    component('c', ['action_execution', 'a']),
    component('d', ['action_execution', 'b']),
  ],
  rules: [
    component('r', ['trigger_instance', 'w']),
    component('r', ['trigger_instance', 'c']),
    component('s', ['trigger_instance', 'c']),
  ],
  action_executions: [
    component('a', ['rule', 'r:w']),
    component('b', ['rule', 's:c']),
    component('x', ['rule', 'r:c']),
    component('hand'),
  ],
}

const idsIn = (record: Json | undefined): unknown =>
  record === undefined
    ? undefined
    : ['trigger_instances', 'rules', 'action_executions'].map((list) =>
        (record[list] as Json[]).map(({ object_id: id, caused_by: cause }) =>
          list === 'rules' ? `${String(id)}:${(cause as { id: string }).id}` : id,
        ),
      )

describe('what led to', () => {
  test.each<[ComponentKind, string, unknown]>([
    ['trigger_instance', 'w', [['w'], [], []]],
    ['action_execution', 'a', [['w'], ['r:w'], ['a']]],
    ['trigger_instance', 'c', [['w', 'c'], ['r:w'], ['a']]],
    ['rule', 's', [['w', 'c'], ['r:w', 's:c'], ['a']]],
    [
      'action_execution',
      'b',
      [
        ['w', 'c'],
        ['r:w', 's:c'],
        ['a', 'b'],
      ],
    ],
    [
      'trigger_instance',
      'd',
      [
        ['w', 'c', 'd'],
        ['r:w', 's:c'],
        ['a', 'b'],
      ],
    ],
    [
      'action_execution',
      'x',
      [
        ['w', 'c'],
        ['r:w', 'r:c'],
        ['a', 'x'],
      ],
    ],
    ['rule', 'r', [['w', 'c'], ['r:w', 'r:c'], ['a']]],
    ['rule', 'r:w', [['w'], ['r:w'], []]],
    ['action_execution', 'hand', [[], [], ['hand']]],
    ['rule', 'a', undefined],
    ['action_execution', 'w', undefined],
    ['rule', 'r:d', undefined],
    ['action_execution', '', undefined],
  ])('%s %s', (kind, id, expected) => {
    expect(idsIn(causeChainOf(trace, kind, id))).toEqual(expected)
  })

  test('the rest of the trace stays as it is', () => {
    expect(causeChainOf(trace, 'rule', 's')).toMatchObject({ id: 't', trace_tag: 'order-17' })
  })

  test('something whose cause has been deleted ends there, and a circle ends too', () => {
    const broken = {
      rules: [component('r', ['trigger_instance', 'gone'])],
      action_executions: [component('a', ['rule', 'r:gone'])],
    }
    expect(idsIn(causeChainOf(broken, 'action_execution', 'a'))).toEqual([[], ['r:gone'], ['a']])
    const circle = {
      action_executions: [component('a', ['action_execution', 'b']), component('b', ['action_execution', 'a'])],
    }
    expect(idsIn(causeChainOf(circle, 'action_execution', 'a'))).toEqual([[], [], ['a', 'b']])
  })

  test('one of very many takes no time', () => {
    const count = 100_000
    const long = {
      action_executions: Array.from({ length: count }, (_, n) =>
        component(`e${n}`, n === 0 ? undefined : ['action_execution', `e${n - 1}`]),
      ),
      rules: Array.from({ length: count }, (_, n) => component('r', ['trigger_instance', `i${n}`])),
    }
    const start = computedMs()
    expect(causeChainOf(long, 'action_execution', `e${count - 1}`)?.['action_executions']).toHaveLength(count)
    expect(causeChainOf(long, 'rule', 'r')?.['rules']).toHaveLength(count)
    expect(computedMs() - start).toBeLessThan(5000)
  })
})

test('trigger instances that moved nobody are left out, also of a chain', () => {
  expect(idsIn(withoutNoopTriggers(trace))).toEqual([
    ['w', 'c'],
    ['r:w', 'r:c', 's:c'],
    ['a', 'b', 'x', 'hand'],
  ])
  const chain = causeChainOf(trace, 'trigger_instance', 'c') ?? {}
  expect(idsIn(withoutNoopTriggers(chain, trace))).toEqual([['w', 'c'], ['r:w'], ['a']])
  expect(idsIn(withoutNoopTriggers(chain))).toEqual([['w'], ['r:w'], ['a']])
})
