import { describe, expect, test } from 'vitest'
import { graphOfText } from './either.ts'

describe('the graph of a definition', () => {
  test('has tasks, joins, items, retries, delays and transitions', () => {
    expect(
      graphOfText(`
timeout: <% ctx(most) %>
tasks:
  b:
    action: ci.build version=1
    retry: {count: 2, delay: 5, when: <% failed() %>}
    delay: 3
    timeout: 60
    next:
      - {when: <% succeeded() %>, publish: [{x: 1}, {y: 2}, {x: 3}], do: "c, d"}
      - {when: <% failed() %>, do: retry}
      - publish: z=1
  a: {next: [{do: c}]}
  c: {join: all, with: {items: h in <% ctx(hosts) %>, concurrency: 2}, action: ci.install, next: [{do: d}]}
  d: {action: x.y}
`),
    ).toEqual({
      runner: 'orquesta',
      start: ['a', 'b'],
      timeout: '<% ctx(most) %>',
      tasks: [
        {
          name: 'b',
          action: 'ci.build',
          join: null,
          join_need: null,
          items: null,
          concurrency: null,
          retry: null,
          delay: 3,
          timeout: 60,
          is_split: false,
          inbound: [],
          transitions: [
            { when: '<% succeeded() %>', publish: ['x', 'y'], do: ['c', 'd'] },
            { when: '<% failed() %>', publish: [], do: ['retry'] },
            { when: null, publish: ['z'], do: ['continue'] },
          ],
        },
        expect.objectContaining({ name: 'a', action: null, transitions: [{ when: null, publish: [], do: ['c'] }] }),
        expect.objectContaining({
          name: 'c',
          join: 'all',
          join_need: 2,
          items: 'h in <% ctx(hosts) %>',
          concurrency: 2,
          inbound: ['b', 'a'],
        }),
        expect.objectContaining({ name: 'd', is_split: true, transitions: [] }),
      ],
    })
    expect(graphOfText('tasks: {a: {action: x.y, retry: {count: <% ctx(n) %>}}}')).toMatchObject({
      tasks: [{ retry: { count: '<% ctx(n) %>', delay: null, when: null } }],
    })
  })

  test('has the nodes of an action chain, too', () => {
    expect(
      graphOfText(`
chain:
  - {name: a, ref: x.y, on-success: b, on-failure: c, publish: {v: 1}}
  - {name: b, ref: x.y}
  - {name: c, ref: x.z, on-success: b}
`),
    ).toMatchObject({
      runner: 'action-chain',
      start: ['a'],
      tasks: [
        {
          name: 'a',
          action: 'x.y',
          transitions: [
            { when: 'on-success', publish: ['v'], do: ['b'] },
            { when: 'on-failure', publish: ['v'], do: ['c'] },
          ],
        },
        { name: 'b', inbound: ['a', 'c'], transitions: [] },
        { name: 'c', action: 'x.z', transitions: [{ when: 'on-success', do: ['b'] }] },
      ],
    })
  })

  test('says why a text is no definition', () => {
    expect(graphOfText('tasks: 1')).toEqual({ problem: expect.stringContaining('tasks is 1') as string })
    expect(graphOfText('chain: []')).toHaveProperty('problem')
  })

  test('draws definitions with mistakes as far as they go', () => {
    expect(graphOfText('{tasks: {a: {next: [{do: [b, fail]}, 3]}, c: 1}}')).toHaveProperty('problem')
    expect(graphOfText('{tasks: {a: {next: [{do: [b, fail]}]}, c: x}}')).toMatchObject({
      start: ['a', 'c'],
      tasks: [
        { name: 'a', transitions: [{ do: ['b', 'fail'] }] },
        { name: 'c', action: null },
      ],
    })
  })
})
