import { expect, test } from 'vitest'
import { Budget, BudgetExhausted, defaultLimits as templateLimits } from '../../../lib/template/index.ts'
import { apply, defaultLimits, emptyState, type Command, type Event, type State } from '../conductor/index.ts'
import { conductChain, createChainMemory, type ChainOutside, type ChainWorld } from './conduct.ts'
import { readChain, type Chain } from './definition.ts'
import { FIRST_VARIABLES, requestOf, resultOf, variablesFrom, type ChainResult } from './result.ts'
import { renderValue } from './template.ts'

function chainOf(text: string): Chain {
  const chain = readChain(text, { action: 'flow', file: 'flow.yaml' })
  if ('problem' in chain) throw new Error(chain.problem)
  return chain
}

/** A run in which the test ends the actions. */
class Run {
  readonly chain: Chain
  state: State = emptyState()
  commands: readonly Command[] = []
  log: unknown[] = []
  refused: string | undefined
  readonly results = new Map<number, unknown>()
  readonly world: ChainWorld

  constructor(text: string, outside: Partial<ChainOutside> = {}, world: Partial<ChainWorld> = {}) {
    this.chain = chainOf(text)
    this.world = {
      render: (value, scope) => renderValue(value, scope, new Budget(templateLimits)),
      memory: createChainMemory(),
      outside: {
        hasAction: () => true,
        templates: () => ({ variables: {} }),
        resultOf: (instance) => this.results.get(instance) ?? null,
        ...outside,
      },
      ...world,
    }
  }

  send(event: Event): this {
    const outcome = conductChain(this.chain, this.state, event, this.world)
    this.refused = outcome.refused
    this.commands = outcome.commands
    this.log = [...outcome.log]
    if (outcome.changes !== undefined) this.state = apply(this.state, outcome.changes)
    if (event.kind === 'ended') this.results.set(event.instance, event.result)
    return this
  }

  start(input: Record<string, unknown> = {}): this {
    return this.send({ kind: 'started', input })
  }

  end(
    instance: number,
    status: 'succeeded' | 'failed' | 'timeout' | 'canceled' = 'succeeded',
    result: unknown = {},
  ): this {
    return this.send({ kind: 'ended', instance, status, result })
  }

  get status(): string {
    return this.state.workflow.status
  }

  /** Task and input of the node that the last event has started. */
  get started(): unknown[] {
    return this.commands.flatMap((command) => (command.kind === 'start' ? [[command.task, command.input]] : []))
  }

  get result(): ChainResult {
    return resultOf(this.chain, this.state, ({ id }) => {
      const result = this.results.get(id)
      const child = { execution_id: 'x', liveaction_id: 'l', workflow: null, state: 'succeeded', result }
      return { created_at: '', updated_at: '', child: result === undefined ? undefined : child }
    }) as ChainResult // no test with it breaks off
  }
}

const three = `
chain:
  - {name: a, ref: x.y, on-success: b, on-failure: c, publish: {p: "{{ a.n }}"}}
  - {name: b, ref: x.y, parameters: {v: "{{ p }}"}}
  - {name: c, ref: x.y}
`

test('the rows say what ran and why: order, how it came about, what it published', () => {
  const run = new Run(three).start().end(0, 'succeeded', { n: 1 })
  expect(run.started).toEqual([['b', { v: '1' }]])
  expect(run.log).toEqual([
    {
      kind: 'transition',
      instance: 0,
      transition: 'b__t0',
      isTaken: true,
      value: true,
      published: { p: '1' },
      readings: [],
      errors: [],
    },
    {
      kind: 'transition',
      instance: 0,
      transition: 'c__t0',
      isTaken: false,
      value: false,
      published: {},
      readings: [],
      errors: [],
    },
  ])
  run.end(1)
  expect(run.commands).toEqual([
    { kind: 'status', status: 'succeeded' },
    { kind: 'finish', status: 'succeeded', output: null },
  ])
  expect(
    [...run.state.instances.values()].map(({ order, status, taken, previous }) => ({ order, status, taken, previous })),
  ).toEqual([
    { order: 0, status: 'succeeded', taken: [0], previous: [] },
    { order: 1, status: 'succeeded', taken: [], previous: [{ from: 0, transition: 0, context: 2 }] },
  ])
  expect(run.state.workflow).toMatchObject({ active: 0, held: 0, ready: 0, starts: 2 })
})

test('a later event of an action, and events after the end, change nothing', () => {
  const run = new Run(three).start().end(0, 'succeeded', { n: 1 }).end(0, 'failed', { n: 2 })
  expect(run.state.instances.size).toBe(2)
  run.end(1).send({ kind: 'cancel' })
  expect([run.refused, run.status]).toEqual(['completed', 'succeeded'])
  run.send({ kind: 'rerun', tasks: ['a'], reset: [] })
  expect(run.refused).toContain('Re-run the whole chain')
})

test('vars and published values hide results, results hide parameters', () => {
  const run = new Run(
    '{chain: [{name: a, ref: x.y, parameters: {v: "{{ a }}"}, publish: {b: published}, on-success: b}, {name: b, ref: x.y, parameters: {v: "{{ a.n }} {{ b }} {{ c }}"}}], vars: {c: "{{ c }}!"}}',
  ).start({ a: 'parameter', b: 'parameter', c: 'c' })
  expect(run.started).toEqual([['a', { v: 'parameter' }]])
  run.end(0, 'succeeded', { n: 1 })
  expect(run.started).toEqual([['b', { v: '1 published c!' }]])
  expect(variablesFrom(run.state, FIRST_VARIABLES)).toEqual({ c: 'c!', b: 'published' })
})

test('a published object takes the place of an earlier one', () => {
  const run = new Run(
    '{vars: {d: {a: 1}}, chain: [{name: a, ref: x.y, publish: {d: {b: 2}}, on-success: b}, {name: b, ref: x.y, parameters: {v: "{{ d }}"}}]}',
  )
    .start()
    .end(0)
  expect(run.started).toEqual([['b', { v: "{'b': 2}" }]])
})

test('parameters and publish see the items of the system, vars those of the user as well', () => {
  const templates: ChainOutside['templates'] = () => ({
    variables: {
      svckv: { system: { k: 's' }, user: { k: 'u' } },
      system: { k: 's' },
      config_context: { c: 1 },
      action_context: { parent: { user: 'ana' } },
    },
    filters: { shout: ([value]) => `${String(value)}!` },
  })
  const texts = '{{ svckv.system.k }}{{ system.k | shout }}{{ config_context.c }}{{ action_context.parent.user }}'
  const run = new Run(
    `{vars: {u: "{{ svckv.user.k | shout }}"}, chain: [{name: a, ref: x.y, parameters: {v: "${texts}{{ u }}"}}]}`,
    { templates },
  )
  expect(run.start().started).toEqual([['a', { v: 'ss!1anau!' }]])
  const refused = new Run('{vars: {u: "{{ system.k }}"}, chain: [{name: a, ref: x.y}]}', { templates }).start()
  expect(refused.result).toMatchObject({
    tasks: [],
    published: {},
    error: "Failed initializing ``vars`` in chain.. 'system' is undefined",
  })
})

test('all results: names in the order in which they first ran, the latest of each', () => {
  const run = new Run(
    '{default: z, chain: [{name: a, ref: x.y, on-success: z, parameters: {r: "{{ __results }}"}}, {name: z, ref: x.y, on-success: a, parameters: {k: "{{ __results.keys() | list }}"}}]}',
  )
    .start()
    .end(0, 'succeeded', { n: 1 })
    .end(1, 'succeeded', { n: 2 })
    .end(2, 'succeeded', { n: 3 })
  expect(run.started).toEqual([['a', { r: "{'z': {'n': 3}, 'a': {'n': 2}}" }]])
  run.end(3)
  expect(run.started).toEqual([['z', { k: "['z', 'a']" }]])
})

test('the message about a value that is no text shows it as JSON', () => {
  const run = new Run('{chain: [{name: a, ref: x.y, parameters: {l: [1, "{{ x }}"]}}]}').start()
  expect(run.result.error).toBe(
    'Failed to run task "a". Parameter rendering failed.. Failed rendering value for action parameter "l" in task "a" (template string=[1, "{{ x }}"]): \'x\' is undefined',
  )
  expect([run.status, run.result.tasks]).toEqual(['failed', []])
})

test('an unknown action fails the chain, and nothing follows', () => {
  const run = new Run(three, { hasAction: (ref) => ref !== 'x.y' }).start()
  expect(run.result).toEqual({
    tasks: [],
    published: {},
    error:
      'Failed to run task "a". Action with reference "x.y" doesn\'t exist.. Task :: a - Action with ref x.y not registered.',
    traceback: expect.any(String),
  })
})

test.each([
  ['before it is requested', true],
  ['after it is requested', false],
])('an action that is refused %s is a failure, whose result later nodes see', (_, isEarly) => {
  const chain =
    '{chain: [{name: a, ref: x.a, on-failure: b, publish: {p: 1}}, {name: b, ref: x.b, parameters: {v: "{{ a.error }}"}}]}'
  const text = 'the action is disabled'
  const run = new Run(
    chain,
    isEarly ? { whyRefused: ({ task }) => (task === 'a' ? { text, isConversion: false } : undefined) } : {},
  ).start()
  if (!isEarly) run.send({ kind: 'refused', instance: 0, message: `ValueError: ${text}` })
  const error = 'Failed running task "a".. the action is disabled'
  expect(run.started).toEqual([['b', { v: error }]])
  run.end(1)
  expect(run.status).toBe('succeeded')
  expect(run.result.tasks).toMatchObject([
    { name: 'a', state: 'failed', execution_id: null, result: { error, traceback: error } },
    { name: 'b', state: 'succeeded' },
  ])
  expect(run.result).not.toHaveProperty('error')
})

test('a parameter that cannot be converted breaks the chain off', () => {
  const run = new Run(three, {
    whyRefused: ({ task }) => (task === 'b' ? { text: 'no number', isConversion: true } : undefined),
  })
  run.start().end(0, 'succeeded', { n: 1 })
  expect([run.status, run.result]).toEqual(['failed', { error: 'no number', traceback: 'no number' }])
})

test('templates in the name of the next node are not rendered', () => {
  const run = new Run('{chain: [{name: a, ref: x.y, on-success: "{{ x }}"}]}').start().end(0)
  expect([run.status, run.result.error, run.result.tasks.length]).toEqual([
    'failed',
    'Failed to get next node "a".. Unable to find node with name "{{ x }}".',
    1,
  ])
})

test('publish that fails breaks the chain off, unless it is canceled', () => {
  expect(new Run(three).start().end(0).result).toEqual({
    error: expect.stringContaining('Failed rendering value for publish parameter "p" in task "a"'),
    traceback: expect.any(String),
  })
  const canceled = new Run(three).start().send({ kind: 'cancel' })
  expect(canceled.commands).toEqual([
    { kind: 'cascade', request: 'cancel' },
    { kind: 'status', status: 'canceling' },
  ])
  canceled.end(0)
  expect([canceled.status, canceled.result]).toEqual([
    'canceled',
    { tasks: [expect.objectContaining({ name: 'a' })], published: {} },
  ])
})

test('what a node publishes before a pause is seen after it', () => {
  const run = new Run(three).start().send({ kind: 'pause' }).end(0, 'succeeded', { n: 1 })
  expect([run.status, variablesFrom(run.state, FIRST_VARIABLES), run.state.workflow.ready]).toEqual([
    'paused',
    { p: '1' },
    0,
  ])
  run.send({ kind: 'continue' })
  expect(run.status).toBe('paused')
  run.send({ kind: 'resume' })
  expect([run.status, run.started]).toEqual(['running', [['b', { v: '1' }]]])
})

test('a chain that pauses and is resumed before its node ends goes on', () => {
  const run = new Run(three).start().send({ kind: 'pause' }).send({ kind: 'resume' })
  expect(run.status).toBe('resuming')
  run.end(0, 'succeeded', { n: 1 })
  expect([run.status, run.started]).toEqual(['running', [['b', { v: '1' }]]])
})

test('a paused chain is canceled at once, also one that waits for a person', () => {
  expect(
    new Run(three).start().send({ kind: 'pause' }).end(0, 'succeeded', { n: 1 }).send({ kind: 'cancel' }).status,
  ).toBe('canceled')
  expect(new Run(three).start().send({ kind: 'pending', instance: 0 }).send({ kind: 'cancel' }).status).toBe('canceled')
})

test('an answered inquiry goes on; it publishes its answer, not what it had before', () => {
  const run = new Run(three).start().send({ kind: 'pending', instance: 0 })
  expect([run.status, run.state.workflow.held]).toEqual(['paused', 1])
  run.send({ kind: 'answered', instance: 0 }).end(0, 'succeeded', { n: 1 })
  expect([run.status, run.started]).toEqual(['running', [['b', { v: '1' }]]])
})

test('a resume does not change a chain that waits for a person, and is passed on to a paused child', () => {
  const waiting = new Run(three).start().send({ kind: 'pending', instance: 0 }).send({ kind: 'resume' })
  expect(waiting.status).toBe('paused')
  expect(new Run(three).start().send({ kind: 'child paused', instance: 0 }).send({ kind: 'resume' }).status).toBe(
    'resuming',
  )
})

test('a paused child that goes on by itself takes the chain with it', () => {
  const run = new Run(three).start().send({ kind: 'child paused', instance: 0 })
  expect(run.status).toBe('paused')
  expect(run.send({ kind: 'child resumed', instance: 0 }).status).toBe('running')
  expect(run.end(0, 'failed').status).toBe('failed')
})

test('a node that times out last makes the chain time out; after a pause it is a failure', () => {
  const text = '{chain: [{name: a, ref: x.y}]}'
  expect(new Run(text).start().end(0, 'timeout').status).toBe('timeout')
  expect(new Run(text).start().send({ kind: 'pause' }).end(0, 'timeout').send({ kind: 'resume' }).status).toBe('failed')
})

test('a loop of refused nodes is cut into calls, and ends at the limit of a run', () => {
  const text = '{chain: [{name: a, ref: x.y, on-failure: a}]}'
  const limits = { ...defaultLimits, maxInstances: 25, maxStartsPerTurn: 10 }
  const run = new Run(text, { whyRefused: () => ({ text: 'no', isConversion: false }) }, { limits }).start()
  expect([run.state.instances.size, run.state.workflow.ready, run.commands[0]]).toEqual([11, 1, { kind: 'continue' }])
  run.send({ kind: 'continue' }).send({ kind: 'continue' })
  expect([run.status, run.result.error, run.result.tasks.length]).toEqual([
    'failed',
    'The chain has started 25 nodes, the most that one run may have.',
    25,
  ])
})

test('a pause between two calls holds the node that waits', () => {
  const limits = { ...defaultLimits, maxStartsPerTurn: 1 }
  const refuse: ChainOutside['whyRefused'] = ({ instance }) =>
    instance === 0 ? { text: 'no', isConversion: false } : undefined
  const run = new Run(
    '{chain: [{name: a, ref: x.y, on-failure: b}, {name: b, ref: x.y}]}',
    { whyRefused: refuse },
    { limits },
  )
  run.start().send({ kind: 'pause' }).send({ kind: 'continue' })
  expect([run.status, run.started]).toEqual(['paused', []])
  run.send({ kind: 'resume' })
  expect([run.status, run.started]).toEqual(['running', [['b', {}]]])
})

test('a budget that is exhausted ends the call, which can be repeated', () => {
  const text = '{chain: [{name: a, ref: x.y, parameters: {v: "{{ 1 + 1 }}"}}]}'
  let limits = { ...templateLimits, maxSteps: 1 }
  const run = new Run(text, {}, { render: (value, scope) => renderValue(value, scope, new Budget(limits)) })
  expect(() => run.start()).toThrow(BudgetExhausted)
  expect(run.status).toBe('requested')
  limits = templateLimits
  expect(run.start().started).toEqual([['a', { v: '2' }]])
})

test('a node asks for its own notification, else for that of the chain, unless it is skipped', () => {
  const chain = chainOf(
    '{chain: [{name: a, ref: x.y, params: {v: 1}, notify: {on-complete: {message: own}}, on-success: b}, {name: b, ref: x.y, notify: {other: 1}}]}',
  )
  const notify = { 'on-failure': { message: 'chain' } }
  expect([0, 1].map((task) => requestOf(chain, { task }, notify, []).notify)).toEqual([
    { 'on-complete': { message: 'own' } },
    notify,
  ])
  expect([0, 1].map((task) => requestOf(chain, { task }, notify, ['a', 'b']).notify)).toEqual([undefined, undefined])
  expect(requestOf(chain, { task: 0 }, undefined).chain).toEqual({
    name: 'a',
    ref: 'x.y',
    params: { v: 1 },
    parameters: null,
    on_success: 'b',
    on_failure: null,
    publish: null,
    notify: { 'on-complete': { message: 'own' } },
  })
})

test('without display_published the result has no published values', () => {
  const run = new Run(three).start().end(0, 'succeeded', { n: 1 }).end(1)
  expect(run.result.published).toEqual({ p: '1' })
  expect(
    resultOf(run.chain, run.state, () => ({ created_at: '', updated_at: '', child: undefined }), false),
  ).not.toHaveProperty('published')
})

const growing = `
vars: {all: ""}
chain:
  - name: turn
    ref: core.noop
    publish: {all: "{{ all }}{{ turn.text }}"}
    on-success: turn
  `

const many = `
chain:
  - name: first
    ref: core.noop
    publish: {a: "{{ first.text }}"}
    on-success: second
  - name: second
    ref: core.noop
    publish: {b: "{{ second.text }}"}
    on-success: first
`

/** @returns nodes that ran until the chain ended */
function turnsOf(
  text: string,
  limits: Partial<typeof defaultLimits>,
  input: Record<string, unknown> = {},
): [number, Run] {
  const run = new Run(text, {}, { limits: { ...defaultLimits, ...limits } }).start(input)
  let turns = 0
  for (; run.state.workflow.status === 'running' && turns < 1000; turns++) {
    const instance = run.state.workflow.instances - 1
    run.results.set(instance, { text: 'x'.repeat(100) })
    run.end(instance, 'succeeded', { text: 'x'.repeat(100) })
  }
  return [turns, run]
}

test('variables that a node sees are limited as those of a workflow', () => {
  const [turns, run] = turnsOf(growing, { maxContextSize: 1050 })
  expect(turns).toBe(11)
  expect(run.state.workflow).toMatchObject({
    status: 'failed',
    output: { error: expect.stringMatching(/^LimitError: The variables of the workflow would have/) as string },
  })
})

test('what replaces another value counts once, and all that a chain publishes is limited too', () => {
  const [turns, run] = turnsOf(many, { maxContextSize: 300, maxPublished: 10_000 })
  expect(turns).toBeGreaterThan(80)
  expect(run.state.workflow).toMatchObject({
    status: 'failed',
    output: { error: expect.stringMatching(/^LimitError: The workflow has published/) as string },
  })
})

test('parameters and vars of a chain count', () => {
  const [, run] = turnsOf(growing, { maxContextSize: 1050 }, { text: 'x'.repeat(2000) })
  expect(run.state.workflow.status).toBe('failed')
  expect([...run.state.errors.values()].map(({ entry }) => entry.message)).toEqual([
    expect.stringMatching(/^LimitError: The variables of the workflow would have/),
  ])
})
