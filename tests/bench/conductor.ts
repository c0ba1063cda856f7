/** Rows about the conductor of workflows alone, in this process: without rows in a database, without actions. */
import {
  apply,
  conduct,
  createMemory,
  emptyState,
  type Event,
  type World,
} from '../../src/modules/workflows/conductor/index.ts'
import { readDefinition, type Definition } from '../../src/modules/workflows/definition/model.ts'
import { Budget, defaultLimits } from '../../src/lib/template/index.ts'
import { evaluate } from '../../src/modules/workflows/expressions/index.ts'
import { ms, times, type Row } from './report.ts'

const SIZES = [100, 1_000, 10_000] as const
/** Of the largest; smaller ones are repeated until they have run as many tasks. */
const ROUNDS = 3
const MAX_MS_PER_TASK = 0.3
/** A task of the largest workflow against one of the smallest: the garbage collector has more to look at. */
const MAX_RATIO = 3

const task = (target: string): unknown => ({
  action: 'core.noop',
  input: { n: '<% ctx(n) %>' },
  next: [{ when: '<% succeeded() %>', publish: [{ n: '<% result().n %>' }], do: target }],
})

/** Workflows with as many tasks, or items, as asked for. */
const forms: Readonly<Record<string, (size: number) => unknown>> = {
  'in a sequence': (size) =>
    Object.fromEntries(numbers(size).map((n) => [`t${n}`, task(n + 1 < size ? `t${n + 1}` : 'noop')])),
  'in a fork with a join': (size) => ({
    begin: { next: [{ do: numbers(size).map((n) => `t${n}`) }] },
    ...Object.fromEntries(numbers(size).map((n) => [`t${n}`, task('end')])),
    end: { join: 'all' },
  }),
  'items of one task': (size) => ({
    each: {
      with: { items: `<% range(${size}).toList() %>`, concurrency: 16 },
      action: 'core.noop',
      input: { n: '<% item() %>' },
    },
  }),
  'in a cycle': (size) => ({
    begin: { next: [{ do: 'turn' }] },
    turn: {
      action: 'core.noop',
      next: [{ when: `<% ctx(n) < ${size} %>`, publish: [{ n: '<% ctx(n) + 1 %>' }], do: 'turn' }],
    },
  }),
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** @returns milliseconds of processor time per task: other programs on the machine do not count */
function play(definition: Definition): number {
  let state = emptyState()
  const result = { n: 1 }
  const world: World = {
    evaluate: (value, scope) => evaluate(value, scope, { budget: new Budget(defaultLimits, 'the expression') }),
    memory: createMemory(),
    outside: {
      environment: {},
      startEnvironment: {},
      resultOf: () => result,
      recordOf: ({ id }) => ({ id: String(id), workflowExecution: 'w', startTimestamp: '', endTimestamp: null }),
      readKey: () => undefined,
    },
  }
  const events: Event[] = [{ kind: 'started', input: {} }]
  let tasks = 0
  const started = process.cpuUsage()
  for (let event = events.shift(); event !== undefined; event = events.shift()) {
    const { changes, commands } = conduct(definition, state, event, world)
    if (changes !== undefined) state = apply(state, changes)
    for (const command of commands)
      if (command.kind === 'continue') events.unshift({ kind: 'continue' })
      else if (command.kind === 'start') {
        const { instance, item, attempt } = command
        const about = { instance, attempt, ...(item === undefined ? {} : { item }) }
        events.push({ kind: 'ended', ...about, status: 'succeeded', result })
        tasks += 1
      }
  }
  const { user, system } = process.cpuUsage(started)
  if (state.workflow.status !== 'succeeded') throw new Error(`the workflow has ended ${state.workflow.status}`)
  return (user + system) / 1_000 / tasks
}

export function conducting(): Promise<Row[]> {
  return Promise.resolve(
    Object.entries(forms).map(([name, tasksOf]): Row => {
      const costs = SIZES.map((size) => {
        const definition = readDefinition({ vars: [{ n: 0 }], tasks: tasksOf(size) })
        const rounds = numbers((ROUNDS * SIZES[2]) / size)
        play(definition) // compiles
        return rounds.reduce((sum) => sum + play(definition), 0) / rounds.length
      })
      const [first = 0, middle = 0, last = 0] = costs
      const ratio = last / first
      return {
        work: `workflow conductor, a task of ${SIZES[2]} ${name}`,
        ours: `${ms(last)}, ${times(ratio)}`,
        reference: `${ms(first)} for ${SIZES[0]}, ${ms(middle)} for ${SIZES[1]}`,
        budget: `${ms(MAX_MS_PER_TASK)}, ${times(MAX_RATIO)}`,
        isMet: last <= MAX_MS_PER_TASK && ratio <= MAX_RATIO,
      }
    }),
  )
}
