/**
 * `node scripts/measure-conductor.ts`: processor time that the conductor takes per action, in this process and without
 * storage, for workflows of several sizes. It is the same for all sizes of one kind.
 */
import {
  apply,
  conduct,
  createMemory,
  emptyState,
  type Event,
  type StartCommand,
  type World,
} from '../src/modules/workflows/conductor/index.ts'
import { readDefinition } from '../src/modules/workflows/definition/model.ts'

type Document = Readonly<Record<string, unknown>>
type Expression = (variable: (name: string) => unknown) => unknown

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const action = 'core.noop'
const readNumber =
  (read: (n: number) => unknown): Expression =>
  (variable) =>
    read(Number(variable('n')))

/** Kind → a workflow with that many actions. An expression is a function of the variables. */
const kinds: Readonly<Record<string, (count: number) => Document>> = {
  sequence: (count) => ({
    tasks: Object.fromEntries(
      numbers(count).map((n) => [
        `t${n}`,
        { action, next: n + 1 < count ? [{ publish: [{ [`v${n % 10}`]: n }], do: `t${n + 1}` }] : [] },
      ]),
    ),
  }),
  'fork and join': (count) => ({
    tasks: {
      begin: { action, next: [{ do: numbers(count).map((n) => `t${n}`) }] },
      ...Object.fromEntries(
        numbers(count).map((n) => [`t${n}`, { action, next: [{ publish: [{ [`v${n}`]: n }], do: 'end' }] }]),
      ),
      end: { join: 'all', action },
    },
  }),
  'items, concurrency 16': (count) => ({
    tasks: { each: { with: { items: String(count), concurrency: 16 }, action } },
  }),
  cycle: (count) => ({
    vars: [{ n: 0 }],
    tasks: {
      begin: { action, next: [{ do: 'turn' }] },
      turn: {
        action,
        next: [{ when: readNumber((n) => n < count), publish: [{ n: readNumber((n) => n + 1) }], do: 'turn' }],
      },
    },
  }),
}

const world = (list: readonly number[]): World => ({
  memory: createMemory(),
  evaluate: (value, scope) =>
    typeof value === 'function'
      ? (value as Expression)((name) => scope.variable(name))
      : value === String(list.length)
        ? list
        : value,
  outside: {
    environment: {},
    startEnvironment: {},
    resultOf: () => null,
    recordOf: () => ({ id: '', workflowExecution: '', startTimestamp: '', endTimestamp: null }),
    readKey: () => undefined,
  },
})

/** Runs a workflow whose actions succeed in the order of their start. @returns microseconds of processor time per action */
function measure(document: Document, count: number): number {
  const definition = readDefinition(document)
  const outside = world(numbers(count))
  const started: StartCommand[] = []
  let state = emptyState()
  const send = (event: Event): void => {
    const { changes, commands } = conduct(definition, state, event, outside)
    if (changes !== undefined) state = apply(state, changes)
    for (const command of commands) if (command.kind === 'start') started.push(command)
  }
  const before = process.cpuUsage()
  send({ kind: 'started', input: {} })
  for (const { instance, attempt, item } of started)
    send({
      kind: 'ended',
      instance,
      attempt,
      ...(item === undefined ? {} : { item }),
      status: 'succeeded',
      result: null,
    })
  const { user, system } = process.cpuUsage(before)
  if (state.workflow.status !== 'succeeded') throw new Error(`the workflow is ${state.workflow.status}`)
  return (user + system) / started.length
}

for (const [kind, make] of Object.entries(kinds)) {
  measure(make(1_000), 1_000)
  const times = [100, 1_000, 10_000].map((count) => `${count}: ${measure(make(count), count).toFixed(0)} µs`)
  console.log(`${kind}: ${times.join(', ')}`)
}
