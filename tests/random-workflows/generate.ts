/** Random workflow definitions. */
import type { Random } from '../helpers/random.ts'
import type { Form } from './expressions.ts'

export interface TaskDocument {
  readonly action?: string
  readonly input?: unknown
  readonly with?: { readonly items: string; readonly concurrency?: unknown }
  readonly delay?: unknown
  readonly retry?: { readonly count: unknown; readonly delay?: number; readonly when?: unknown }
  readonly join?: 'all' | number
  readonly next?: readonly EntryDocument[]
}

export interface EntryDocument {
  readonly when?: unknown
  readonly publish?: readonly Readonly<Record<string, unknown>>[]
  readonly do?: readonly string[]
}

export interface WorkflowDocument {
  readonly input: readonly (string | Readonly<Record<string, unknown>>)[]
  readonly vars: readonly Readonly<Record<string, unknown>>[]
  readonly tasks: Readonly<Record<string, TaskDocument>>
  readonly output?: readonly Readonly<Record<string, unknown>>[]
}

const MAX_TASKS = 7
const NAMES = ['v1', 'v2', 'v3'] as const

/** A workflow whose tasks can all be reached. */
export function generateWorkflow(random: Random): WorkflowDocument {
  const names = Array.from({ length: 1 + random.below(MAX_TASKS) }, (_, index) => `t${index + 1}`)
  const entries = names.map((_, index) => generateEntries(random, names, index))
  const targets = new Set(entries.flatMap((list) => list.flatMap((entry) => entry.do ?? [])))
  for (const [index, list] of entries.entries())
    if (random.once(4)) {
      const earlier = names.slice(0, index + 1).filter((name) => targets.has(name))
      const [first, ...others] = earlier
      if (first !== undefined) list.push(generateTurn(random, random.pick([first, ...others])))
    }
  const inbound = (name: string): number => entries.flat().filter((entry) => entry.do?.includes(name) === true).length
  return {
    input: ['a', { b: pickValue(random, names) }],
    vars: [
      { v1: random.pick<unknown>([0, { a: 1 }, [1]]) },
      { v2: random.pick<unknown>(['$b', { a: { b: 1 } }, null]) },
      { two: [1, 2] },
      { three: ['x', 'y', 'z'] },
      { none: random.pick([[], [7]]) },
      ...(random.once(40) ? [{ v3: mistake }] : []),
    ],
    tasks: Object.fromEntries(
      names.map((name, index) => [name, generateTask(random, inbound(name), entries[index] ?? [])]),
    ),
    ...(random.once(6) ? {} : { output: NAMES.map((name) => ({ [name]: random.once(30) ? `$${name}` : get(name) })) }),
  }
}

const mistake: Form = { $: 'mistake' }
const get = (name: string): Form => ({ $: 'get', name })
const is = (status: string): Form => ({ $: 'is', status })

function generateTask(random: Random, inbound: number, next: readonly EntryDocument[]): TaskDocument {
  const hasAction = !random.once(5)
  const hasItems = hasAction && random.once(4)
  return {
    ...(hasAction ? { action: random.once(60) ? 'refused' : 'run' } : {}),
    ...(hasAction
      ? { input: random.once(50) ? { x: mistake } : { x: hasItems ? { $: 'item' } : get('v1'), y: get('v2') } }
      : {}),
    ...(hasItems
      ? {
          with: {
            items: random.pick(['$two', '$three', 'x in $three', '$none', random.once(8) ? '$v1' : '$two']),
            ...(random.once(2) ? {} : { concurrency: random.pick([1, 2, '$two', 5]) }),
          },
        }
      : {}),
    ...(random.once(6) ? { delay: random.pick([3, 0, 'x']) } : {}),
    ...(random.once(4)
      ? {
          retry: {
            count: random.pick([1, 2, random.once(5) ? 'x' : 0]),
            ...(random.once(2) ? { delay: 5 } : {}),
            ...(random.once(2)
              ? {}
              : { when: random.pick([is('failed'), is('succeeded'), random.once(4) ? mistake : true]) }),
          },
        }
      : {}),
    ...(inbound > 0 && random.once(3) ? { join: random.pick(['all', 'all', 1, 2, 3]) } : {}),
    ...(next.length > 0 ? { next } : {}),
  }
}

function generateEntries(random: Random, names: readonly string[], index: number): EntryDocument[] {
  const later = names.slice(index + 1)
  return Array.from({ length: random.below(4) }, (): EntryDocument => {
    const targets = new Set<string>()
    for (let left = 1 + random.below(3); left > 0; left -= 1) {
      const [first, ...others] = later
      if (first === undefined || random.once(6))
        targets.add(random.pick(['continue', 'noop', 'fail', 'noop', 'continue', random.once(3) ? 'retry' : 'noop']))
      else targets.add(random.pick([first, ...others]))
    }
    return {
      ...(random.once(3) ? {} : { when: pickCondition(random, names) }),
      ...(random.once(2) ? {} : { publish: pickPublish(random, names) }),
      ...(random.once(12) ? {} : { do: [...targets] }),
    }
  })
}

/** Back to a task, as often as a counter allows; now and then without a counter. */
function generateTurn(random: Random, target: string): EntryDocument {
  const name = random.pick(['n', 'm'])
  if (random.once(8)) return { when: is(random.pick(['failed', 'failed', 'succeeded'])), do: [target] }
  return {
    when: { $: 'below', name, limit: 1 + random.below(3) },
    publish: [{ [name]: { $: 'next', name } }],
    do: [target],
  }
}

function pickCondition(random: Random, names: readonly string[]): unknown {
  if (random.once(30)) return mistake
  const [first = '', ...others] = names
  return random.pick([
    is('succeeded'),
    is('succeeded'),
    is('succeeded'),
    is('failed'),
    is('failed'),
    get('v3'),
    { $: 'below', name: 'n', limit: 1 },
    random.once(2) ? { $: 'status of', task: random.pick([first, ...others]) } : { $: 'result' },
  ])
}

function pickPublish(random: Random, names: readonly string[]): Readonly<Record<string, unknown>>[] {
  return Array.from({ length: 1 + random.below(2) }, () => ({ [random.pick(NAMES)]: pickValue(random, names) }))
}

function pickValue(random: Random, names: readonly string[]): unknown {
  if (random.once(40)) return mistake
  const [first = '', ...others] = names
  return random.pick<unknown>([
    random.below(3),
    'text',
    null,
    [random.below(3)],
    { a: random.below(3) },
    { a: { b: random.below(3) } },
    { a: { c: get('v1') } },
    { b: [get('v2')] },
    {},
    { $: 'result' },
    get(random.pick(NAMES)),
    { $: 'status of', task: random.pick([first, ...others]) },
    random.once(6) ? '$v3' : '$v1',
  ])
}
