/** Plays `chain.jsonl` of a folder with golden data through the conductor of action chains. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { entriesOf, objectOf, readJson, writeJson } from '../../src/lib/json/index.ts'
import { isObject, type ParameterSchema } from '../../src/lib/schema/index.ts'
import { Budget, defaultLimits, type Namespace, type TemplateScope } from '../../src/lib/template/index.ts'
import { convertParameter } from '../../src/modules/actions/conversion.ts'
import { createParameterSet } from '../../src/modules/actions/parameters.ts'
import {
  apply,
  emptyState,
  type Event,
  type InstanceRow,
  type StartCommand,
  type State,
} from '../../src/modules/workflows/conductor/index.ts'
import {
  conductChain,
  createChainMemory,
  readChain,
  renderValue,
  requestOf,
  resultOf,
  type Chain,
  type ChainRefusal,
  type ChainWorld,
  type ChildRecord,
  type NodeRun,
} from '../../src/modules/workflows/chain/index.ts'
import { FIRST_VARIABLES, variablesFrom } from '../../src/modules/workflows/chain/result.ts'
import { readAgain } from '../helpers/workflow-rows.ts'
import type { Difference, Tally } from './tally.ts'

interface ScriptedEnd {
  readonly status: string
  readonly result?: unknown
  /** What follows when the chain is resumed. */
  readonly then?: ScriptedEnd
  /** What has happened to the child before the chain is resumed. */
  readonly answered?: ScriptedEnd
}

type Ran = Readonly<Record<string, unknown>>

interface Phase {
  readonly status: string
  readonly ran: readonly Ran[]
  readonly tasks: readonly unknown[]
  readonly published?: unknown
  readonly error?: string
  readonly saved_vars?: unknown
  readonly keys: readonly string[]
}

interface Row {
  readonly id: string
  readonly group: string
  readonly definition: string
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly outcomes?: Readonly<Record<string, readonly ScriptedEnd[]>>
  readonly events?: readonly { readonly during?: string; readonly do: 'pause' | 'resume' | 'cancel' }[]
  readonly runner?: { readonly skip_notify?: readonly string[]; readonly display_published?: boolean }
  readonly context?: { readonly notify?: Readonly<Record<string, unknown>> }
  readonly phases?: readonly Phase[]
  readonly pre_run_error?: string
  readonly first_line?: boolean
  readonly run_error?: string
  readonly log?: readonly Ran[]
}

const typed: Readonly<Record<string, ParameterSchema>> = {
  i: { type: 'integer' },
  f: { type: 'number' },
  b: { type: 'boolean' },
  l: { type: 'array' },
  o: { type: 'object' },
  s: { type: 'string' },
}
/** Action → its parameters; undefined: any. */
const actions: Readonly<Record<string, typeof typed | undefined>> = { 'demo.run': undefined, 'demo.typed': typed }

const datastore: Readonly<Record<string, string>> = { 'system.greeting': 'ahoj' }

function itemsBelow(path: string): Namespace {
  return { get: (name) => itemsBelow(`${path}.${name}`), value: () => datastore[path] ?? '' }
}

const scope: TemplateScope = {
  variables: {
    svckv: { system: itemsBelow('system'), user: itemsBelow('user') },
    system: itemsBelow('system'),
    action_context: { parent: { execution_id: 'x1', user: 'ana', pack: 'demo' } },
    config_context: { key: 'from config' },
  },
}

/** A run of a chain, with the action that runs in it. */
class Run {
  readonly #row: Row
  readonly #chain: Chain
  readonly #isRestarted: boolean
  #state: State = emptyState()
  #running: StartCommand | undefined
  readonly #children = new Map<number, ScriptedEnd>()
  readonly #counts = new Map<string, number>()
  #memory = createChainMemory()
  readonly #pending
  ran: Ran[] = []

  constructor(row: Row, chain: Chain, isRestarted: boolean) {
    this.#row = row
    this.#chain = chain
    this.#isRestarted = isRestarted
    this.#pending = [...(row.events ?? [])]
  }

  play(): Phase[] {
    this.#send({ kind: 'started', input: this.#row.parameters ?? {} })
    const phases = [this.#endOfPhase()]
    while (this.#pending[0]?.do === 'resume') {
      this.#pending.shift()
      this.ran = []
      this.#resume()
      phases.push(this.#endOfPhase())
    }
    return phases
  }

  get result(): ReturnType<typeof resultOf> {
    const runOf = (instance: InstanceRow): NodeRun => {
      const end = this.#children.get(instance.id)
      const child: ChildRecord | undefined = end && {
        execution_id: 'x2',
        liveaction_id: 'l2',
        workflow: null,
        state: end.status,
        result: end.result ?? {},
      }
      return { created_at: '', updated_at: '', child }
    }
    return resultOf(this.#chain, this.#state, runOf, this.#row.runner?.display_published)
  }

  /** Lets children end until nothing runs. */
  #endOfPhase(): Phase {
    for (let command = this.#running; command !== undefined; command = this.#running) {
      this.#running = undefined
      const { task, instance } = command
      const [next] = this.#pending
      if (next?.during === task) {
        this.#pending.shift()
        this.#send({ kind: next.do })
      }
      const ends = this.#row.outcomes?.[task]
      const count = this.#counts.get(task) ?? 0
      this.#counts.set(task, count + 1)
      const end = ends?.[Math.min(count, ends.length - 1)] ?? { status: 'succeeded', result: {} }
      this.#end(instance, end)
    }
    const result = this.result
    const { status } = this.#state.workflow
    return {
      status,
      ran: this.ran,
      tasks:
        'tasks' in result ? result.tasks.map(({ name, state, result: inner }) => ({ name, state, result: inner })) : [],
      ...('published' in result ? { published: result.published } : {}),
      ...('error' in result && result.error !== undefined ? { error: result.error } : {}),
      ...(status === 'paused' ? { saved_vars: variablesFrom(this.#state, FIRST_VARIABLES) } : {}),
      keys: Object.keys(result).sort(),
    }
  }

  #end(instance: number, end: ScriptedEnd): void {
    this.#children.set(instance, end)
    if (end.status === 'pending' || end.status === 'paused')
      this.#send({ kind: end.status === 'pending' ? 'pending' : 'child paused', instance })
    else this.#send({ kind: 'ended', instance, status: end.status as 'succeeded', result: end.result ?? {} })
  }

  #resume(): void {
    const [held] = [...this.#children].filter(([, { status }]) => status === 'pending' || status === 'paused')
    if (held === undefined) {
      this.#send({ kind: 'resume' })
      return
    }
    const [instance, { status, then, answered }] = held
    if (answered !== undefined) {
      if (status === 'pending') this.#send({ kind: 'answered', instance })
      this.#end(instance, answered)
    } else if (then !== undefined) {
      this.#send({ kind: 'resume' })
      this.ran.push({ task: this.#chain.nodes[this.#state.instances.get(instance)?.task ?? -1]?.name, resumed: true })
      this.#send({ kind: 'child resumed', instance })
      this.#end(instance, then)
    }
  }

  #send(event: Event): void {
    if (this.#isRestarted) this.#restart()
    const outcome = conductChain(this.#chain, this.#state, event, this.#world)
    if (outcome.changes === undefined) return
    this.#state = apply(this.#state, outcome.changes)
    for (const command of outcome.commands) if (command.kind === 'start') this.#start(command)
  }

  #start(command: StartCommand): void {
    this.#running = command
    const { skip_notify } = this.#row.runner ?? {}
    const instance = this.#state.instances.get(command.instance)
    if (instance === undefined) throw new Error('a node without a row has started')
    const { notify } = requestOf(this.#chain, instance, this.#row.context?.notify, skip_notify)
    this.ran.push({
      task: command.task,
      action: command.action,
      parameters: convert(command),
      ...(notify === undefined ? {} : { notify }),
    })
  }

  get #world(): ChainWorld {
    return {
      render: (value, seen) => renderValue(value, seen, new Budget(defaultLimits)),
      memory: this.#memory,
      outside: {
        hasAction: (ref) => Object.hasOwn(actions, ref),
        templates: () => scope,
        resultOf: (instance) => this.#children.get(instance)?.result ?? null,
        whyRefused,
      },
    }
  }

  /** Reads the rows as a server does after its start. */
  #restart(): void {
    this.#memory = createChainMemory()
    this.#state = readAgain(this.#state)
  }
}

/** Parameters as the action gets them. @throws PARAMETERS_INVALID */
function convert({ action, input }: StartCommand): Record<string, unknown> {
  const schemas = actions[action] ?? {}
  return objectOf(
    entriesOf(input ?? {}).map(([name, value]) => [name, convertParameter(name, value, schemas[name] ?? {})]),
  )
}

function whyRefused(command: StartCommand): ChainRefusal | undefined {
  const schemas = actions[command.action]
  if (schemas === undefined) return undefined
  let converted: Record<string, unknown>
  try {
    converted = convert(command)
  } catch (error) {
    return { text: error instanceof Error ? error.message : '', isConversion: true }
  }
  const problem = createParameterSet({}, schemas).check(converted)
  return problem === undefined ? undefined : { text: problem.message, isConversion: false }
}

/** Without regard to the order of keys, and without tracebacks. */
function spell(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(', ')}]`
  if (!isObject(value)) return writeJson(value ?? null)
  const entries = entriesOf(value)
    .filter(([key, item]) => item !== undefined && key !== 'traceback')
    .map(([key, item]) => `${JSON.stringify(key)}: ${spell(item)}`)
  return `{${entries.toSorted().join(', ')}}`
}

const ranIn = (steps: readonly Ran[]): Ran[] =>
  steps.map(({ context_keys: _keys, chain_keys: _chain, ...step }) => step)

interface Answer {
  readonly expected: unknown
  readonly actual: unknown
}

function playRow(row: Row, isRestarted: boolean): Answer {
  const chain = readChain(row.definition, { action: '<action>', file: '<file>' })
  if ('problem' in chain)
    return {
      expected: withoutReader(row.pre_run_error ?? 'a chain', row.pre_run_error ?? ''),
      actual: withoutReader(chain.problem, row.pre_run_error ?? ''),
    }
  const run = new Run(row, chain, isRestarted)
  const phases = run.play()
  if (row.run_error !== undefined) {
    const { error = '' } = run.result
    return {
      expected: { error: withoutWords(row.run_error, error), keys: ['error', 'traceback'], ran: ranIn(row.log ?? []) },
      actual: { error, keys: Object.keys(run.result).sort(), ran: phases.flatMap(({ ran }) => ran) },
    }
  }
  return {
    expected: row.phases?.map((phase) => ({ ...phase, ran: ranIn(phase.ran) })) ?? row.pre_run_error,
    actual: phases,
  }
}

/** Lines that a reader of YAML adds are its own words. */
function withoutReader(message: string, expected: string): string {
  return expected.includes('\n') ? (/^Failed to parse .*?": /.exec(message)?.[0] ?? message) : message
}

/** Without the class. About a value that cannot be converted, the reason counts. */
function withoutWords(message: string, actual: string): string {
  const text = message.replace(/^\w+: /, '')
  const [, reason] =
    /^Failed to cast .* of type "\w+": (.*)\. Perhaps the value is of an invalid type\?$/s.exec(text) ?? []
  return reason !== undefined && actual.endsWith(reason) ? actual : text
}

/**
 * @param folder holds `chain.jsonl`
 * @param isRestarted whether the state is read from its rows before each event. Default: it is kept
 */
export function playChain(folder: string, isRestarted = false): Tally {
  const differences: Difference[] = []
  let agree = 0
  for (const line of readFileSync(join(folder, 'chain.jsonl'), 'utf8').split('\n')) {
    if (line === '') continue
    const row = readJson(line) as Row // the generator writes the shape above
    const { expected, actual } = playRow(row, isRestarted)
    if (spell(expected) === spell(actual)) agree += 1
    else differences.push({ id: row.id, input: row.definition, expected: spell(expected), actual: spell(actual) })
  }
  return { name: 'chain', agree, differences }
}
