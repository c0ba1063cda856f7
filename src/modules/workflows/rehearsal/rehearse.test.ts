import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { rehearseText } from '../offline.ts'
import type { Difference, Rehearsal } from '../types.ts'

function play(
  text: string,
  mocks?: string,
  input: Record<string, unknown> = {},
): Rehearsal & { differences: readonly Difference[] } {
  const answer = rehearseText({
    text,
    mocks: mocks === undefined ? undefined : { name: 'mocks.yaml', text: mocks },
    input,
  })
  if (!('rehearsal' in answer)) throw new Error(JSON.stringify(answer))
  return { ...answer.rehearsal, differences: answer.differences }
}

const deploy = `
input: [version, {tries: 2}]
tasks:
  build:
    action: ci.build version=<% ctx(version) %>
    retry: {count: <% ctx(tries) %>, delay: 30}
    next:
      - when: <% succeeded() %>
        publish: [{image: <% result().image %>}]
        do: [test, scan]
      - {when: <% failed() %>, do: fail}
  test: {action: ci.test, input: {image: <% ctx(image) %>}, next: [{do: ship}]}
  scan: {action: ci.scan, next: [{when: <% result().score > 5 %>, publish: [{score: <% result().score %>}], do: ship}]}
  ship: {join: all, action: ci.ship}
output: [{image: <% ctx(image) %>}]
`

describe('a rehearsal', () => {
  test('shows the path: inputs, outcomes, transitions with their values, published variables, joins, output', () => {
    const rehearsal = play(
      deploy,
      'tasks: {build: [failed, {result: {image: i1}}], scan: {result: {score: 7}, takes: 9}, test: {}, ship: {}}',
      { version: 3 },
    )
    expect(rehearsal).toMatchObject({ status: 'succeeded', output: { image: 'i1' }, errors: [], problem: null })
    expect(rehearsal.tasks.map(({ task }) => task)).toEqual(['build', 'scan', 'test', 'ship'])
    const [build, scan, , ship] = rehearsal.tasks
    expect(build?.actions).toEqual([
      {
        item: null,
        attempt: 1,
        action: 'ci.build',
        input: { version: 3 },
        delay: 0,
        timeout: null,
        started_at: 0,
        ended_at: 0,
        status: 'failed',
        result: {},
        is_mocked: true,
      },
      expect.objectContaining({ attempt: 2, delay: 30, started_at: 30, ended_at: 30, status: 'succeeded' }),
    ])
    expect(build?.transitions).toMatchObject([
      { when: '<% succeeded() %>', value: true, is_taken: true, do: ['test', 'scan'], published: { image: 'i1' } },
      { when: '<% failed() %>', value: false, is_taken: false, do: ['fail'], published: {} },
    ])
    expect(scan?.transitions).toMatchObject([
      { value: true, published: { score: 7 }, reads: [{ name: 'result', args: [], value: { score: 7 } }] },
    ])
    expect(scan?.actions[0]).toMatchObject({ started_at: 30, ended_at: 39 })
    expect(ship).toMatchObject({ join: { need: 2, arrived: ['test', 'scan'], missing: [] } })
  })

  test('says which tasks have no mock, and which mocks were not used', () => {
    const rehearsal = play(deploy, 'tasks: {build: {status: failed}, ship: {}}', { tries: 0 })
    expect(rehearsal).toMatchObject({ status: 'failed', without_mock: [], unused_mocks: ['ship'] })
    expect(play(deploy, 'tasks: {build: {result: {image: i}}, scan: {result: {score: 9}}}').without_mock).toEqual([
      'test',
      'ship',
    ])
  })

  test('shows a join that lacks arrivals, and who is missing', () => {
    const rehearsal = play(deploy, 'tasks: {build: {result: {image: i}}, scan: {result: {score: 1}}}')
    expect(rehearsal.status).toBe('failed')
    expect(rehearsal.errors).toMatchObject([{ message: expect.stringContaining('UnreachableJoinError') as string }])
    const scan = rehearsal.tasks.find(({ task }) => task === 'scan')
    expect(scan?.transitions).toMatchObject([{ value: false, is_taken: false, published: {} }])
  })

  test('shows what a failed expression saw, in a transition, an input, and the output', () => {
    const inTransition = play(deploy, 'tasks: {build: {result: {}}}', { version: 1 })
    expect(inTransition.tasks[0]?.failures).toMatchObject([
      {
        expression: '<% result().image %>',
        variables: { version: 1, tries: 2 },
        reads: [{ name: 'result', value: {} }],
      },
    ])
    expect(inTransition.failures).toMatchObject([{ task: null, expression: '<% ctx(image) %>' }])
    const inInput = play('tasks: {a: {action: x.y, input: {n: <% 1 / 0 %>}}}')
    expect(inInput).toMatchObject({
      status: 'failed',
      tasks: [{ task: 'a', status: 'staged', actions: [], failures: [{ expression: { n: '<% 1 / 0 %>' } }] }],
    })
  })

  test('ends actions in the order of their times, then of their starts', () => {
    const fork = `
tasks:
  a: {action: x.y, next: [{do: after_a}]}
  b: {action: x.y, delay: 5, next: [{do: after_b}]}
  c: {action: x.y, next: [{do: after_c}]}
  after_a: {action: x.y}
  after_b: {action: x.y}
  after_c: {action: x.y}
`
    const names = (mocks?: string): string[] => play(fork, mocks).tasks.map(({ task }) => task)
    expect(names()).toEqual(['a', 'b', 'c', 'after_a', 'after_c', 'after_b'])
    expect(names('tasks: {a: {takes: 6}, c: {takes: 1}}')).toEqual(['a', 'b', 'c', 'after_c', 'after_b', 'after_a'])
  })

  test('ends what takes longer than the timeout of its task, and only that', () => {
    const slow = `
input: [{limit: 5}]
tasks:
  fetch:
    action: x.y
    timeout: <% ctx(limit) %>
    delay: 2
    next:
      - {when: <% succeeded() %>, do: noop}
      - {when: <% failed() %>, publish: [{why: <% result().error %>}], do: noop}
output: [{why: <% ctx().get(why) %>}]
`
    const first = (mock: string, input = {}) => {
      const { tasks, output, status } = play(slow, `tasks: {fetch: ${mock}}`, input)
      const [action] = tasks[0]?.actions ?? []
      return { status, output, action: [action?.timeout, action?.status, action?.started_at, action?.ended_at] }
    }
    const why = 'The action took longer than the timeout of its task, 5 seconds.'
    expect(first('{takes: 6}')).toEqual({ status: 'succeeded', output: { why }, action: [5, 'timeout', 2, 7] })
    expect(first('{takes: 5}')).toEqual({ status: 'succeeded', output: { why: null }, action: [5, 'succeeded', 2, 7] })
    // One that says so by itself.
    expect(first('timeout')).toMatchObject({ status: 'failed', action: [5, 'timeout', 2, 7] })
    expect(first('{status: timeout, takes: 1, result: {error: own}}')).toEqual({
      status: 'succeeded',
      output: { why: 'own' },
      action: [5, 'timeout', 2, 3],
    })
    expect(first('timeout', { limit: null })).toMatchObject({ status: 'failed', action: [null, 'timeout', 2, 2] })
    // An inquiry has that long, from when it is asked.
    expect(first('{pending: true}')).toEqual({ status: 'succeeded', output: { why }, action: [5, 'timeout', 2, 7] })
    expect(first('{takes: 3, answer: {ok: true}}')).toMatchObject({ action: [5, 'succeeded', 2, 5] })
  })

  test('ends each attempt, and each item, at the timeout of the task', () => {
    const again = 'tasks: {a: {action: x.y, timeout: 3, retry: {count: 1, delay: 4}}}'
    expect(play(again, 'tasks: {a: [{takes: 9}, {takes: 1}]}')).toMatchObject({
      status: 'succeeded',
      tasks: [
        {
          actions: [
            { status: 'timeout', ended_at: 3 },
            { status: 'succeeded', ended_at: 8 },
          ],
        },
      ],
    })
    const each = 'tasks: {a: {with: {items: "<% [1, 2] %>", concurrency: 1}, action: x.y, timeout: <% item() * 3 %>}}'
    expect(play(each, 'tasks: {a: {takes: 4}}')).toMatchObject({
      status: 'failed',
      tasks: [{ status: 'failed', actions: [{ timeout: 3, status: 'timeout', ended_at: 3 }] }],
    })
    expect(play(each, 'tasks: {a: {takes: 3}}')).toMatchObject({ status: 'succeeded', timed_out_after: null })
  })

  test('ends a workflow at its timeout, with its actions and its inquiries', () => {
    const late = `
timeout: 10
tasks:
  a: {action: x.y, next: [{do: b}]}
  b: {action: x.y}
  c: {action: core.ask}
output: [{n: 1}]
`
    const rehearsal = play(late, 'tasks: {a: {takes: 8}, b: {takes: 8}, c: {pending: true}}')
    expect(rehearsal).toMatchObject({
      status: 'timeout',
      output: null,
      errors: [],
      timed_out_after: 10,
      waits_for: [],
      problem: null,
    })
    expect(rehearsal.tasks.map(({ task, status, actions }) => [task, status, actions[0]?.ended_at])).toEqual([
      ['a', 'succeeded', 8],
      ['c', 'canceled', 10],
    ])
    const running = play(late, 'tasks: {a: {takes: 8}, b: {takes: 8}, c: {answer: 1}}')
    expect(running.tasks.map(({ task, status, actions }) => [task, status, actions[0]?.ended_at])).toEqual([
      ['a', 'succeeded', 8],
      ['c', 'succeeded', 0],
      ['b', 'canceled', 10],
    ])
    expect(rehearsal.differences).toEqual([{ path: 'status', expected: 'succeeded', actual: 'timeout' }])
    expect(play(late, 'tasks: {c: {answer: 1}, a: {takes: 8}, b: {takes: 2}}').status).toBe('succeeded')
    // One that has failed before is over.
    const failing = 'timeout: 10\ntasks: {a: {action: x.y}, c: {action: core.ask}}'
    expect(play(failing, 'tasks: {a: failed, c: {pending: true}}').status).toBe('failed')
    // It waits for nothing that would end by itself.
    expect(play(late, 'tasks: {c: {pending: true}}\nexpect: {status: timeout}').differences).toEqual([])
  })

  test('gives items their outcomes by position, and by attempt', () => {
    const items = `
input: [hosts]
tasks:
  each:
    with: {items: h in <% ctx(hosts) %>, concurrency: 2}
    action: x.ping host=<% item(h) %>
    retry: {count: 1}
    next: [{publish: [{codes: <% result().code %>}], do: noop}]
output: [{codes: <% ctx(codes) %>}]
`
    const rehearsal = play(
      items,
      'tasks: {each: {result: {code: 0}, items: {1: [{status: failed, result: {code: 7}}, {result: {code: 8}}]}}}',
      { hosts: ['a', 'b', 'c'] },
    )
    expect(rehearsal).toMatchObject({ status: 'succeeded', output: { codes: [0, 8, 0] } })
    expect(rehearsal.tasks[0]).toMatchObject({ items: 3, status: 'succeeded' })
    expect(rehearsal.tasks[0]?.actions.map(({ item, attempt, status }) => [item, attempt, status])).toEqual([
      [0, 1, 'succeeded'],
      [1, 1, 'failed'],
      [2, 1, 'succeeded'],
      [0, 2, 'succeeded'],
      [1, 2, 'succeeded'],
      [2, 2, 'succeeded'],
    ])
  })

  test('passes a cycle as often as its outcomes say, and stops one without end', () => {
    const cycle = `
tasks:
  start: {next: [{do: poll}]}
  poll:
    action: x.poll
    next:
      - {when: <% result().get(done) = true %>, do: end}
      - {when: <% result().get(done) != true %>, do: poll}
  end: {action: x.y}
`
    const passes = (mocks?: string): number => play(cycle, mocks).tasks.filter(({ task }) => task === 'poll').length
    expect(passes('tasks: {poll: [{}, {}, {result: {done: true}}]}')).toBe(3)
    expect(play(cycle)).toMatchObject({
      status: 'running',
      problem: expect.stringContaining('10000 actions') as string,
    })
  })

  test('waits for an answer, with and without one', () => {
    const ask = `
tasks:
  ask: {action: core.ask, next: [{when: "<% result().get(response, dict()).get(ok) %>", do: go}]}
  go: {action: x.y}
`
    expect(play(ask, 'tasks: {ask: {answer: {ok: true}}}')).toMatchObject({
      status: 'succeeded',
      tasks: [{ task: 'ask', actions: [{ result: { response: { ok: true } } }] }, { task: 'go' }],
    })
    expect(play(ask, 'tasks: {ask: {pending: true}}')).toMatchObject({
      status: 'paused',
      tasks: [{ status: 'pending', actions: [{ status: 'pending', ended_at: null }] }],
      waits_for: [{ kind: 'answer', task: 'ask' }],
    })
    expect(play(ask, 'tasks: {ask: {pending: true, status: timeout}}')).toMatchObject({ status: 'failed', errors: [] })
  })

  test('refuses actions, and follows nothing then', () => {
    const rehearsal = play(deploy, 'tasks: {build: {refused: "InvalidActionReferencedException: no"}}')
    expect(rehearsal).toMatchObject({
      status: 'failed',
      errors: [
        { message: 'InvalidActionReferencedException: no', task_id: 'build' },
        { message: expect.stringContaining('"image" is undefined') as string },
      ],
      tasks: [{ status: 'failed', actions: [{ status: 'refused' }], transitions: [] }],
    })
  })

  test('reads the datastore and the context from the mocks', () => {
    const reading = `
vars: [{key: "<% svckv('system.region') %>"}, {own: "<% svckv('token', decrypt => true) %>"}]
tasks: {a: {action: x.y, input: {user: <% ctx(svc).user %>, parent: <% ctx(parent).get(id) %>}}}
output: [{key: <% ctx(key) %>}, {own: <% ctx(own) %>}]
`
    const mocks = `
datastore: {system.region: eu, token: t}
context: {svc: {user: ana}, parent: {id: p}}
`
    expect(play(reading, mocks)).toMatchObject({
      output: { key: 'eu', own: 't' },
      tasks: [{ actions: [{ input: { user: 'ana', parent: 'p' } }] }],
    })
    expect(play(reading)).toMatchObject({
      status: 'failed',
      errors: [
        { message: expect.stringContaining('"region" does not exist in the datastore') as string },
        { message: expect.stringContaining('"tester:token" does not exist in the datastore') as string },
      ],
    })
  })

  test('keeps splits apart by their routes', () => {
    const split = `
tasks:
  a: {next: [{do: c}]}
  b: {next: [{do: c}]}
  c: {action: x.y, next: [{do: d}]}
  d: {action: x.y}
`
    expect(play(split).tasks.map(({ task, route }) => `${task}${route}`)).toEqual(['a0', 'b0', 'c1', 'c2', 'd1', 'd2'])
  })

  test('gives the same each time', () => {
    expect(play(deploy)).toEqual(play(deploy))
  })
})

describe('a rehearsal of an action chain', () => {
  const chain = `
vars: {port: "{{ svckv.system.port }}"}
chain:
  - {name: build, ref: ci.build, parameters: {version: "{{ version }}", port: "{{ port }}"}, publish: {image: "{{ build.image }}"}, on-success: ship, on-failure: tell}
  - {name: ship, ref: ci.ship, parameters: {image: "{{ image }}"}}
  - {name: tell, ref: core.noop}
`

  test('shows the nodes, the ways taken and what was published', () => {
    const mocks = `
input: {version: 3}
datastore: {system.port: 80}
tasks: {build: {result: {image: i1}}}
expect: {tasks: [build, ship], output: {image: i1}}
`
    expect(play(chain, mocks)).toMatchObject({
      status: 'succeeded',
      output: { image: 'i1' },
      without_mock: ['ship'],
      differences: [],
      tasks: [
        {
          task: 'build',
          actions: [{ input: { version: '3', port: '80' } }],
          transitions: [
            { when: 'on-success', is_taken: true, do: ['ship'], published: { image: 'i1' } },
            { when: 'on-failure', is_taken: false, do: ['tell'] },
          ],
        },
        {
          task: 'ship',
          actions: [{ input: { image: 'i1' } }],
          transitions: [{ when: 'on-success', is_taken: true, do: [], published: {} }],
        },
      ],
    })
  })

  test('follows failures, and shows templates that fail', () => {
    const failing = play(chain, 'datastore: {system.port: 80}\ntasks: {build: {status: failed, result: {image: i}}}', {
      version: 1,
    })
    expect(failing).toMatchObject({ status: 'succeeded', tasks: [{ task: 'build' }, { task: 'tell' }] })
    expect(play(chain)).toMatchObject({
      status: 'failed',
      output: {},
      errors: [{ message: expect.stringContaining('vars') as string }],
    })
    expect(play(chain, 'datastore: {system.port: 80}')).toMatchObject({
      status: 'failed',
      errors: [{ message: expect.stringContaining("'version' is undefined") as string }],
    })
  })

  test('knows mistakes and misspelled nodes', () => {
    expect(rehearseText({ text: 'chain: [{name: a, ref: x.y, on-success: b}]', input: {} })).toMatchObject({
      mistakes: [{ message: expect.stringContaining('"b"') as string }],
    })
    expect(rehearseText({ text: chain, mocks: { name: 'm.yaml', text: 'tasks: {shp: {}}' }, input: {} })).toEqual({
      problem: 'm.yaml:1 (tasks.shp): the workflow has no task "shp"; did you mean "ship"?',
    })
  })
})

describe('a definition with mistakes', () => {
  test('is not rehearsed', () => {
    expect(rehearseText({ text: 'tasks: {a: {next: [{do: b}]}}', input: {} })).toMatchObject({
      mistakes: [{ type: 'semantic', message: 'The task "b" is not defined.' }],
    })
    expect(rehearseText({ text: 'tasks: 1', input: {} })).toMatchObject({
      problem: expect.stringContaining('Failed to load workflow definition because') as string,
    })
  })
})

describe('expectations', () => {
  const differences = (expected: string, mocks = '{}'): string[] =>
    play(deploy, `{tasks: ${mocks}, expect: ${expected}}`, { version: 3 }).differences.map(
      ({ path, expected: wanted, actual }) => `${path}: ${JSON.stringify(wanted)}, not ${JSON.stringify(actual)}`,
    )
  const good = '{build: {result: {image: i}}, scan: {result: {score: 9}}}'

  test('that are met leave no difference', () => {
    expect(
      differences(
        `{status: succeeded, output: {image: i}, errors: [], tasks: [
          {task: build, runs: 1, input: {version: 3}, published: {image: i}, status: succeeded, route: 0, action: ci.build},
          scan, test, ship]}`,
        good,
      ),
    ).toEqual([])
  })

  test('differ place by place', () => {
    expect(differences('{output: {image: j, tag: 1}}', good)).toEqual([
      'output.image: "j", not "i"',
      'output.tag: 1, not undefined',
    ])
    expect(differences('{tasks: [build, test, scan, ship]}', good)).toEqual([
      'tasks: ["build","test","scan","ship"], not ["build","scan","test","ship"]',
    ])
    expect(differences('{tasks: [{task: build, runs: 2, input: {version: 4}}, scan, test, ship]}', good)).toEqual([
      'tasks[0] (build).runs: 2, not 1',
      'tasks[0] (build).input.version: 4, not 3',
    ])
  })

  test('about errors: part of the message, or keys of the entry', () => {
    const failing = '{build: {status: failed, result: {code: 3}}}'
    expect(differences('{status: failed, errors: [Execution failed, {task_id: fail}, image]}', failing)).toEqual([])
    expect(
      differences('{status: failed, errors: [{task_id: build, result: {code: 4}}, nothing, image]}', failing),
    ).toEqual([
      'errors[0].result.code: 4, not 3',
      'errors[1]: "nothing", not "Execution failed. See result for details."',
    ])
    expect(differences('{status: failed, errors: []}', failing)).toHaveLength(1)
  })

  test('without a status: that the workflow succeeds', () => {
    expect(differences('{tasks: [build]}', '{build: failed}')).toEqual(['status: "succeeded", not "failed"'])
    expect(play(deploy, 'tasks: {build: failed}').differences).toHaveLength(1)
  })
})

describe('mocks that cannot be used', () => {
  const items = 'tasks: {each: {with: "<% list(1) %>", action: x.y}, build: {action: x.y}, idle: {next: [{do: noop}]}}'
  const problem = (mocks: string): unknown => {
    const answer = rehearseText({ text: items, mocks: { name: 'm.yaml', text: mocks }, input: {} })
    return 'problem' in answer ? answer.problem : answer
  }

  test.each([
    ['tasks:\n  biuld: {}', 'm.yaml:2 (tasks.biuld): the workflow has no task "biuld"; did you mean "build"?'],
    ['tasks: {zzz: {}}', 'm.yaml:1 (tasks.zzz): the workflow has no task "zzz"'],
    [
      'tasks: {idle: {next: [{do: noop}]}}',
      'm.yaml:1 (tasks.idle): the task has no action: it succeeds by itself. Remove its mock',
    ],
    ['tasks: {build: {items: [{}]}}', 'm.yaml:1 (tasks.build.items): the task has no items: it has no "with"'],
    [
      'tasks: {each: {items: {x: {}}}}',
      'm.yaml:1 (tasks.each.items.x): it must be the position of an item, a whole number from 0',
    ],
    [
      'tasks:\n  build:\n    - {status: fail}',
      "m.yaml:3 (tasks.build.0.status): it is 'fail', and one of these is needed: succeeded, failed, timeout, abandoned, canceled",
    ],
    [
      'tasks: {build: {reslt: 1}}',
      'm.yaml:1 (tasks.build.reslt): the key "reslt" is unknown; did you mean "result"? Known keys: status, result, takes, pending, answer, refused',
    ],
    ['tasks: {build: []}', 'm.yaml:1 (tasks.build): the list of outcomes is empty'],
    [
      'tasks: {build: {takes: -1}}',
      'm.yaml:1 (tasks.build.takes): it must be a number of seconds from 0 to 1000000000',
    ],
    ['expect: {tasks: [biuld]}', 'm.yaml:1 (expect.tasks.0): the workflow has no task "biuld"; did you mean "build"?'],
    [
      'expect: {status: good}',
      "m.yaml:1 (expect.status): it is 'good', and one of these is needed: succeeded, failed, timeout, canceled, paused, running",
    ],
    ['input: {x: 1}', 'm.yaml:1 (input.x): the workflow has no input "x"'],
    ['[]', 'm.yaml: it is [], and a mapping is needed'],
    ['a: [', expect.stringContaining('m.yaml:')],
  ])('%s', (mocks, message) => {
    expect(problem(mocks)).toEqual(message)
  })
})

test('the example of the documentation gives what it expects', () => {
  const page = readFileSync(new URL('../../../../docs/workflows.md', import.meta.url), 'utf8')
  const section = page.slice(page.indexOf('## Test a workflow without running it'))
  const [definition = '', mocks] = Array.from(section.matchAll(/^```yaml\n(.*?)^```/gms), ([, text]) => text)
  expect(play(definition, mocks)).toMatchObject({ status: 'succeeded', without_mock: ['announce'], differences: [] })
})
