import { describe, expect, test } from 'vitest'
import { compareText, findCycles } from './graph.ts'
import { readInlineAction, readInlineParameters } from './inline.ts'
import { readDefinition, type Task } from './model.ts'

const definitionOf = (tasks: Record<string, unknown>): ReturnType<typeof readDefinition> => readDefinition({ tasks })

function task(tasks: Record<string, unknown>, name: string): Task {
  const found = definitionOf(tasks).tasks.find((node) => node.name === name)
  if (found === undefined) throw new Error(`no task ${name}`)
  return found
}

describe('inline parameters', () => {
  test.each([
    ['x=[1, 2] map={"a":1}', [['x', [1, 2]]]],
    [
      'x="1" y=true z=null w=-4 v=1.5',
      [
        ['x', '1'],
        ['y', true],
        ['z', null],
        ['w', -4],
        ['v', 1.5],
      ],
    ],
    ['x="a=b" y=c=d', [['x', 'a=b']]],
    [
      'a.b=1 c-d=2',
      [
        ['b', 1],
        ['d', 2],
      ],
    ],
    ['x=[<% ctx(n) %>]', [['x', '[<% ctx(n) %>]']]],
    [
      'x=<% ctx(a) %> y={{ ctx().b }}',
      [
        ['x', '<% ctx(a) %>'],
        ['y', '{{ ctx().b }}'],
      ],
    ],
    [
      `j='{"a":1}' k="[1]"`,
      [
        ['j', { a: 1 }],
        ['k', '[1]'],
      ],
    ],
    [
      `x=["a"] y=TRUE z=null`,
      [
        ['x', '["a"]'],
        ['y', true],
        ['z', null],
      ],
    ],
    ['x = 1', []],
    ['=1 x=<% a\n %> y={{ z', []],
  ])('%s', (text, pairs) => {
    expect(readInlineParameters(text)).toEqual(pairs)
  })

  test.each(['a=[', 'a=<%', 'a={{', "a='a='", 'a=1\n', 'a=', 'a'])(
    'of a text that repeats %j take linear time',
    (part) => {
      // Quadratic work would take minutes, and run into the time limit of tests.
      expect(readInlineParameters(part.repeat(200_000)).length).toBeLessThanOrEqual(200_000)
    },
  )

  test('of an action', () => {
    expect(readInlineAction('core.echo message="hi there"')).toEqual({
      action: 'core.echo',
      input: { message: 'hi there' },
    })
    expect(readInlineAction('<% ctx(name) %> x=1')).toEqual({ action: '<% ctx(name) %>', input: { x: 1 } })
    expect(readInlineAction('core.echo message=hi')).toBeUndefined()
  })
})

describe('tasks', () => {
  test('transitions are sorted by target and position, and count per target', () => {
    const { outgoing } = task(
      { a: { next: [{ do: 'z, b' }, { do: ['b', 'retry'] }, {}] }, b: { join: 'all' }, z: {} },
      'a',
    )
    expect(outgoing.map(({ id, origin, position }) => [id, origin, position])).toEqual([
      ['b__t0', 'a__t0', 0],
      ['b__t1', 'a__t1', 1],
      ['continue__t0', 'a__t0', 2],
      ['z__t0', 'a__t0', 0],
    ])
  })

  test('a join counts tasks, a split transitions', () => {
    const tasks = {
      a: { next: [{ do: 'join' }, { do: 'join' }, { do: 'split' }, { do: 'split' }] },
      b: { next: [{ do: 'join, n' }] },
      join: { join: 'all' },
      n: { join: 0 },
      split: {},
    }
    expect(task(tasks, 'join')).toMatchObject({ joinNeed: 2, inbound: [0, 1], isSplit: false })
    expect(task(tasks, 'n').joinNeed).toBe(1)
    expect(task(tasks, 'split')).toMatchObject({ joinNeed: undefined, isSplit: true })
    expect(definitionOf(tasks).starts).toEqual([0, 1])
  })

  test('a cycle without entry is unreachable and does not count for a join', () => {
    const tasks = {
      a: { next: [{ do: 'end' }] },
      x: { next: [{ do: 'y, end' }] },
      y: { next: [{ do: 'x' }] },
      end: { join: 'all' },
    }
    expect(task(tasks, 'x')).toMatchObject({ isReachable: false, isInCycle: true })
    expect(task(tasks, 'end')).toMatchObject({ joinNeed: 1, isInCycle: false, isReachable: true })
  })

  test('do: retry takes the place of retry', () => {
    const next = [{ when: '<% failed() %>', do: 'retry' }]
    expect(task({ a: { retry: { count: 9 }, next } }, 'a').retry).toEqual({
      count: 3,
      delay: undefined,
      when: '<% failed() %>',
      isCommand: true,
    })
  })

  test.each([
    ['<% ctx(xs) %>', { names: [], list: '<% ctx(xs) %>' }],
    ['x in <% ctx(xs) %>', { names: ['x'], list: '<% ctx(xs) %>' }],
    [
      { items: 'a, b in <% ctx(xs) %>', concurrency: 2 },
      { names: ['a', 'b'], list: '<% ctx(xs) %>', concurrency: 2 },
    ],
    ['<% ctx(xs).where($ in [1]) %>', { names: [], list: '<% ctx(xs).where($ in [1]) %>' }],
  ])('items %s', (form, items) => {
    expect(task({ a: { with: form } }, 'a').items).toMatchObject(items)
  })

  test('undefined names and engine commands are nodes behind the tasks', () => {
    const { tasks } = definitionOf({ a: { next: [{ do: 'fail, nowhere' }] } })
    expect(tasks.map(({ name, kind }) => [name, kind])).toEqual([
      ['a', 'task'],
      ['fail', 'fail'],
      ['nowhere', 'undefined'],
    ])
  })

  test('what has the wrong form is left out', () => {
    expect(readDefinition(null)).toMatchObject({ tasks: [], input: [], output: undefined })
    expect(readDefinition({ tasks: { a: null, b: { next: 'x', with: 3, retry: [] } }, input: [{}, 'x', [1]] })).toEqual(
      expect.objectContaining({
        input: [{ name: 'x', value: null, hasDefault: false }],
        starts: [0, 1],
      }),
    )
  })

  test('10,000 tasks in a ring need no recursion', () => {
    const count = 10_000
    const ring = Array.from({ length: count }, (_, from) => [{ from, to: (from + 1) % count }])
    expect(findCycles(ring).every(Boolean)).toBe(true)
  })
})

test('text is ordered by code point', () => {
  expect(['b', '😀', 'ab', 'a', '￿', 'B'].sort(compareText)).toEqual(['B', 'a', 'ab', 'b', '￿', '😀'])
})
