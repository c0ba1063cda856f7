import { describe, expect, test } from 'vitest'
import type { WorkflowGraph } from '../../api/records.ts'
import { modelOf } from './graph.ts'

type GraphTask = WorkflowGraph['tasks'][number]

const task = (name: string, more: Partial<GraphTask> = {}): GraphTask => ({
  name,
  action: 'core.noop',
  join: null,
  join_need: null,
  items: null,
  concurrency: null,
  retry: null,
  delay: null,
  timeout: null,
  is_split: false,
  inbound: [],
  transitions: [],
  ...more,
})

const to = (targets: string[], when: unknown = null): GraphTask['transitions'][number] => ({
  when,
  publish: [],
  do: targets,
})

test('the limit of a workflow is a text', () => {
  const timeoutOf = (timeout: unknown) => modelOf({ runner: 'orquesta', start: [], timeout, tasks: [] }).timeout
  expect([600, '<% ctx(most) %>', null].map(timeoutOf)).toEqual(['600', '<% ctx(most) %>', null])
})

describe('the boxes of a definition', () => {
  test('say what a task is', () => {
    const { boxes } = modelOf({
      runner: 'orquesta',
      start: ['a'],
      timeout: null,
      tasks: [
        task('a', { join: 'all', items: 'x in <% ctx(xs) %>', delay: 5 }),
        task('b', { retry: { count: 2, delay: null, when: null }, join: 2 }),
        task('c', { retry: { count: '<% ctx(n) %>', delay: null, when: null }, delay: '<% ctx(s) %>' }),
        task('d', { action: null, timeout: 9, transitions: [to(['retry'])] }),
        task('e', { timeout: '<% ctx(s) %>' }),
      ],
    })
    expect(boxes.map(({ marks }) => marks)).toEqual([
      ['join all', '× n', 'delay 5 s'],
      ['join 2', 'retry 2'],
      ['retry', 'delay'],
      ['retry', 'timeout 9 s'],
      ['timeout'],
    ])
    expect(boxes.map(({ isJoin }) => isJoin)).toEqual([true, true, false, false, false])
  })

  test('are also what transitions lead to that is no task', () => {
    const { boxes, links } = modelOf({
      runner: 'orquesta',
      start: ['a'],
      timeout: null,
      tasks: [task('a', { transitions: [to(['fail', 'gone', 'retry'], '<% failed() %>')] })],
    })
    expect(boxes.map(({ name, kind }) => [name, kind])).toEqual([
      ['a', 'task'],
      ['fail', 'command'],
      ['gone', 'missing'],
    ])
    expect(links.map(({ to: target }) => target)).toEqual(['fail', 'gone'])
  })

  test('are linked once, with every condition, or none if it is always taken', () => {
    const linksOf = (...transitions: GraphTask['transitions']) =>
      modelOf({ runner: 'orquesta', start: ['a'], timeout: null, tasks: [task('a', { transitions }), task('b')] }).links
    expect(linksOf(to(['b'], 'x'), to(['b'], 'y'), to(['b'], 'x'))).toEqual([
      { from: 'a', to: 'b', conditions: ['x', 'y'] },
    ])
    expect(linksOf(to(['b'], 'x'), to(['b']), to(['b'], 'y'))).toEqual([{ from: 'a', to: 'b', conditions: [] }])
  })
})
