/**
 * The engine of workflows: the only part that knows executions. What the end of an action brings about is stored with that
 * end, so nothing is left to be found after a crash.
 */
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Encryption } from '../../../core/encryption.ts'
import { isAppError } from '../../../core/errors.ts'
import { newId } from '../../../core/ids.ts'
import { Conflict, type Database, type Unit } from '../../../db/index.ts'
import { Lru } from '../../../lib/cache/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { writeJson } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import { isWorkflowRunner } from '../../../runners/index.ts'
import type { Datastore } from '../../datastore/index.ts'
import { isFinal, type Executions } from '../../executions/index.ts'
import type { ExecutionWorkflows, WorkflowStart } from '../../executions/ports.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import { emptyState, isActive, isHeld, type Event, type ItemRow, type Outside, type State } from '../conductor/index.ts'
import type { ActionSource } from '../catalog.ts'
import { noLines, type WorkflowHeader, type WorkflowStore } from '../store.ts'
import type { Open, Seal } from '../state/store.ts'
import { createAdvance, type AdvanceDeps } from './advance.ts'
import { isRefusal } from './child.ts'
import { createCommit, type KnownResult, type WorkflowCommit } from './commit.ts'
import { createPatience } from './evaluate.ts'
import type { IdleRun } from './idle.ts'
import { failureLine, writeLines, type Line } from './lines.ts'
import { newsOfWorkflow } from './news.ts'
import { earlierOf, hasOpenChild } from './parents.ts'
import { outsideOf } from './outside.ts'
import type { Program, Programs, Unusable } from './program.ts'
import { environmentOf, Run } from './run.ts'
import { createTell } from './tell.ts'
import { createTrees } from './trees.ts'
import { Unreadable } from './unreadable.ts'

export interface EngineDeps {
  database: Database
  log: Log
  encryption: Pick<Encryption, 'enabled' | 'encrypt' | 'decrypt'>
  actions: ActionSource
  datastore: Pick<Datastore, 'read'>
  executions: AdvanceDeps['executions'] & Pick<Executions, 'secretsOf' | 'planLines'>
  programs: Programs
  store: WorkflowStore
  readonly settings: {
    /** Public address of the API with its version. */
    apiUrl(): string
    /** Instances of one run. */
    maxTasks: number
    /** Who cancels what makes no progress. */
    systemUser: string
  }
}

export interface Engine extends Pick<ExecutionWorkflows, 'begin' | 'follow'> {
  /** Looks at a run while nothing changes it. @returns undefined: there is none */
  view<Seen>(
    id: string,
    look: (run: Run, outside: Omit<Outside, 'whyRefused'>, execution: Execution) => Seen,
  ): Promise<Seen | undefined>
  /** Cancels a run in which nothing happens any more, with what it still counts as running. */
  endIdle(run: IdleRun, seconds: number): Promise<void>
  /** Goes on with what an earlier server has left. */
  recover(): Promise<void>
  /** Resolves when nothing is under way. */
  stop(): Promise<void>
}

/** Of runs in memory together, roughly: a row, and a character of what they have published. */
const MAX_RUN_BYTES = 256 * 1024 * 1024
const ROW_BYTES = 400
const MAX_RUNS = 1_000
const MAX_RESULTS = 20_000
const MAX_RESULT_BYTES = 16 * 1024 * 1024
const PAGE = 200
const MAX_DEPTH = 50
/** Pause after a failure, so that a full disk causes no busy loop. */
const RETRY_AFTER_MS = 1000

export function createEngine(deps: EngineDeps): Engine {
  const { database, log, encryption, executions, store, programs, settings } = deps
  const runs = new Lru<string, Run>(MAX_RUNS, MAX_RUN_BYTES)
  let isStopping = false
  const patience = createPatience()
  const results = new Lru<string, KnownResult>(MAX_RESULTS, MAX_RESULT_BYTES)
  const runnerInfo = { hostname: hostname(), pid: process.pid }
  const trees = createTrees<WorkflowCommit>(() =>
    createCommit({ database, results, planLines, forget: ({ header }) => runs.delete(header.id), remember }),
  )
  const tell = createTell(deps)
  const advance = createAdvance({
    ...deps,
    tell,
    load,
    patience,
    sealOf,
    sealSecrets,
    maxTasks: settings.maxTasks,
    later: (run, plan) => later(run.header, plan),
  })

  /** Tries again until it is stored: a conflict has another cause each time, and a full disk has an end. */
  function later(header: Pick<WorkflowHeader, 'id' | 'root'>, plan: (commit: WorkflowCommit) => Promise<void>): void {
    // The next start goes on from the rows.
    if (isStopping) return
    trees.perform(header.root, plan).catch(async (error: unknown) => {
      if (!(error instanceof Conflict)) {
        log.error('workflow.not_stored', 'Could not store what follows in a workflow: trying again', {
          workflow_execution_id: header.id,
          error,
        })
        await delay(RETRY_AFTER_MS, undefined, { ref: false })
      }
      later(header, plan)
    })
  }

  function remember(run: Run): void {
    const { workflow, instances, items, contexts } = run.state
    const bytes = (instances.size + items.size + contexts.size) * ROW_BYTES + workflow.published
    // A larger one would have to be read at each of its events.
    runs.set(run.header.id, run, Math.min(bytes, MAX_RUN_BYTES / 8))
  }

  function planLines(run: Run, execution: Execution, lines: readonly Line[]): Unit {
    const { header, secretValues } = run
    const { line_records: seq, lines: count, line_bytes: bytes } = header
    const text = writeLines(lines, { count, secrets: secretValues })
    if (text === '') return { steps: [], facts: [] }
    const { unit, end } = executions.planLines(execution, { seq, lines: count, bytes }, text)
    if (unit.steps.length === 0) return unit
    run.header = { ...header, line_records: end.seq, lines: end.lines, line_bytes: end.bytes }
    return { steps: [...unit.steps, store.putLines(run.header)], facts: unit.facts }
  }

  /** Of an execution whose workflow does not start. */
  function sayFailure(
    commit: WorkflowCommit,
    execution: Execution,
    result: Readonly<Record<string, unknown>>,
    secrets: readonly unknown[] = [],
  ): void {
    const text = writeLines([failureLine(execution, result)], { count: 0, secrets: createSecretValues(secrets) })
    commit.add(executions.planLines(execution, { seq: 0, lines: 0, bytes: 0 }, text).unit)
  }

  const openOf =
    (id: string): Open =>
    (sealed) =>
      encryption.decrypt(sealed, contextOf(id), `the values of workflow ${id}`)

  function sealOf(run: Run): Seal {
    const { secretValues } = run
    const { id } = run.header
    if (secretValues === undefined || !encryption.enabled) return () => undefined
    return (text) =>
      secretValues.isIn(text) ? encryption.encrypt(text, contextOf(id), `the values of workflow ${id}`) : undefined
  }

  function sealSecrets({ header: { id } }: Run, secrets: readonly unknown[]): string | undefined {
    return encryption.enabled
      ? encryption.encrypt(writeJson(secrets), contextOf(id), `the values of workflow ${id}`)
      : undefined
  }

  async function load(commit: WorkflowCommit, id: string): Promise<Run> {
    const known = commit.run(id) ?? runs.get(id)
    if (known !== undefined) return known
    const run = await read(id).catch((error: unknown) => {
      throw isRefusal(error) ? new Unreadable(error.message, error) : error
    })
    remember(run)
    return run
  }

  async function read(id: string): Promise<Run> {
    const loaded = await store.load(id, openOf(id))
    if (loaded === undefined) throw new Unreadable(`There is no workflow ${id}.`)
    const { header, state } = loaded
    const execution = executions.find(header.execution)
    const text = store.definitionText(header.definition)
    if (execution === undefined || text === undefined) throw new Unreadable(`Parts of the workflow ${id} are gone.`)
    return new Run(header, programs.compile(execution, text), state, {
      environment: environmentOf(execution, id, settings.apiUrl()),
      secrets: [...executions.secretsOf(execution), ...loaded.secrets],
    })
  }

  const startEvents = (workflow?: string) =>
    [
      { kind: 'schedule' },
      { kind: 'start', runner_info: runnerInfo, ...(workflow === undefined ? {} : { workflow }) },
    ] as const

  async function begin(
    commit: WorkflowCommit,
    requested: Execution,
    start: WorkflowStart,
    ids: { id: string; root: string },
    prepared: { text: string; program: Program } | Unusable,
  ): Promise<void> {
    if ('result' in prepared) {
      const exit = { kind: 'exit', status: 'failed', result: prepared.result } as const
      sayFailure(commit, requested, prepared.result, start.secrets)
      if (tell.change(commit, requested, ...startEvents(), exit) === undefined) throw new Conflict('it has changed')
      return
    }
    const { id, root } = ids
    const running = tell.change(commit, requested, ...startEvents(id))
    if (running === undefined) throw new Conflict('the execution has changed')
    const { text, program } = prepared
    const workflow = { id, root, execution: running.id, runner: running.runner.name, start_timestamp: commit.at }
    const known = { environment: environmentOf(running, id, settings.apiUrl()), secrets: start.secrets }
    const inserted = store.insert(workflow, text)
    commit.add({ steps: inserted.steps, facts: [] })
    const run = new Run(inserted.header, program, emptyState(), known)
    const { timeout } = running.liveaction
    if (timeout !== undefined) advance.limit(commit, run, timeout)
    await advance.handle(commit, run, { kind: 'started', input: start.actionParameters })
  }

  /** Repeats tasks of a workflow that is over, in its rows. */
  async function repeat(
    commit: WorkflowCommit,
    requested: Execution,
    start: WorkflowStart,
    rerun: Rerun,
  ): Promise<void> {
    const { tasks, reset, workflow } = rerun
    const running = tell.change(commit, requested, ...startEvents(workflow))
    if (running === undefined) throw new Conflict('the execution has changed')
    if (store.find(workflow) === undefined) {
      refuse(commit, running, `Unable to rerun workflow execution "${workflow}" because it has been removed.`)
      return
    }
    let known: Run
    try {
      known = await load(commit, workflow)
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      refuse(commit, running, `Unable to rerun workflow execution "${workflow}". ${error.message}`)
      return
    }
    commit.touch(known)
    if (known.header.end_timestamp === null) {
      refuse(
        commit,
        running,
        `Unable to rerun workflow execution "${workflow}" because it is not in a completed state.`,
      )
      return
    }
    const run = new Run({ ...known.header, execution: requested.id, ...noLines }, known.program, known.state, {
      environment: environmentOf(running, workflow, settings.apiUrl()),
      secrets: [...known.secrets, ...start.secrets],
    })
    const refused = await advance.handle(commit, run, { kind: 'rerun', tasks, reset })
    if (refused !== undefined) {
      // Nothing has changed: the rows stay with the execution that has them.
      run.header = known.header
      refuse(commit, running, refused)
      return
    }
    const reassigned = store.reassign(run.header, requested.id, earlierOf(executions, known.header))
    commit.add({ steps: reassigned.steps, facts: [] })
    run.header = reassigned.header
  }

  function refuse(commit: WorkflowCommit, running: Execution, message: string): void {
    const result = { output: null, errors: [{ message }] }
    sayFailure(commit, running, result)
    tell.change(commit, running, { kind: 'exit', status: 'failed', result })
  }

  /** Its place in a tree of workflows. */
  function placeOf({ id, parent }: Pick<Execution, 'id' | 'parent'>): { root: string | undefined; depth: number } {
    let depth = 0
    let root: string | undefined
    let child = { id, parent }
    for (; depth <= MAX_DEPTH; depth++) {
      const action = child.parent === null ? undefined : store.actionOf(child.id)
      const above = action === undefined ? undefined : store.find(action.workflow)
      const execution = above === undefined ? undefined : executions.find(above.execution)
      if (above === undefined || execution === undefined) break
      root = above.root
      child = execution
    }
    return { root, depth }
  }

  async function startWorkflow(requested: Execution, given: WorkflowStart): Promise<void> {
    const rerun = rerunOf(requested)
    const { root, depth } = placeOf(requested)
    const prepared =
      depth > MAX_DEPTH ? tooDeep : rerun === undefined ? await programs.prepare(requested, given) : undefined
    const id = rerun?.workflow ?? newId()
    // The tasks of a re-run belong to the tree that the workflow has always been in.
    const tree = rerun === undefined ? root : store.find(id)?.root
    let seen = requested
    for (;;) {
      const execution = seen
      try {
        // A request that is on its way to the children of its last run must not reach those of this one.
        let isCascading = rerun !== undefined
        while (isCascading)
          await trees.perform(tree ?? id, async (commit) => {
            isCascading = store.find(id)?.cascade != null
            const run = isCascading ? await advance.find(commit, id) : undefined
            if (run !== undefined) advance.goOnCascading(commit, run)
            isCascading = run !== undefined
            await advance.settle(commit)
          })
        await trees.perform(tree ?? id, async (commit) => {
          if (prepared === undefined && rerun !== undefined) await repeat(commit, execution, given, rerun)
          else await begin(commit, execution, given, { id, root: root ?? id }, prepared ?? tooDeep)
          await advance.settle(commit)
        })
        return
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        const now = executions.find(execution.id)
        if (now?.status !== 'requested') return
        seen = now
      }
    }
  }

  function follow(before: Execution, after: Execution, unit: Unit): Promise<void> | undefined {
    const isWorkflow = isWorkflowRunner(after.runner.name)
    if (!isNews(after.status) || (!isWorkflow && after.parent === null)) return undefined
    const own = isWorkflow ? store.ofExecution(after.id) : undefined
    const action = after.parent === null ? undefined : store.actionOf(after.id)
    const root = own?.root ?? (action === undefined ? undefined : store.find(action.workflow)?.root)
    if (root === undefined) return undefined
    return trees.perform(root, async (commit) => {
      commit.add(unit)
      commit.promise()
      commit.putExecution(after)
      const event = own === undefined ? undefined : newsOfWorkflow(after)
      if (own !== undefined && event !== undefined) commit.tell(own.id, event)
      if (action !== undefined) tell.tellOf(commit, action, before.status, after)
      await advance.settle(commit)
    })
  }

  return {
    begin: startWorkflow,
    follow,
    async view(id, look) {
      const header = store.find(id)
      if (header === undefined) return undefined
      let seen: { it: ReturnType<typeof look> } | undefined
      await trees.perform(header.root, async (commit) => {
        const run = await load(commit, id).catch((error: unknown) => {
          throw error instanceof Unreadable && isAppError(error.cause) ? error.cause : error
        })
        const execution = executions.find(run.header.execution)
        if (execution !== undefined) seen = { it: look(run, outsideOf(deps, run, execution), execution) }
      })
      return seen?.it
    },
    async endIdle({ id, revision }, seconds) {
      const header = store.find(id)
      if (header === undefined) return
      await trees.perform(header.root, async (commit) => {
        const run = await advance.find(commit, id)
        if (run === undefined) return
        const execution = executions.find(run.header.execution)
        const hasChanged = run.header.revision !== revision || run.header.end_timestamp !== null
        if (hasChanged || execution === undefined || hasOpenChild(executions, run.header)) return
        log.warning('workflow.idle', 'Canceled a workflow that makes no progress', {
          execution_id: execution.id,
          workflow_execution_id: id,
          idle_seconds: seconds,
        })
        commit.touch(run)
        run.endReason = `Canceled by svc: nothing of the workflow has run or waited for ${seconds} seconds (workflow_engine.gc_max_idle_sec).`
        tell.change(commit, execution, { kind: 'cancel', user: settings.systemUser })
        commit.tell(id, { kind: 'cancel' })
        for (const event of endsOfLost(run.state)) commit.tell(id, event)
        await advance.settle(commit)
      })
    },
    async recover() {
      // All others wait for the end of an action, which tells them what to do.
      for (const kind of ['readyIds', 'cascadingIds'] as const)
        for (let afterId = ''; ;) {
          const ids = store[kind](afterId, PAGE)
          for (const id of ids) recoverOne(id)
          afterId = ids.at(-1) ?? ''
          if (ids.length < PAGE) break
          await trees.idle()
        }
    },
    async stop() {
      isStopping = true
      await trees.idle()
      await patience.stop()
    },
  }

  /** Starts what is ready, and lets a request go on to the children that it has not reached. */
  function recoverOne(id: string): void {
    const header = store.find(id)
    if (header === undefined) return
    const plan = async (commit: WorkflowCommit): Promise<void> => {
      const run = await advance.find(commit, id)
      if (run === undefined) return
      advance.goOnCascading(commit, run)
      commit.tell(id, { kind: 'continue' })
      await advance.settle(commit)
    }
    later(header, plan)
  }
}

const tooDeepText = `Workflows that call each other may be ${MAX_DEPTH} deep; this one is deeper.`
const tooDeep: Unusable = {
  result: { output: null, errors: [{ message: tooDeepText }], error: tooDeepText, traceback: tooDeepText },
}

interface Rerun {
  readonly workflow: string
  readonly tasks: readonly string[]
  readonly reset: readonly string[]
}

/** Only the server writes this part of a context. */
function rerunOf({ context }: Execution): Rerun | undefined {
  const rerun = context['re-run']
  const workflow = isObject(rerun) ? rerun['workflow_execution'] : undefined
  if (!isObject(rerun) || typeof workflow !== 'string') return undefined
  return { workflow, tasks: rerun['tasks'] as string[], reset: (rerun['reset'] ?? []) as string[] }
}

/** The ends of actions that have no open execution any more. */
function* endsOfLost({ instances, items }: State): Generator<Event> {
  const end = { kind: 'ended', status: 'canceled', result: null } as const
  for (const { id, status, retries, items: counts } of instances.values())
    if ((isActive(status) || isHeld(status)) && counts === null) yield { ...end, instance: id, attempt: retries }
  for (const { instance, index, status } of items.values())
    if (openItems.has(status)) yield { ...end, instance, item: index, attempt: instances.get(instance)?.retries ?? 0 }
}
const openItems: ReadonlySet<string> = new Set<ItemRow['status']>(['running', 'pending', 'paused'])

const isNews = (status: ExecutionStatus): boolean => isFinal(status) || news.has(status)
const news: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  'pending',
  'pausing',
  'paused',
  'resuming',
  'canceling',
  'running',
])

/** What the cipher text belongs to. */
const contextOf = (id: string): string => `workflow:${id}`
