/** What one commit of a tree of workflows changes, while it is planned: later parts of the plan see what earlier ones did. */
import type { Lru } from '../../../lib/cache/index.ts'
import { merge, type Database, type Unit } from '../../../db/index.ts'
import { now } from '../../../core/time.ts'
import { isFinal } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { Event } from '../conductor/index.ts'
import type { Line } from './lines.ts'
import type { Run } from './run.ts'
import type { Commit } from './trees.ts'

export interface WorkflowCommit extends Commit {
  /** Wire timestamp. */
  readonly at: string
  add(unit: Unit): void
  /** What it changes was told to somebody, or cannot come about again: it waits for the disk. */
  promise(): void
  /** The execution as this commit leaves it. */
  putExecution(execution: Execution): void
  /** undefined: this commit does not change it */
  execution(id: string): Execution | undefined
  /** Keeps the result of an action for expressions, until its row is there. */
  putResult(workflow: string, place: ActionOf, result: KnownResult): void
  result(workflow: string, place: ActionOf): KnownResult | undefined
  /** Runs whose state this commit changes. */
  touch(run: Run): void
  run(id: string): Run | undefined
  /** This commit fails the workflow, which cannot be read. */
  giveUp(workflow: string): void
  isGivenUp(workflow: string): boolean
  /** Adds lines to the output of a workflow. @param execution that of the workflow */
  say(run: Run, execution: Execution, lines: readonly Line[]): void
  /** Something else to tell a workflow, in the same commit. */
  tell(workflow: string, event: Event, about?: Pick<Told, 'secrets' | 'child'>): void
  /** Takes the next of what is to be told. */
  next(): Told | undefined
  /** To be done when it is stored. */
  afterwards(action: () => void): void
}

export function createCommit(deps: {
  database: Pick<Database, 'write'>
  /** Results of late, which the end of a task with items reads all together. */
  results: Lru<string, KnownResult>
  /** Output of a workflow. */
  readonly planLines: (run: Run, execution: Execution, lines: readonly Line[]) => Unit
  /** The memory may not agree with the rows. */
  readonly forget: (run: Run) => void
  /** It does. */
  readonly remember: (run: Run) => void
}): WorkflowCommit {
  const units: Unit[] = []
  const executions = new Map<string, Execution>()
  const results = new Map<string, KnownResult>()
  const runs = new Map<string, Run>()
  const said = new Map<Run, { execution: Execution; lines: Line[] }>()
  const told: Told[] = []
  const givenUp = new Set<string>()
  const actions: (() => void)[] = []
  let isPromised = false
  return {
    at: now(),
    add: (unit) => void units.push(unit),
    promise() {
      isPromised = true
    },
    putExecution(execution) {
      executions.set(execution.id, execution)
      isPromised ||= isFinal(execution.status)
    },
    execution: (id) => executions.get(id),
    putResult: (workflow, place, result) => void results.set(actionKey(workflow, place), result),
    result: (workflow, place) =>
      results.get(actionKey(workflow, place)) ?? deps.results.get(actionKey(workflow, place)),
    touch: (run) => void runs.set(run.header.id, run),
    run: (id) => runs.get(id),
    giveUp: (workflow) => void givenUp.add(workflow),
    isGivenUp: (workflow) => givenUp.has(workflow),
    say(run, execution, lines) {
      const known = said.get(run)
      if (known !== undefined) known.lines.push(...lines)
      else if (lines.length > 0) said.set(run, { execution, lines: [...lines] })
    },
    tell: (workflow, event, about = { secrets: [] }) => void told.push({ workflow, event, ...about }),
    next: () => told.shift(),
    afterwards: (action) => void actions.push(action),
    async write() {
      if (units.length === 0) return
      const output = merge(...[...said].map(([run, { execution, lines }]) => deps.planLines(run, execution, lines)))
      // Followers of a workflow hear its last lines before its end.
      const unit = merge({ steps: [], facts: output.facts }, ...units, { steps: output.steps, facts: [] })
      if (!isPromised) unit.isUnpromised = true
      await deps.database.write(unit)
    },
    keep() {
      runs.forEach(deps.remember)
      for (const [place, result] of results) deps.results.set(place, result, result.size)
      for (const action of actions) action()
    },
    discard() {
      runs.forEach(deps.forget)
      for (const place of results.keys()) deps.results.delete(place)
    },
  }
}

export interface KnownResult {
  readonly value: unknown
  /** Bytes. */
  readonly size: number
}

interface Told {
  readonly workflow: string
  readonly event: Event
  /** Those in the event. */
  readonly secrets: readonly unknown[]
  /** The execution that it is about. */
  readonly child?: Execution
}

export interface ActionOf {
  readonly instance: number
  readonly item: number | undefined
}

const actionKey = (workflow: string, { instance, item }: ActionOf): string => `${workflow}/${instance}/${item ?? ''}`
