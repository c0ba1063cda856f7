import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { createRandom, type Random } from '../../../tests/helpers/random.ts'
import { Budget, defaultLimits } from '../../lib/template/index.ts'
import { pythonYamlSchema } from '../../lib/text/index.ts'
import {
  apply,
  conduct,
  createMemory,
  emptyState,
  isCompleted,
  review,
  type EndStatus,
  type Event,
  type LogEntry,
  type Part,
  type StartCommand,
  type State,
  type World,
} from './conductor/index.ts'
import { conductChain, readChain, renderValue, reviewChain, type ChainWorld } from './chain/index.ts'
import { readDefinition } from './definition/model.ts'
import { explain, type ExplainOptions } from './explain.ts'
import { evaluate } from './expressions/index.ts'
import type { WorkflowExplanation } from './types.ts'

/** A run whose actions are ended by hand. */
class Run {
  state: State = emptyState()
  readonly running: StartCommand[] = []
  readonly log: LogEntry[] = []
  readonly definition
  readonly #input: Record<string, unknown>
  readonly #results = new Map<string, unknown>()
  readonly #world: World

  constructor(text: string, input: Record<string, unknown> = {}) {
    this.definition = readDefinition(load(text, { schema: pythonYamlSchema }))
    this.#input = input
    this.#world = {
      memory: createMemory(),
      evaluate: (value, scope, readings) =>
        evaluate(value, scope, {
          budget: new Budget(defaultLimits),
          ...(readings === undefined ? {} : { readings }),
        }),
      outside: {
        environment: { svc: { user: 'ana' } },
        startEnvironment: { svc: { user: 'ana' } },
        resultOf: (instance, item) => this.#results.get(`${instance}/${item ?? ''}`) ?? null,
        recordOf: ({ id }) => ({ id: String(id), workflowExecution: 'w', startTimestamp: '', endTimestamp: null }),
        readKey: () => undefined,
      },
    }
    this.send({ kind: 'started', input })
  }

  send(event: Event): void {
    const outcome = conduct(this.definition, this.state, event, this.#world)
    if (outcome.changes === undefined) return
    this.state = apply(this.state, outcome.changes)
    this.log.push(...outcome.log)
    if (event.kind === 'ended') this.#results.set(`${event.instance}/${event.item ?? ''}`, event.result)
    for (const command of outcome.commands) if (command.kind === 'start') this.running.push(command)
  }

  /** What an event of the oldest action of the task is about. */
  of(task: string, item?: number): { instance: number; attempt: number; item?: number } {
    const command = this.running.findLast((each) => each.task === task && each.item === item)
    if (command === undefined) throw new Error(`${task} does not run`)
    return { instance: command.instance, attempt: command.attempt, ...(item === undefined ? {} : { item }) }
  }

  end(task: string, result: unknown = {}, status: 'succeeded' | 'failed' = 'succeeded', item?: number): void {
    this.send({ kind: 'ended', ...this.of(task, item), status, result })
  }

  explain(options: Partial<ExplainOptions> = {}): WorkflowExplanation {
    const { definition, state } = this
    return explain({
      definition,
      state,
      review: (part) => review(definition, state, part, this.#world),
      input: this.#input,
      ...options,
    })
  }
}

const fork = `
input: [limit]
tasks:
  a:
    action: x.y
    next:
      - {when: "<% result().n < ctx(limit) %>", publish: [{n: "<% result().n %>"}], do: [b, c]}
      - {when: "<% result().n >= ctx(limit) %>", do: fail}
  b: {action: x.y, next: [{when: "<% succeeded() %>", do: end}]}
  c: {action: x.y, next: [{when: "<% result().ok %>", do: end}]}
  end: {join: all, action: x.y}
`

/** Of a chain whose nodes end at once. */
function explainChain(
  text: string,
  outcomes: Readonly<Record<string, [status: EndStatus, result: unknown]>>,
  input = {},
) {
  const chain = readChain(text, { action: 'flow', file: 'flow.yaml' })
  if ('problem' in chain) throw new Error(chain.problem)
  const results = new Map<number, unknown>()
  const world: ChainWorld = {
    render: (value, scope) => renderValue(value, scope, new Budget(defaultLimits)),
    outside: {
      hasAction: () => true,
      templates: () => ({ variables: { svckv: { system: { token: 'kept' } }, action_context: { user: 'ana' } } }),
      resultOf: (instance) => results.get(instance) ?? null,
    },
  }
  let state = emptyState()
  const events: Event[] = [{ kind: 'started', input }]
  for (let event = events.shift(); event !== undefined; event = events.shift()) {
    const { changes, commands } = conductChain(chain, state, event, world)
    if (changes !== undefined) state = apply(state, changes)
    for (const command of commands) {
      if (command.kind !== 'start') continue
      const { instance, task } = command
      const [status, result] = outcomes[task] ?? ['succeeded', {}]
      results.set(instance, result)
      events.push({ kind: 'ended', instance, status, result })
    }
  }
  const review = (part: Part) => reviewChain(chain, state, part, world)
  return explain({ definition: chain.graph, state, review, input })
}

describe('of a chain', () => {
  test('each way has the values that the node has published, also the one that ends the chain', () => {
    const { tasks } = explainChain(
      `
chain:
  - {name: a, ref: x.y, publish: {n: "{{ a.n }}"}, on-success: b}
  - {name: b, ref: x.y, on-success: c, on-failure: d}
  - {name: c, ref: x.y}
  - {name: d, ref: x.y, publish: {n: "{{ n }}{{ d.n }}", list: ["{{ who }}"]}}
`,
      { a: ['succeeded', { n: 7 }], b: ['failed', {}], d: ['succeeded', { n: 8 }] },
      { who: 'Ada' },
    )
    expect(tasks.map(({ task, transitions }) => [task, transitions])).toMatchObject([
      ['a', [{ when: 'on-success', value: true, is_taken: true, do: ['b'], published: { n: '7' } }]],
      [
        'b',
        [
          { when: 'on-success', value: false, is_taken: false, do: ['c'], published: {} },
          { when: 'on-failure', value: true, is_taken: true, do: ['d'], published: {} },
        ],
      ],
      ['d', [{ when: 'on-success', is_taken: true, do: [], published: { n: '78', list: ['Ada'] } }]],
    ])
  })

  test('a node that runs again has what it published each time', () => {
    const cycle =
      'chain: [{name: a, ref: x.y, publish: {n: "{{ n }}1"}, on-success: b}, {name: b, ref: x.y}]\nvars: {n: "0"}'
    expect(explainChain(cycle, {}).tasks[0]?.transitions).toMatchObject([{ published: { n: '01' } }])
    const twice = `
vars: {n: ""}
chain:
  - {name: a, ref: x.y, publish: {n: "{{ n }}1"}, on-success: b}
  - {name: b, ref: x.y, on-success: c}
  - {name: c, ref: x.y, publish: {n: "{{ n }}2"}}
`
    const published = explainChain(twice, {}).tasks.map(({ transitions }) => transitions?.map((each) => each.published))
    expect(published).toEqual([[{ n: '1' }], [{}], [{ n: '12' }]])
  })

  test('a template that failed is shown with what it read', () => {
    const failureOf = (text: string, outcomes = {}) => explainChain(text, outcomes, { who: 'Ada' }).failures
    expect(
      failureOf(
        'chain: [{name: a, ref: x.y, on-success: b}, {name: b, ref: x.y, parameters: {m: "{{ a.n + who }}", x: "1"}}]',
        { a: ['succeeded', { n: 7 }] },
      ),
    ).toMatchObject([
      { task: 'b', expression: { m: '{{ a.n + who }}' }, variables: { a: { n: 7 }, who: 'Ada' }, reads: [] },
    ])
    expect(failureOf('chain: [{name: a, ref: x.y, publish: {m: ["{{ a.b.c }}"]}}]')).toMatchObject([
      { expression: { m: ['{{ a.b.c }}'] }, variables: { a: {} } },
    ])
    expect(failureOf('vars: {v: "{{ who.a.b }}"}\nchain: [{name: a, ref: x.y}]')).toMatchObject([
      { task: null, expression: { v: '{{ who.a.b }}' }, variables: { who: 'Ada' } },
    ])
    // The datastore is no variable of the run.
    const [failure] = failureOf('chain: [{name: a, ref: x.y, parameters: {m: "{{ svckv.system.token.x.y }}"}}]')
    expect(failure).toMatchObject({ expression: { m: '{{ svckv.system.token.x.y }}' }, variables: {} })
  })

  test('an action that could not start has no template that failed', () => {
    expect(explainChain('chain: [{name: a, ref: x.y}]', { a: ['failed', {}] })).toMatchObject({
      tasks: [{ task: 'a', status: 'failed', transitions: [{ when: 'on-failure', is_taken: true, do: [] }] }],
      failures: [],
    })
  })
})

describe('explain', () => {
  test('gives each transition with the value of its condition and what it read', () => {
    const run = new Run(fork, { limit: 3 })
    run.end('a', { n: 1 })
    expect(run.explain()).toMatchObject({
      status: 'running',
      message: 'The workflow waits for 2 actions.',
      tasks: [
        {
          task: 'a',
          route: 0,
          status: 'succeeded',
          join: null,
          transitions: [
            {
              when: '<% result().n < ctx(limit) %>',
              value: true,
              is_taken: true,
              do: ['b', 'c'],
              published: { n: 1 },
              reads: [
                { name: 'result', args: [], value: { n: 1 } },
                { name: 'ctx', args: ['limit'], value: 3 },
              ],
              errors: [],
              has_changed: false,
            },
            { value: false, is_taken: false, do: ['fail'], published: {} },
          ],
        },
      ],
    })
  })

  test('says who has come to a join and who is missing, while it waits and when it has started', () => {
    const run = new Run(fork, { limit: 3 })
    run.end('a', { n: 1 })
    run.end('b')
    expect(run.explain().waits_for).toMatchObject([
      { kind: 'action', task: 'c' },
      { kind: 'arrivals', task: 'end', join: { need: 2, arrived: ['b'], missing: ['c'] } },
    ])
    run.end('c', { ok: true })
    run.end('end')
    expect(run.explain({ task: 'end' })).toMatchObject({
      message: 'The workflow is over: succeeded.',
      tasks: [{ task: 'end', join: { need: 2, arrived: ['b', 'c'], missing: [] }, transitions: [] }],
      waits_for: [],
    })
  })

  test('shows the expression of an error and what it saw: in conditions, input, vars and output', () => {
    const run = new Run(fork, { limit: 3 })
    run.end('a', { n: 1 })
    run.end('c', {})
    expect(run.explain().failures).toMatchObject([
      {
        task: 'c',
        message: expect.stringContaining("Unable to resolve key 'ok'") as string,
        expression: '<% result().ok %>',
        variables: { limit: 3, n: 1 },
        reads: [{ name: 'result', value: {} }],
      },
    ])
    const input = new Run('tasks: {a: {action: x.y, input: {n: "<% ctx(nope) %>"}}}')
    expect(input.explain().failures).toMatchObject([{ task: 'a', expression: { n: '<% ctx(nope) %>' }, variables: {} }])
    const vars = new Run('{input: [v], vars: [{w: "<% ctx(v).x %>"}], tasks: {a: {action: x.y}}}', { v: { y: 1 } })
    expect(vars.explain().failures).toMatchObject([
      { task: null, expression: '<% ctx(v).x %>', variables: { v: { y: 1 } } },
    ])
    const output = new Run('{input: [v], tasks: {a: {next: [{do: noop}]}}, output: [{w: "<% ctx(v).x %>"}]}', { v: 1 })
    expect(output.explain().failures).toMatchObject([{ task: null, expression: '<% ctx(v).x %>', variables: { v: 1 } }])
    const retry = new Run('tasks: {a: {action: x.y, retry: {count: 1, when: "<% result().x %>"}}}')
    retry.end('a')
    expect(retry.explain().failures).toMatchObject([{ task: 'a', expression: '<% result().x %>' }])
    const action = new Run('tasks: {a: {action: x.y}}')
    action.end('a', { code: 1 }, 'failed')
    expect(action.explain().failures).toEqual([
      {
        task: 'a',
        route: 0,
        message: 'Execution failed. See result for details.',
        expression: null,
        variables: null,
        reads: [],
      },
    ])
  })

  test('names all that a workflow waits for', () => {
    const run = new Run(`
tasks:
  ask: {action: core.ask}
  child: {action: x.flow}
  each: {with: "<% list(1, 2, 3, 4) %>", action: x.y}
  late: {action: x.y, delay: 60}
  some: {with: {items: "<% list(1, 2) %>", concurrency: 1}, action: x.y}
`)
    run.send({ kind: 'pending', ...run.of('ask') })
    run.send({ kind: 'child paused', ...run.of('child') })
    run.end('each', {}, 'succeeded', 0)
    run.send({ kind: 'pending', ...run.of('each', 2) })
    run.send({ kind: 'pause' })
    const late = run.of('late').instance
    const explanation = run.explain({
      actionOf: (instance, item) => ({
        execution: `e${instance}.${item ?? ''}`,
        status: 'running',
        delayedUntil: instance === late ? '2030-01-01T00:00:00.000000Z' : null,
      }),
    })
    expect(explanation.waits_for.map(({ kind, task, item }) => [kind, task, item])).toEqual([
      ['resume', null, null],
      ['answer', 'ask', null],
      ['child', 'child', null],
      ['action', 'each', 1],
      ['answer', 'each', 2],
      ['action', 'each', 3],
      ['delay', 'late', null],
      ['action', 'some', 0],
      ['items', 'some', 1],
    ])
    expect(explanation.waits_for.find(({ kind }) => kind === 'delay')).toMatchObject({
      execution: `e${late}.`,
      until: '2030-01-01T00:00:00.000000Z',
    })
    expect(explanation.message).toBe(
      'The workflow waits for 1 resume request, 2 answers to inquiries, 1 paused child workflow, 3 actions, 1 delay, 1 task with further items.',
    )
    expect(run.explain({ limit: 2 })).toMatchObject({ waits_left_out: 7 })
    expect(run.explain({ task: 'ask' }).waits_for.map(({ kind }) => kind)).toEqual(['resume', 'answer'])
  })

  test('names tasks that start when a paused workflow goes on', () => {
    const run = new Run(`
tasks:
  a: {action: x.y, next: [{do: "b, c"}]}
  ask: {action: core.ask}
  b: {action: x.y}
  c: {action: x.y}
`)
    run.send({ kind: 'pending', ...run.of('ask') })
    run.end('a')
    const { message, waits_for: waits } = run.explain()
    expect(waits.map(({ kind, task, execution }) => [kind, task, execution])).toEqual([
      ['answer', 'ask', null],
      ['start', 'b', null],
      ['start', 'c', null],
    ])
    expect(message).toBe('The workflow waits for 1 answer to an inquiry, 2 tasks that are ready.')
  })

  test('says which actions of a task have not succeeded, and how they ended', () => {
    const run = new Run(`
tasks:
  one: {action: x.y}
  some: {with: "<% range(20) %>", action: x.y, next: [{do: noop}]}
  fine: {action: x.y}
`)
    for (let item = 0; item < 20; item++) run.end('some', {}, item % 2 === 0 ? 'failed' : 'succeeded', item)
    run.end('fine')
    run.end('one', {}, 'failed')
    const { tasks } = run.explain({
      actionOf: (_, item) => ({ execution: `e${item ?? ''}`, status: 'abandoned', delayedUntil: null }),
    })
    const each = tasks.map(({ task, unsuccessful }) => [task, unsuccessful])
    expect(Object.fromEntries(each)).toEqual({
      fine: [],
      one: [{ execution: 'e', item: null, status: 'abandoned' }],
      some: Array.from({ length: 10 }, (_, index) => ({
        execution: `e${index * 2}`,
        item: index * 2,
        status: 'abandoned',
      })),
    })
  })

  test('knows tasks whose action could not be started: nothing follows from them', () => {
    const run = new Run('tasks: {a: {action: x.y, next: [{when: "<% failed() %>", do: noop}]}}')
    run.send({ kind: 'refused', ...run.of('a'), message: 'X: no' })
    expect(run.explain()).toMatchObject({
      status: 'failed',
      tasks: [{ task: 'a', status: 'failed', transitions: null }],
      failures: [{ task: 'a', message: 'X: no', expression: null }],
    })
  })

  test('says so when a condition would decide otherwise now', () => {
    const run = new Run(`
tasks:
  a: {action: x.y, next: [{when: "<% task_status(b) = succeeded %>", do: noop}, {when: "<% true %>", do: noop}]}
  b: {action: x.y}
`)
    run.end('a')
    const flagOf = (): unknown[] =>
      (run.explain({ task: 'a' }).tasks[0]?.transitions ?? []).map((entry) => [entry.is_taken, entry.has_changed])
    expect(flagOf()).toEqual([
      [false, false],
      [true, false],
    ])
    run.end('b')
    expect(flagOf()).toEqual([
      [false, true],
      [true, false],
    ])
  })

  test('masks what comes from the run in one place, and nothing else', () => {
    const run = new Run(fork, { limit: 'hunter2' })
    const show = <Value>(value: Value): Value =>
      JSON.parse(JSON.stringify(value).replaceAll('hunter2', '****')) as Value
    run.end('a', { n: 'hunter2' })
    const text = JSON.stringify(run.explain({ show }))
    expect(text).not.toContain('hunter2')
    expect(text).toContain('****')
    const failing = new Run('{input: [v], tasks: {a: {action: x.y, input: {n: "<% ctx(v).x %>"}}}}', { v: 'hunter2' })
    expect(JSON.stringify(failing.explain())).toContain('hunter2')
    expect(JSON.stringify(failing.explain({ show }))).not.toContain('hunter2')
  })

  test('changes nothing, and gives the latest passes of many', () => {
    const run = new Run(`
tasks:
  start: {next: [{do: turn}]}
  turn: {action: x.y, next: [{when: "<% result().more %>", publish: [{n: "<% result().n %>"}], do: turn}]}
`)
    for (let n = 0; n < 150; n++) run.end('turn', { n, more: n < 149 })
    const before = structuredClone(run.state)
    const explanation = run.explain({ limit: 10, task: 'turn' })
    expect(run.state).toEqual(before)
    expect(explanation).toMatchObject({ status: 'succeeded', tasks_left_out: 140 })
    expect(explanation.tasks.map(({ transitions }) => transitions?.[0]?.published['n'])).toEqual([
      140,
      141,
      142,
      143,
      144,
      145,
      146,
      147,
      148,
      undefined,
    ])
  })
})

type Logged = Extract<LogEntry, { readonly kind: 'transition' }>

describe('explain and the conductor', () => {
  const conditions = [
    '<% succeeded() %>',
    '<% failed() %>',
    '<% result() > 4 %>',
    '<% ctx(n) > 3 %>',
    "{{ ctx('n') + result() > 5 }}",
    '<% result().x %>',
    '<% ctx(nope) %>',
  ] as const
  const statuses = [
    'succeeded',
    'failed',
    'succeeded',
    'timeout',
    'succeeded',
    'canceled',
  ] as const satisfies readonly EndStatus[]
  const values = [1, 5, '<% result() %>', '<% ctx(n) + 1 %>'] as const
  const names = ['a', 'b', 'c', 'd', 'e', 'f'] as const

  function randomWorkflow(random: Random): string {
    const tasks = names.map((name, index) => {
      const targets = [...names.slice(index + 1), 'noop', 'fail', 'continue'] as unknown as readonly [string]
      const next = Array.from({ length: random.below(4) }, () => ({
        ...(random.once(4) ? {} : { when: random.pick(conditions) }),
        ...(random.once(2) ? { publish: [{ n: random.pick<unknown>(values) }] } : {}),
        do: [...new Set([random.pick(targets), random.pick(targets)])],
      }))
      const task = {
        ...(random.once(5) ? {} : { action: 'x.y' }),
        ...(index > 1 && random.once(3) ? { join: random.pick<unknown>(['all', 1, 2]) } : {}),
        ...(random.once(5) ? { with: '<% list(1, 2) %>', action: 'x.y' } : {}),
        ...(random.once(5) ? { retry: { count: 1 } } : {}),
        next,
      }
      return [name, task]
    })
    return JSON.stringify({ vars: [{ n: 2 }], tasks: Object.fromEntries(tasks) as unknown })
  }

  function playAtRandom(random: Random): Run {
    const run = new Run(randomWorkflow(random))
    for (let steps = 0; steps < 100 && run.running.length > 0; steps++) {
      const [command] = run.running.splice(random.below(run.running.length), 1)
      if (command === undefined) break
      const { instance, attempt, item } = command
      const status = random.pick<EndStatus>(statuses)
      const end = { kind: 'ended', instance, attempt, status, result: random.below(10) } as const
      run.send(item === undefined ? end : { ...end, item })
    }
    return run
  }

  test('agree in random runs about each transition: taken, value, published variables, errors', () => {
    const seen = { taken: 0, notTaken: 0, failed: 0 }
    for (let seed = 0; seed < 150; seed++) {
      const run = playAtRandom(createRandom(seed))
      const { tasks } = run.explain({ limit: 1_000 })
      const rows = [...run.state.instances.values()]
        .filter(({ order, status }) => order !== null && isCompleted(status))
        .filter((row) => run.definition.tasks[row.task]?.kind === 'task')
        .sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
      expect(tasks).toHaveLength(rows.length)
      for (const [index, row] of rows.entries()) {
        const task = run.definition.tasks[row.task]
        const logged = run.log.filter((each): each is Logged => each.kind === 'transition' && each.instance === row.id)
        const explained = tasks[index]?.transitions ?? []
        expect(explained).toHaveLength(task?.next.length ?? 0)
        for (const [at, transition] of (task?.outgoing ?? []).entries()) {
          const entry = explained[transition.position]
          const said = logged.find(({ transition: id }) => id === transition.id)
          expect({ seed, ...entry }).toMatchObject({
            seed,
            is_taken: row.taken?.includes(at),
            has_changed: false,
            value: said?.value ?? null,
            published: said?.published,
            errors: said?.errors,
          })
          seen[said?.errors.length !== 0 ? 'failed' : said.isTaken ? 'taken' : 'notTaken'] += 1
        }
      }
    }
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(50)
  })
})
