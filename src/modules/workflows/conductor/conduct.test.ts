import { describe, expect, test } from 'vitest'
import { readAgain } from '../../../../tests/helpers/workflow-rows.ts'
import { readDefinition } from '../definition/model.ts'
import { ExpressionError, type Scope } from '../expressions/index.ts'
import {
  apply,
  broken,
  conduct,
  createMemory,
  defaultLimits,
  emptyState,
  type Event,
  type Limits,
  type LogEntry,
  type Outcome,
  type StartCommand,
  type State,
} from './index.ts'

/** In these tests, an expression is a function, or `$name` for a variable. */
type Expression = (scope: Scope) => unknown

const evaluate = (value: unknown, scope: Scope): unknown => {
  if (typeof value === 'function') return (value as Expression)(scope)
  if (typeof value === 'string' && value.startsWith('$')) return scope.variable(value.slice(1))
  if (Array.isArray(value)) return value.map((item): unknown => evaluate(item, scope))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, evaluate(item, scope)]))
}

const variable =
  (name: string): Expression =>
  (scope) =>
    scope.variable(name) ?? null
const succeeded: Expression = ({ task }) => task?.status === 'succeeded'
const failed: Expression = ({ task }) => task?.status === 'failed'
const result: Expression = ({ task }) => task?.result()
const mistake: Expression = () => {
  throw new ExpressionError('YaqlEvaluationException', 'no')
}

type Actions = Pick<StartCommand, 'task' | 'item' | 'input'>[]

/** A run whose actions are ended by hand. */
class Run {
  state: State = emptyState()
  readonly log: LogEntry[] = []
  readonly changes: number[] = []
  readonly running: StartCommand[] = []
  readonly #definition
  readonly #limits: Limits
  readonly #results = new Map<string, unknown>()
  /** undefined: nothing is kept between the calls. */
  memory: ReturnType<typeof createMemory> | undefined = createMemory()

  constructor(document: Record<string, unknown>, limits: Partial<Limits> = {}) {
    this.#definition = readDefinition(document)
    this.#limits = { ...defaultLimits, ...limits }
  }

  conduct(event: Event, evaluateOther = evaluate): Outcome {
    return conduct(this.#definition, this.state, event, {
      evaluate: evaluateOther,
      ...(this.memory === undefined ? {} : { memory: this.memory }),
      limits: this.#limits,
      explains: true,
      outside: {
        environment: { svc: { user: 'ana' } },
        startEnvironment: {},
        resultOf: (instance, item) => this.#results.get(`${instance}/${item ?? ''}`),
        recordOf: ({ id }) => ({ id: String(id), workflowExecution: 'w', startTimestamp: '', endTimestamp: null }),
        readKey: () => undefined,
      },
    })
  }

  /** @returns what starts */
  send(event: Event): Actions {
    const outcome = this.conduct(event)
    if (event.kind === 'ended') this.#results.set(`${event.instance}/${event.item ?? ''}`, event.result)
    this.log.push(...outcome.log)
    if (outcome.changes === undefined) return []
    const { indexes: _, workflow: __, ...tables } = outcome.changes
    this.changes.push(Object.values(tables).reduce((sum, { size }) => sum + size, 0))
    this.state = apply(this.state, outcome.changes)
    const starts = outcome.commands.filter((command) => command.kind === 'start')
    this.running.push(...starts)
    const started = starts.map(({ task, item, input }) => ({ task, item, input }))
    const isMore = outcome.commands.some(({ kind }) => kind === 'continue')
    return isMore ? [...started, ...this.send({ kind: 'continue' })] : started
  }

  start(input: Record<string, unknown> = {}): Actions {
    return this.send({ kind: 'started', input })
  }

  /** The event that ends the oldest action of the task. */
  ending(task: string, status: 'succeeded' | 'failed' | 'canceled' = 'succeeded', value: unknown = task): Event {
    const index = this.running.findIndex((command) => command.task === task)
    const [command] = this.running.splice(index, 1)
    if (index < 0 || command === undefined) throw new Error(`${task} does not run`)
    const { instance, attempt, item } = command
    return { kind: 'ended', instance, attempt, ...(item === undefined ? {} : { item }), status, result: value }
  }

  end(...given: Parameters<Run['ending']>): Actions {
    return this.send(this.ending(...given))
  }

  get status(): string {
    return this.state.workflow.status
  }

  get messages(): string[] {
    return Array.from(this.state.errors.values(), ({ entry }) => entry.message)
  }

  /** The state as a server reads it after a restart. */
  reload(): void {
    this.memory = undefined
    this.state = readAgain(this.state)
  }
}

const names = (actions: Actions): string[] => actions.map(({ task }) => task)

const diamond = {
  vars: [{ seen: 'none' }, { count: { base: 1 } }],
  tasks: {
    begin: { action: 'a', next: [{ do: 'left, right' }] },
    left: { action: 'a', next: [{ publish: [{ seen: 'left' }, { count: { left: result } }], do: 'end' }] },
    right: { action: 'a', next: [{ publish: [{ count: { right: result } }], do: 'end' }] },
    end: { join: 'all', action: 'a', input: { seen: variable('seen'), count: variable('count') } },
  },
  output: [{ seen: variable('seen') }],
}

const twoTasks = { tasks: { a: { action: 'a' }, b: { action: 'a' } } }

describe('a turn', () => {
  test('leaves the state as it is, and gives the same again', () => {
    const run = new Run(diamond)
    run.start()
    const before = structuredClone(run.state)
    const event = run.ending('begin')
    const [first, second] = [run.conduct(event), run.conduct(event)]
    expect(run.state).toEqual(before)
    expect(first).toEqual(second)
  })

  test('that an expression breaks off changes nothing, and can be repeated', () => {
    const run = new Run(diamond)
    run.start()
    run.end('begin')
    run.end('left')
    const before = structuredClone(run.state)
    const event = run.ending('right')
    const exhausted = new Error('out of budget')
    expect(() =>
      run.conduct(event, () => {
        throw exhausted
      }),
    ).toThrow(exhausted)
    expect(run.state).toEqual(before)
    expect(names(run.send(event))).toEqual(['end'])
  })

  test('changes few rows, however large the workflow is', () => {
    const count = 2_000
    const tasks = Array.from({ length: count }, (_, index): [string, unknown] => [
      `t${index}`,
      { action: 'a', next: [{ publish: [{ n: index }], do: index + 1 < count ? `t${index + 1}` : 'noop' }] },
    ])
    const run = new Run({ tasks: Object.fromEntries(tasks) })
    run.start()
    for (const [name] of tasks) run.end(name)
    expect(run.status).toBe('succeeded')
    expect(Math.max(...run.changes)).toBeLessThanOrEqual(4)
  })

  test('of a fork of 1,000 with a join writes a constant number of rows per task', () => {
    const branches = Array.from({ length: 1_000 }, (_, index) => `b${index}`)
    const run = new Run({
      tasks: {
        begin: { action: 'a', next: [{ do: branches }] },
        ...Object.fromEntries(
          branches.map((name) => [name, { action: 'a', next: [{ publish: [{ [name]: 1 }], do: 'end' }] }]),
        ),
        end: { join: 'all', action: 'a', input: (scope: Scope) => ({ count: Object.keys(scope.variables()).length }) },
      },
    })
    run.start()
    run.end('begin')
    run.changes.length = 0
    const last = branches.map((name) => run.end(name)).at(-1)
    expect(last).toEqual([{ task: 'end', item: undefined, input: { count: 1_001 } }])
    expect(Math.max(...run.changes)).toBeLessThanOrEqual(7)
  })

  test('starts items one after the other, also after a restart', () => {
    const run = new Run({
      vars: [{ list: ['x', 'y', 'z'] }],
      tasks: {
        each: {
          with: { items: 'name in $list', concurrency: 1 },
          action: 'a',
          input: { item: ({ item }: Scope) => item },
        },
      },
    })
    const starts = [run.start()]
    for (const _ of [1, 2]) {
      run.reload()
      starts.push(run.end('each'))
    }
    expect(starts.flat()).toEqual(
      ['x', 'y', 'z'].map((name, item) => ({ task: 'each', item, input: { item: { name } } })),
    )
    run.end('each')
    expect(run.status).toBe('succeeded')
  })

  test('goes on from stored rows as from memory', () => {
    const [kept, reloaded] = [new Run(diamond), new Run(diamond)]
    for (const run of [kept, reloaded]) run.start()
    for (const name of ['begin', 'right', 'left', 'end']) {
      reloaded.reload()
      expect(reloaded.state).toEqual(kept.state)
      expect(reloaded.end(name)).toEqual(kept.end(name))
    }
    expect(reloaded.state.workflow).toEqual(kept.state.workflow)
    expect(kept.status).toBe('succeeded')
  })
})

describe('contexts', () => {
  test('objects merge, branches do not see each other, and a join has both', () => {
    const run = new Run(diamond)
    run.start()
    run.end('begin')
    run.end('left', 'succeeded', 1)
    const count = { base: 1, left: 1, right: 2 }
    expect(run.end('right', 'succeeded', 2)).toEqual([{ task: 'end', item: undefined, input: { seen: 'left', count } }])
    run.end('end')
    expect(run.state.workflow.output).toEqual({ seen: 'left' })
  })

  test('an object that took the place of another value in a branch replaces in the join, too', () => {
    const step = (name: string, value: unknown, target: string): unknown => ({
      action: 'a',
      next: [{ publish: [{ v: value }], do: target }],
      name,
    })
    const run = new Run({
      vars: [{ v: { a: 1 } }],
      tasks: {
        begin: { action: 'a', next: [{ do: 'x, y' }] },
        x: step('x', { b: { x: 1 } }, 'end'),
        y: step('y', 5, 'y2'),
        y2: step('y2', { c: 1 }, 'end'),
        end: { join: 'all', action: 'a', input: { v: variable('v') } },
      },
    })
    run.start()
    run.end('begin')
    run.end('x')
    run.end('y')
    expect(run.end('y2')).toEqual([{ task: 'end', item: undefined, input: { v: { c: 1 } } }])
  })

  test('5,000 contexts behind one another need no recursion', () => {
    const run = new Run(
      {
        vars: [{ n: 0 }],
        tasks: {
          begin: { next: [{ do: 'turn' }] },
          turn: {
            next: [
              {
                when: (scope: Scope) => Number(scope.variable('n')) < 5_000,
                publish: [{ n: (scope: Scope) => Number(scope.variable('n')) + 1 }],
                do: 'turn',
              },
              { when: (scope: Scope) => scope.variable('n') === 5_000, do: 'end' },
            ],
          },
          end: { action: 'a', input: { n: variable('n') } },
        },
      },
      { maxStartsPerTurn: 9_000 },
    )
    expect(run.start()).toEqual([{ task: 'end', item: undefined, input: { n: 5_000 } }])
    run.reload()
    run.end('end')
    expect(run.status).toBe('succeeded')
  })

  test('variables of an entry are evaluated once for all its targets', () => {
    let calls = 0
    const run = new Run({
      tasks: {
        a: { action: 'a', next: [{ publish: [{ n: () => (calls += 1) }], do: 'b, c' }] },
        b: { action: 'a' },
        c: { action: 'a' },
      },
    })
    run.start()
    run.end('a')
    expect(calls).toBe(1)
  })
})

describe('bounds', () => {
  const idle = { tasks: { begin: { next: [{ do: 'x' }] }, x: { next: [{ do: 'y' }] }, y: { next: [{ do: 'x' }] } } }

  test('a cycle without progress ends with the reason', () => {
    const run = new Run(idle, { maxIdleTurns: 50, maxStartsPerTurn: 20 })
    run.start()
    expect(run.status).toBe('failed')
    expect(run.messages).toEqual([expect.stringContaining('ProgressError: The tasks of a cycle have ended 50 times')])
  })

  test('side branches without an action do not hide a cycle without progress', () => {
    const tasks = { ...idle.tasks, x: { next: [{ do: 'y, side' }] }, side: {} }
    const run = new Run({ tasks }, { maxIdleTurns: 50 })
    run.start()
    expect(run.messages).toEqual([expect.stringContaining('ProgressError')])
  })

  test('a cycle that cleans up after a failure ends, too', () => {
    const tasks = { begin: { next: [{ do: 'x' }] }, x: { next: [{ do: 'x, fail' }] } }
    const run = new Run({ tasks }, { maxIdleTurns: 50 })
    run.start()
    expect(run.status).toBe('failed')
    expect(run.state.workflow.starts).toBeLessThan(200)
    expect(run.messages).toContainEqual(expect.stringContaining('ProgressError'))
  })

  describe('of variables', () => {
    const grown: Expression = (scope) => `${String(scope.variable('v'))}${'x'.repeat(100)}`
    const growing = {
      vars: [{ v: '' }],
      tasks: {
        begin: { action: 'a', next: [{ do: 'turn' }] },
        turn: { action: 'a', next: [{ publish: [{ v: grown }], do: 'turn' }] },
      },
    }
    const turns = (run: Run): number => {
      run.start()
      run.end('begin')
      for (let count = 0; count < 1_000; count += 1) {
        if (run.status !== 'running') return count
        run.end('turn')
      }
      return Infinity
    }

    test('those that a task sees are limited', () => {
      const run = new Run(growing, { maxContextSize: 1_050 })
      expect(turns(run)).toBe(11)
      expect(run.messages).toEqual([expect.stringMatching(/^LimitError: The variables of the workflow would have/)])
    })

    test('what replaces another value counts once', () => {
      const tasks = {
        ...growing.tasks,
        turn: { action: 'a', next: [{ publish: [{ v: 'x'.repeat(400) }], do: 'turn' }] },
      }
      expect(turns(new Run({ ...growing, tasks }, { maxContextSize: 1_050 }))).toBe(Infinity)
    })

    test('branches that are too large together fail at their join', () => {
      const branch = (name: string): unknown => ({
        action: 'a',
        next: [{ publish: [{ [name]: 'x'.repeat(400) }], do: 'end' }],
      })
      const run = new Run(
        { tasks: { a: branch('a'), b: branch('b'), c: branch('c'), end: { join: 'all' } } },
        { maxContextSize: 1_050 },
      )
      run.start()
      for (const name of ['a', 'b', 'c']) run.end(name)
      expect([run.status, run.messages]).toEqual(['failed', [expect.stringContaining('LimitError: The variables')]])
    })

    test('so are those that it begins with', () => {
      const run = new Run(
        { vars: [{ v: 'x'.repeat(2_000) }], tasks: { a: { action: 'a' } } },
        { maxContextSize: 1_050 },
      )
      expect(run.start()).toEqual([])
      expect([run.status, run.messages]).toEqual(['failed', [expect.stringContaining('LimitError: The variables')]])
      expect(run.state.contexts.get(0)?.values).toEqual({})
    })

    test('and all that a run publishes', () => {
      const run = new Run(growing, { maxPublished: 1_050 })
      expect(turns(run)).toBe(5)
      expect(run.messages).toEqual([expect.stringContaining('LimitError: The workflow has published')])
    })
  })

  test('a run has a limit of instances', () => {
    const run = new Run(idle, { maxInstances: 30 })
    run.start()
    expect(run.status).toBe('failed')
    expect(run.messages).toEqual([expect.stringContaining('LimitError: The workflow has started 30 task instances')])
  })

  test('one call starts a limited number of items', () => {
    const run = new Run(
      { vars: [{ list: [1, 2, 3, 4, 5] }], tasks: { each: { with: '$list', action: 'a' } } },
      { maxStartsPerTurn: 2 },
    )
    const { commands } = run.conduct({ kind: 'started', input: {} })
    expect(commands.map(({ kind }) => kind)).toEqual(['start', 'start', 'continue', 'status'])
    expect(run.start().map(({ item }) => item)).toEqual([0, 1, 2, 3, 4])
  })

  test('a re-run that would start too many tasks is refused', () => {
    const run = new Run(twoTasks, { maxInstances: 3 })
    run.start()
    for (const task of ['a', 'b']) run.end(task, 'failed')
    const limit = 'it would start more than 3 task instances, the most that one run may have.'
    expect(run.conduct({ kind: 'rerun', tasks: ['a', 'b'], reset: [] })).toMatchObject({
      changes: undefined,
      refused: `Unable to rerun workflow because ${limit}`,
    })
    expect(names(run.send({ kind: 'rerun', tasks: ['a'], reset: [] }))).toEqual(['a'])
  })

  test('a workflow that begins with too many tasks starts none', () => {
    const run = new Run(twoTasks, { maxInstances: 1 })
    expect(run.start()).toEqual([])
    expect([run.status, run.messages]).toEqual([
      'failed',
      ['LimitError: The workflow has started 1 task instances, the most that one run may have.'],
    ])
  })

  test('one call starts a limited number of tasks', () => {
    const run = new Run(
      { tasks: { a: { action: 'a' }, b: { action: 'a' }, c: { action: 'a' } } },
      { maxStartsPerTurn: 2 },
    )
    expect(run.conduct({ kind: 'started', input: {} }).commands.map(({ kind }) => kind)).toEqual([
      'start',
      'start',
      'continue',
      'status',
    ])
    expect(names(run.start())).toEqual(['a', 'b', 'c'])
  })

  test('one call ends a limited number of tasks in place', () => {
    const run = new Run(idle, { maxStartsPerTurn: 20 })
    const outcome = run.conduct({ kind: 'started', input: {} })
    expect(outcome.commands).toContainEqual({ kind: 'continue' })
    expect(outcome.changes?.workflow.starts).toBe(20)
  })

  test('a list of items has a limit', () => {
    const run = new Run(
      { vars: [{ list: [1, 2, 3] }], tasks: { each: { with: '$list', action: 'a' } } },
      { maxItems: 2 },
    )
    run.start()
    expect([run.status, run.messages]).toEqual(['failed', ['LimitError: The list has 3 items; a task may have 2.']])
  })
})

describe('repairs of what the incumbent does', () => {
  test('an answered inquiry goes on while another branch runs', () => {
    const run = new Run({
      tasks: {
        ask: { action: 'ask', next: [{ do: 'after' }] },
        other: { action: 'a', next: [{ do: 'more' }] },
        after: { action: 'a' },
        more: { action: 'a' },
      },
    })
    run.start()
    const instance = run.running.find(({ task }) => task === 'ask')?.instance ?? -1
    run.send({ kind: 'pending', instance })
    expect(run.status).toBe('pausing')
    run.send({ kind: 'answered', instance })
    expect(names(run.end('ask'))).toEqual(['after'])
    expect(names(run.end('other'))).toEqual(['more'])
    run.end('after')
    run.end('more')
    expect(run.status).toBe('succeeded')
  })

  test('a resume while only people can move the workflow leaves it paused', () => {
    const run = new Run({
      vars: [{ list: [1] }],
      tasks: {
        ask: { action: 'ask' },
        each: { action: 'ask', with: '$list' },
        flow: { action: 'a', next: [{ do: 'after' }] },
        after: { action: 'a' },
      },
    })
    run.start()
    const of = (task: string): { instance: number } => ({
      instance: run.running.find((command) => command.task === task)?.instance ?? -1,
    })
    run.send({ kind: 'pending', ...of('ask') })
    run.send({ kind: 'child paused', ...of('flow') })
    expect(run.send({ kind: 'resume' })).toEqual([])
    expect(run.status).toBe('resuming') // an item runs
    run.send({ kind: 'pending', ...of('each'), item: 0 })
    expect(run.status).toBe('paused')
    expect([run.send({ kind: 'resume' }), run.status]).toEqual([[], 'resuming']) // for the child, which is asked to
    run.send({ kind: 'child resumed', ...of('flow') })
    run.end('flow')
    expect([names(run.send({ kind: 'resume' })), run.status]).toEqual([['after'], 'running'])
    run.end('after')
    expect(run.status).toBe('paused')
    expect([run.send({ kind: 'resume' }), run.status]).toEqual([[], 'paused'])
    run.reload()
    expect([run.send({ kind: 'resume' }), run.status]).toEqual([[], 'paused'])
    run.send({ kind: 'answered', ...of('ask') })
    run.end('ask')
    run.send({ kind: 'answered', ...of('each'), item: 0 })
    run.end('each')
    expect(run.status).toBe('succeeded')
  })

  test('an inquiry that ends without an answer does not leave the workflow paused', () => {
    const run = new Run({
      tasks: { ask: { action: 'ask', next: [{ when: failed, do: 'late' }] }, late: { action: 'a' } },
    })
    run.start()
    run.send({ kind: 'pending', instance: 0 })
    expect(run.status).toBe('paused')
    expect(names(run.end('ask', 'failed'))).toEqual(['late'])
  })

  test('a canceled workflow ends canceled, although an expression fails and a join waits', () => {
    const run = new Run({
      tasks: {
        a: { action: 'a', next: [{ do: 'end' }] },
        b: { action: 'a', next: [{ when: mistake, do: 'end' }] },
        end: { join: 'all' },
      },
    })
    run.start()
    run.end('a')
    run.send({ kind: 'cancel' })
    run.end('b')
    expect(run.status).toBe('canceled')
  })

  test('a retry whose condition fails ends the workflow', () => {
    const run = new Run({ tasks: { a: { action: 'a', retry: { count: 3, when: mistake } } } })
    run.start()
    run.end('a')
    expect([run.status, run.messages]).toEqual(['failed', ['YaqlEvaluationException: no']])
  })

  test('a join with a number starts once, and late arrivals are ignored', () => {
    const source = { action: 'a', next: [{ do: 'end' }] }
    const run = new Run({ tasks: { a: source, b: source, c: source, end: { join: 2, action: 'a' } } })
    run.start()
    run.end('a')
    expect(names(run.end('b'))).toEqual(['end'])
    expect(run.end('c')).toEqual([])
    run.end('end')
    expect(run.status).toBe('succeeded')
  })

  test('a join starts again for each of its tasks that a re-run repeats, one re-run after the other', () => {
    const source = { action: 'a', next: [{ do: 'end' }] }
    for (const join of [1, 'all']) {
      const run = new Run({ tasks: { a: source, b: source, end: { join, action: 'a' } } })
      run.start()
      for (const name of ['a', 'b', 'end']) run.end(name)
      for (const name of ['end', 'a', 'b']) {
        const started = names(run.send({ kind: 'rerun', tasks: [name], reset: [] }))
        expect(name === 'end' ? started : names(run.end(name))).toEqual(['end'])
        run.end('end')
        expect(run.status).toBe('succeeded')
      }
    }
  })

  test('a task that is late for one start of a join is in time for the next', () => {
    const run = new Run({
      tasks: {
        a: { action: 'a', next: [{ do: 'end' }] },
        b: {
          action: 'a',
          next: [
            { when: succeeded, do: 'end' },
            { when: failed, do: 'noop' },
          ],
        },
        end: { join: 1, action: 'a' },
      },
    })
    run.start()
    for (const name of ['a', 'end']) run.end(name)
    run.end('b', 'failed')
    const repeat = (name: string): string[] => {
      run.send({ kind: 'rerun', tasks: [name], reset: [] })
      return names(run.end(name))
    }
    expect([repeat('b'), repeat('b')]).toEqual([[], ['end']])
  })

  test('a re-run repeats the items that failed, has the results of the others, and renders the output again', () => {
    const run = new Run({
      vars: [{ list: [1, 2, 3] }],
      tasks: { each: { with: '$list', action: 'a', next: [{ publish: [{ all: result }], do: 'noop' }] } },
      output: [{ all: variable('all') }],
    })
    run.start()
    run.end('each', 'succeeded', 'one')
    run.end('each', 'failed', 'two')
    run.end('each', 'succeeded', 'three')
    expect(run.state.workflow.output).toEqual({ all: ['one', 'two', 'three'] })
    expect(run.send({ kind: 'rerun', tasks: ['each'], reset: [] })).toEqual([{ task: 'each', item: 1, input: null }])
    run.end('each', 'succeeded', 'new')
    expect(run.state.workflow.output).toEqual({ all: ['one', 'new', 'three'] })
    expect(run.messages).toEqual([])
  })

  test('a re-run of items that have all succeeded ends at once, with their results', () => {
    const run = new Run({
      vars: [{ list: [1, 2] }],
      tasks: { each: { with: '$list', action: 'a', next: [{ do: 'end' }] }, end: { action: 'a' } },
    })
    run.start()
    for (const name of ['each', 'each', 'end']) run.end(name)
    expect(names(run.send({ kind: 'rerun', tasks: ['each'], reset: [] }))).toEqual(['end'])
    run.end('end')
    expect(run.status).toBe('succeeded')
    expect(names(run.send({ kind: 'rerun', tasks: ['each'], reset: ['each'] }))).toEqual(['each', 'each'])
  })

  test('a failure of a task that waits fails a workflow which a user has paused', () => {
    const run = new Run({ tasks: { ask: { action: 'ask' } } })
    run.start()
    run.send({ kind: 'pending', instance: 0 })
    run.send({ kind: 'pause' })
    run.end('ask', 'failed')
    expect(run.status).toBe('failed')
  })

  test('a re-run that is over at once, and as before, says so', () => {
    const run = new Run({ vars: [{ list: [1] }], tasks: { each: { with: '$list', action: 'a' } } })
    run.start()
    run.end('each')
    const { commands } = run.conduct({ kind: 'rerun', tasks: ['each'], reset: [] })
    expect(commands).toEqual([{ kind: 'finish', status: 'succeeded', output: null }])
  })

  test('a task with items ends when the only one that was held fails, although others have not started', () => {
    const run = new Run({
      vars: [{ list: [1, 2, 3] }],
      tasks: { each: { with: { items: '$list', concurrency: 1 }, action: 'a', next: [{ do: 'noop' }] } },
    })
    run.start()
    run.send({ kind: 'child paused', instance: 0, item: 0 })
    run.end('each', 'failed')
    expect(run.status).toBe('succeeded')
  })

  test('a re-run of what has not run is refused', () => {
    const run = new Run({ tasks: { a: { action: 'a', next: [{ when: failed, do: 'b' }] }, b: { action: 'a' } } })
    run.start()
    expect(run.conduct({ kind: 'rerun', tasks: ['a'], reset: [] }).refused).toBe('not completed')
    run.end('a')
    expect(run.conduct({ kind: 'rerun', tasks: ['b', 'x'], reset: [] }).refused).toBe(
      'Unable to rerun workflow because one or more tasks is not found: b,x',
    )
  })
})

test('a cycle that reaches a task which still runs starts its action again, and the first to end counts', () => {
  const run = new Run({
    tasks: {
      begin: { action: 'a', next: [{ do: 'work, other' }] },
      other: { action: 'a', next: [{ do: 'work' }] },
      work: {
        action: 'a',
        next: [
          { when: failed, do: 'other' },
          { when: succeeded, do: 'end' },
        ],
      },
      end: { action: 'a', input: { result: (scope: Scope) => scope.taskRecord('work', undefined)?.result } },
    },
  })
  run.start()
  run.end('begin')
  expect(names(run.end('other'))).toEqual(['work'])
  expect(run.end('work', 'succeeded', 'first')).toEqual([{ task: 'end', item: undefined, input: { result: 'first' } }])
  expect(run.end('work', 'failed', 'second')).toEqual([])
  run.end('end')
  expect([run.status, run.messages]).toEqual(['succeeded', []])
})

test('a workflow that cannot be conducted any more fails once; then its events are refused', () => {
  const run = new Run(diamond)
  run.start()
  const { changes, commands } = broken(run.state, 'InternalError: no')
  expect(commands).toEqual([{ kind: 'finish', status: 'failed', output: null }])
  if (changes !== undefined) run.state = apply(run.state, changes)
  const { state } = run
  run.reload()
  expect([run.status, run.messages]).toEqual(['failed', ['InternalError: no']])
  expect(run.state.errorKeys).toEqual(state.errorKeys)
  expect(broken(run.state, 'InternalError: again')).toMatchObject({
    changes: undefined,
    refused: 'InternalError: again',
  })
})

test('a cycle that reaches a task whose items still run starts them again, with the list of the task', () => {
  const run = new Run({
    vars: [{ list: [1, 2, 3] }],
    tasks: {
      begin: { action: 'a', next: [{ do: 'each, other' }] },
      other: { action: 'a', next: [{ publish: [{ list: [4] }], do: 'each' }] },
      each: {
        with: { items: '$list', concurrency: 2 },
        action: 'a',
        input: { item: ({ item }: Scope) => item },
        next: [{ when: failed, do: 'other' }],
      },
    },
  })
  run.start()
  expect(run.end('begin').map(({ item }) => item)).toEqual([0, 1, undefined])
  expect(run.end('other').map(({ input }) => input)).toEqual([{ item: 1 }, { item: 2 }])
  for (let ends = 0; ends < 5 && run.status === 'running'; ends += 1) {
    run.reload()
    run.end('each')
  }
  expect([run.status, run.messages]).toEqual(['succeeded', []])
})

test('an arrival while a round starts is not lost', () => {
  const isBelow = (scope: Scope): boolean => Number(scope.variable('n') ?? 0) < 2
  const run = new Run({
    tasks: {
      a: { action: 'a', next: [{ do: 'turn' }] },
      turn: {
        next: [
          { do: 'work' },
          { when: isBelow, publish: [{ n: (scope: Scope) => Number(scope.variable('n') ?? 0) + 1 }], do: 'turn' },
        ],
      },
      work: { action: 'a', next: [{ when: failed, do: 'turn' }] },
    },
  })
  run.start()
  expect(names(run.end('a'))).toEqual(['work', 'work', 'work'])
})

test('the status of a task on other routes is found without a look at each route', () => {
  const branches = Array.from({ length: 300 }, (_, index) => `b${index}`)
  const status = (scope: Scope): unknown => scope.taskStatus('late', undefined) ?? 'null'
  const run = new Run({
    tasks: {
      begin: { action: 'a', next: [{ do: branches }] },
      ...Object.fromEntries(branches.map((name) => [name, { action: 'a', next: [{ do: 'split' }] }])),
      split: { action: 'a', next: [{ publish: [{ seen: status }], do: 'late' }] },
      late: {
        action: 'a',
        input: { seen: variable('seen'), begin: (scope: Scope) => scope.taskStatus('begin', undefined) },
      },
    },
  })
  run.start()
  run.end('begin')
  for (const name of branches) run.end(name)
  let reads = 0
  const { routes } = run.state
  const get = routes.get.bind(routes)
  Object.assign(routes, { get: (id: number) => ((reads += 1), get(id)) })
  const started = branches.map(() => run.end('split'))
  expect(started.flat().map(({ input }) => input)).toEqual(branches.map(() => ({ seen: 'null', begin: 'succeeded' })))
  expect(reads).toBeLessThan(10 * branches.length)
})

describe('late and foreign events', () => {
  test('are ignored', () => {
    const run = new Run(diamond)
    run.start()
    const event = run.ending('begin')
    run.send(event)
    for (const late of [event, { ...event, instance: 99 }, { ...event, instance: 1, attempt: 7 }] as Event[])
      expect(run.conduct(late)).toEqual({ changes: undefined, commands: [], log: [], refused: undefined })
  })

  test('requests to a workflow that is over are refused', () => {
    const run = new Run({ tasks: { a: {} } })
    run.start()
    expect(run.status).toBe('succeeded')
    for (const kind of ['pause', 'resume', 'cancel'] as const) expect(run.conduct({ kind }).refused).toBe('completed')
  })
})

describe('the log', () => {
  test('has each transition with the value of its condition', () => {
    const run = new Run({
      tasks: {
        a: {
          action: 'a',
          next: [
            { when: succeeded, publish: [{ x: 1 }], do: 'b' },
            { when: failed, publish: [{ x: 2 }], do: 'c' },
          ],
        },
        b: {},
        c: {},
      },
    })
    run.start()
    run.end('a')
    const common = { kind: 'transition', instance: 0, readings: [], errors: [] }
    expect(run.log.filter(({ kind }) => kind === 'transition')).toEqual([
      { ...common, transition: 'b__t0', isTaken: true, value: true, published: { x: 1 } },
      { ...common, transition: 'c__t0', isTaken: false, value: false, published: {} },
    ])
  })

  test('says who has come to a join that can start no more, and who is missing', () => {
    const run = new Run({
      ...diamond,
      tasks: { ...diamond.tasks, left: { action: 'a', next: [{ when: failed, do: 'end' }] } },
    })
    run.start()
    run.end('begin')
    run.end('right')
    run.end('left')
    expect(run.log.find(({ kind }) => kind === 'join')).toMatchObject({
      task: 'end',
      need: 2,
      arrived: ['right'],
      missing: ['left'],
    })
    expect(run.messages).toEqual([expect.stringContaining('UnreachableJoinError')])
  })

  test('has what a failed expression saw', () => {
    const run = new Run({ vars: [{ v: 1 }], tasks: { a: { action: 'a', next: [{ when: mistake, do: 'noop' }] } } })
    run.start()
    run.end('a')
    expect(run.log.find(({ kind }) => kind === 'error')).toMatchObject({
      instance: 0,
      message: 'YaqlEvaluationException: no',
      expression: mistake,
      variables: { v: 1 },
    })
    expect(run.log.find(({ kind }) => kind === 'transition')).toMatchObject({
      isTaken: false,
      errors: ['YaqlEvaluationException: no'],
    })
  })

  test('transitions of a task are evaluated when it ends, and never when its action could not be started', () => {
    const next = [{ when: succeeded, do: 'noop' }]
    const run = new Run({ tasks: { a: { action: 'a', next }, b: { action: 'b', next } } })
    run.start()
    const taken = (): unknown[] => Array.from(run.state.instances.values(), (row) => row.taken)
    expect(taken()).toEqual([null, null])
    run.end('a')
    const { instance } = run.running[0] ?? { instance: -1 }
    run.send({ kind: 'refused', instance, message: 'X: no' })
    expect(taken().slice(0, 2)).toEqual([[0], null])
  })

  test('results in errors have a limit', () => {
    const tasks = { each: { with: '$list', action: 'a' } }
    const run = new Run({ vars: [{ list: [1, 2, 3, 4] }], tasks }, { maxResultSize: 500 })
    run.start()
    for (let item = 0; item < 4; item++)
      run.send({ kind: 'ended', instance: 0, item, status: 'failed', result: `${item}`.repeat(150) })
    const results = [...run.state.errors.values()].map(({ entry }) => entry.result)
    expect(results.slice(0, 3)).toEqual(['0'.repeat(150), '1'.repeat(150), '2'.repeat(150)])
    expect(results[3]).toMatch(/^The errors of this workflow have no room for the result/)
    expect(run.status).toBe('failed')
  })

  test('the output has a limit', () => {
    const text = 'x'.repeat(200)
    const output = [{ a: '$text' }, { b: '$text' }, { c: '$text' }, { d: 'short' }]
    const run = new Run({ vars: [{ text }], tasks: { only: { action: 'a' } }, output }, { maxResultSize: 500 })
    run.start()
    run.end('only')
    expect([run.status, run.state.workflow.output]).toEqual(['failed', { a: text, b: text, d: 'short' }])
    expect(run.messages).toEqual([expect.stringMatching(/^LimitError: The output would be larger than .* with "c"/)])
  })
})
