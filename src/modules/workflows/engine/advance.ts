/** Tells a workflow an event, and turns what follows into changes of one commit. */
import { setTimeout as delay } from 'node:timers/promises'
import { isAppError, type AppError } from '../../../core/errors.ts'
import { formatMicros, microsOf } from '../../../core/time.ts'
import { writeStoredJson } from '../../../http/index.ts'
import { createPause } from '../../../lib/concurrency/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { isFinal, type Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import {
  apply,
  broken,
  defaultLimits,
  failed,
  type Changes,
  type Command,
  type Event,
  type Limits,
  type InstanceRow,
  type Outcome,
  type StartCommand,
  type WorkflowStatus,
} from '../conductor/index.ts'
import type { ActionSource } from '../catalog.ts'
import type { Seal } from '../state/store.ts'
import type { WorkflowStore } from '../store.ts'
import { createCascades, isHalted, WITHDRAWN, type Cascades } from './cascade.ts'
import { isRefusal, planChild, type PlannedChild } from './child.ts'
import type { WorkflowCommit } from './commit.ts'
import { NeedsThread, type Evaluated, type Patience } from './evaluate.ts'
import { failureLine, linesOf, type Story } from './lines.ts'
import { openChildrenOf } from './parents.ts'
import { outsideOf, type OutsideDeps } from './outside.ts'
import type { ProgramWorld, TaskRun } from './program.ts'
import type { Run } from './run.ts'
import type { Tell } from './tell.ts'
import { taskExecutionId } from './task-execution-id.ts'
import { Unreadable } from './unreadable.ts'

/** Each is a request with its own parameters; the next ones follow in another commit. */
const STARTS_PER_COMMIT = 50
/** Inquiries of a workflow that cannot be read; others time out. */
const MAX_WITHDRAWN = 200
/** When the server is too busy to render the parameters of an action. */
const RETRY_AFTER_MS = 100

export interface AdvanceDeps extends OutsideDeps {
  executions: Pick<
    Executions,
    | 'find'
    | 'plan'
    | 'planChange'
    | 'planDeadline'
    | 'openChildren'
    | 'resultWithSecrets'
    | 'maskOutput'
    | 'outputFailureOf'
    | 'templatesOf'
  >
  actions: Pick<ActionSource, 'find'>
  store: WorkflowStore
  tell: Tell
  /** @throws Unreadable */
  load(commit: WorkflowCommit, workflow: string): Promise<Run>
  patience: Pick<Patience, 'evaluate'>
  readonly sealOf: (run: Run) => Seal
  /** Cipher text of secrets that its expressions have read; undefined: nothing can be encrypted */
  readonly sealSecrets: (run: Run, secrets: readonly unknown[]) => string | undefined
  /** Another commit of the tree, later. */
  readonly later: (run: Run, plan: (commit: WorkflowCommit) => Promise<void>) => void
  readonly maxTasks: number
  log: Log
}

export interface Advance {
  /** Handles all that the commit has to tell, and what follows from it. */
  settle(commit: WorkflowCommit): Promise<void>
  /** Reads a run; one that cannot be read fails with the reason. @returns undefined: it has failed */
  find(commit: WorkflowCommit, workflow: string): Promise<Run | undefined>
  /** Handles one event. @param child the execution that it is about @returns why it is refused */
  handle(commit: WorkflowCommit, run: Run, event: Event, child?: Execution): Promise<string | undefined>
  limit(commit: WorkflowCommit, run: Run, seconds: number): void
  /** The request that is on its way to the children of a workflow reaches the next of them. */
  goOnCascading: Cascades['goOn']
}

export function createAdvance(deps: AdvanceDeps): Advance {
  const { executions, store, log } = deps
  const { executionOf, change, tellOf } = deps.tell
  const cascades = createCascades({ executions, store, tell: deps.tell, next: inNextCommit })

  /** What takes long is evaluated elsewhere, and the call repeated. */
  async function conductPatiently(run: Run, event: Event, world: Omit<ProgramWorld, 'evaluated'>): Promise<Outcome> {
    const evaluated = new Map<number, Evaluated>()
    for (;;) {
      try {
        return run.conduct(run.state, event, { ...world, evaluated })
      } catch (error) {
        if (!(error instanceof NeedsThread)) throw error
        evaluated.set(error.place, await deps.patience.evaluate(error))
      }
    }
  }

  /** Conducts, asks for the executions, and conducts again when some are refused. */
  async function conductWithChildren(
    commit: WorkflowCommit,
    run: Run,
    event: Event,
    workflow: Execution,
  ): Promise<{ outcome: Outcome; children: ReadonlyMap<string, PlannedChild> }> {
    const children = new Map<string, PlannedChild>()
    const refusals = new Map<string, AppError>()
    const read: unknown[] = []
    const pause = createPause()
    for (;;) {
      const outcome = await conductPatiently(run, event, {
        outside: outsideOf(deps, run, workflow, commit),
        limits: limitsOf(deps.maxTasks),
        refusalOf: (command) => refusals.get(keyOf(command)),
        workflow,
        hasAction: (ref) => deps.actions.find(ref) !== undefined,
        templates: () => executions.templatesOf(workflow, read),
      })
      run.addSecrets(read)
      const known = refusals.size
      for (const command of outcome.commands) {
        if (command.kind !== 'start' || children.has(keyOf(command))) continue
        const planned = await request(run, workflow, command)
        await pause()
        if (isAppError(planned)) {
          refusals.set(keyOf(command), planned)
          break
        }
        children.set(keyOf(command), planned)
      }
      if (refusals.size === known) return { outcome, children }
    }
  }

  /** @returns why it is refused, or the child */
  async function request(run: Run, workflow: Execution, command: StartCommand): Promise<PlannedChild | AppError> {
    for (;;) {
      try {
        return await planChild(executions, run, workflow, command)
      } catch (error) {
        if (isRefusal(error)) return error
        if (!isAppError(error) || error.code !== 'QUEUE_FULL') throw error
        await delay(RETRY_AFTER_MS)
      }
    }
  }

  async function handle(
    commit: WorkflowCommit,
    run: Run,
    event: Event,
    child?: Execution,
  ): Promise<string | undefined> {
    commit.touch(run)
    const execution = executionOf(commit, run)
    let outcome: Outcome
    let children: ReadonlyMap<string, PlannedChild> = new Map()
    try {
      ;({ outcome, children } = await conductWithChildren(commit, run, event, execution))
    } catch (error) {
      // What has happened is stored in any case; a fault of the server ends the workflow instead of leaving it stuck.
      if (isAppError(error) && !isRefusal(error)) throw error
      log.error('workflow.failed', 'Could not conduct a workflow', { workflow_execution_id: run.header.id, error })
      outcome = broken(run.state, `InternalError: ${error instanceof Error ? error.message : String(error)}`)
    }
    const { changes, commands, refused } = outcome
    if (changes === undefined) return refused
    const before = run.state.workflow.status
    commit.say(run, execution, linesOf(storyOf(commit, run, execution, { event, child, changes, commands, children })))
    save(commit, run, changes)
    const newSecrets = run.takeNewSecrets()
    const sealed = newSecrets.length === 0 ? undefined : deps.sealSecrets(run, newSecrets)
    if (sealed !== undefined) commit.add({ steps: [store.putSecrets(run.header, sealed)], facts: [] })
    for (const command of commands) await carryOut(commit, run, command, children)
    if (event.kind === 'pending' && isEnd(run.state.workflow.status)) cascades.withdrawLate(commit, run, event)
    // A resume changes the execution before the workflow hears of it.
    if (before !== run.state.workflow.status || event.kind === 'resume') showStatus(commit, run)
    return undefined
  }

  function save(commit: WorkflowCommit, run: Run, changes: Changes): void {
    const saved = store.save(run.header, changes, { seal: deps.sealOf(run), at: commit.at })
    commit.add({ steps: saved.steps, facts: [] })
    run.header = saved.header
    run.state = apply(run.state, changes)
  }

  function storyOf(
    commit: WorkflowCommit,
    { header, program, state, endReason }: Run,
    workflow: Execution,
    told: Pick<Story, 'event' | 'child' | 'changes' | 'commands'> & { children: ReadonlyMap<string, PlannedChild> },
  ): Story {
    const { children, ...of } = told
    const secondsSince = (start: string): number => (microsOf(commit.at) - microsOf(start)) / 1_000_000
    return {
      ...of,
      graph: program.graph,
      workflow,
      endReason,
      before: state,
      idOf: (command) => children.get(keyOf(command))?.execution.id,
      seconds: secondsSince(workflow.start_timestamp),
      secondsOf(instance) {
        const start = store.findTask(header.id, instance)?.start_timestamp ?? null
        return start === null ? undefined : secondsSince(start)
      },
    }
  }

  async function carryOut(
    commit: WorkflowCommit,
    run: Run,
    command: Command,
    children: ReadonlyMap<string, PlannedChild>,
  ): Promise<void> {
    switch (command.kind) {
      case 'start':
        begin(commit, run, command, children.get(keyOf(command)))
        return
      case 'cascade':
        cascades.begin(commit, run, command.request)
        return
      case 'finish':
        await finish(commit, run, command)
        return
      case 'continue':
        inNextCommit(commit, run, (next, { header }) => next.tell(header.id, { kind: 'continue' }))
        return
      case 'deadline':
        limit(commit, run, command.seconds)
        return
      case 'status':
    }
  }

  /** The workflow may take so long, or as long as its task in the workflow above lets it. */
  function limit(commit: WorkflowCommit, run: Run, seconds: number): void {
    const execution = executionOf(commit, run)
    const at = formatMicros(microsOf(commit.at) + seconds * 1_000_000)
    if (execution.due_timestamp !== null && execution.due_timestamp <= at) return
    const planned = executions.planDeadline(execution, at)
    commit.add(planned.unit)
    commit.putExecution(planned.execution)
  }

  function begin(commit: WorkflowCommit, run: Run, command: StartCommand, child: PlannedChild | undefined): void {
    if (child === undefined) throw new Error(`task ${command.task} has no execution`)
    const { execution, unit } = child
    const { instance, item = null, attempt } = command
    const { id: workflow } = run.header
    const action = {
      execution: execution.id,
      workflow,
      instance,
      item,
      attempt,
      task_execution: taskExecutionId(workflow, instance, attempt),
    }
    commit.add({ ...unit, steps: [...unit.steps, store.putAction(action)] })
    commit.putExecution(execution)
    // Its parameters could not be rendered: it has failed before its start.
    if (isFinal(execution.status)) tellOf(commit, action, 'requested', execution)
  }

  async function finish(
    commit: WorkflowCommit,
    run: Run,
    { status }: Extract<Command, { readonly kind: 'finish' }>,
  ): Promise<void> {
    const execution = executionOf(commit, run)
    if (isFinal(execution.status) || !isEnd(status)) return
    try {
      const result = resultOf(commit, run, execution)
      const failure = status === 'succeeded' ? executions.outputFailureOf(execution, result) : undefined
      if (failure !== undefined) fail(commit, run, execution, `OutputSchemaError: ${String(failure['error'])}`)
      const stored = await executions.maskOutput(execution, failure ?? result, run.secretValues)
      await writeStoredJson(stored.result)
      change(commit, execution, { kind: 'exit', status: failure === undefined ? status : 'failed', ...stored })
    } catch (error) {
      if (isAppError(error) && !isRefusal(error)) throw error
      // The workflow has ended all the same.
      log.error('workflow.result_lost', 'Could not store the result of a workflow', {
        execution_id: execution.id,
        workflow_execution_id: run.header.id,
        error,
      })
      const message = `InternalError: The result cannot be stored: ${error instanceof Error ? error.message : String(error)}`
      const result = { output: null, errors: [{ type: 'error', message }] }
      if (run.state.workflow.status === 'succeeded') fail(commit, run, execution, message)
      change(commit, execution, { kind: 'exit', status: status === 'succeeded' ? 'failed' : status, result })
    }
    const { held, request } = run.state.workflow
    // Inquiries, and what has not started.
    if (status === 'canceled') cascades.begin(commit, run, 'cancel')
    else if (held > 0 || request === 'pause') cascades.begin(commit, run, 'withdraw')
  }

  /** The workflow has succeeded, but what it gives cannot be taken. */
  function fail(commit: WorkflowCommit, run: Run, execution: Execution, message: string): void {
    const seconds = (microsOf(commit.at) - microsOf(execution.start_timestamp)) / 1_000_000
    commit.say(run, execution, [failureLine(execution, { error: message }, seconds)])
    save(commit, run, failed(run.state, message))
  }

  function resultOf(commit: WorkflowCommit, run: Run, execution: Execution): Record<string, unknown> {
    const shown = run.program.resultOf(execution, run.state, (instance) => runOf(commit, run, instance))
    return run.endReason === undefined ? shown : { ...shown, message: run.endReason }
  }

  function runOf(commit: WorkflowCommit, run: Run, instance: InstanceRow): TaskRun {
    const { id } = run.header
    const task = store.findTask(id, instance.id)
    const action = store.latestAction(id, instance.id, null)
    const execution =
      action === undefined ? undefined : (commit.execution(action.execution) ?? executions.find(action.execution))
    return {
      start: execution?.start_timestamp ?? task?.start_timestamp ?? commit.at,
      end: execution?.end_timestamp ?? task?.end_timestamp ?? commit.at,
      execution,
      result: outsideOf(deps, run, executionOf(commit, run), commit).resultOf(instance.id, undefined),
    }
  }

  /** The status of the execution follows that of the workflow; its end has come with `finish`. */
  function showStatus(commit: WorkflowCommit, run: Run): void {
    const execution = executionOf(commit, run)
    const { status, request } = run.state.workflow
    switch (status) {
      case 'running':
        if (isHalted.has(execution.status)) change(commit, execution, { kind: 'resumed' })
        return
      case 'paused':
        if (execution.status !== 'paused') change(commit, execution, { kind: 'paused' })
        return
      case 'canceling':
        // A canceled action cancels its workflow.
        if (request === 'cancel') return
        change(commit, execution, { kind: 'cancel', user: execution.user })
        cascades.begin(commit, run, 'cancel')
        return
      default:
    }
  }

  function inNextCommit(commit: WorkflowCommit, run: Run, plan: (next: WorkflowCommit, run: Run) => void): void {
    commit.afterwards(() =>
      deps.later(run, async (next) => {
        const known = await find(next, run.header.id)
        if (known !== undefined) plan(next, known)
        await settle(next)
      }),
    )
  }

  async function settle(commit: WorkflowCommit): Promise<void> {
    for (let told = commit.next(); told !== undefined; told = commit.next()) {
      const run = await find(commit, told.workflow)
      if (run === undefined) continue
      run.addSecrets(told.secrets)
      await handle(commit, run, told.event, told.child)
    }
  }

  async function find(commit: WorkflowCommit, workflow: string): Promise<Run | undefined> {
    try {
      return await deps.load(commit, workflow)
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      giveUp(commit, workflow, error)
      return undefined
    }
  }

  /** What has happened is stored all the same: nobody could finish the workflow later. */
  function giveUp(commit: WorkflowCommit, workflow: string, error: Unreadable): void {
    const header = commit.isGivenUp(workflow) ? undefined : store.find(workflow)
    if (header === undefined || header.end_timestamp !== null) return
    log.error('workflow.unreadable', 'Could not read a workflow: it has failed', {
      workflow_execution_id: workflow,
      error,
    })
    commit.giveUp(workflow)
    commit.add({ steps: store.giveUp(header, commit.at).steps, facts: [] })
    const execution = commit.execution(header.execution) ?? executions.find(header.execution)
    if (execution === undefined || isFinal(execution.status)) return
    const message = `InternalError: The workflow cannot go on. ${error.message}`
    const result = { output: null, errors: [{ type: 'error', message }] }
    change(commit, execution, { kind: 'exit', status: 'failed', result })
    for (const seen of openChildrenOf(executions, header, '', MAX_WITHDRAWN)) {
      const child = commit.execution(seen.id) ?? seen
      if (child.status !== 'pending') continue
      change(commit, child, { kind: 'settle', status: 'canceled', result: { message: WITHDRAWN } })
    }
  }

  return { settle, find, handle, limit, goOnCascading: cascades.goOn }
}

type EndedWorkflow = Extract<WorkflowStatus, 'succeeded' | 'failed' | 'timeout' | 'canceled'>
const isEnd = (status: WorkflowStatus): status is EndedWorkflow =>
  status === 'succeeded' || status === 'failed' || status === 'timeout' || status === 'canceled'

const keyOf = ({ instance, item, attempt }: StartCommand): string => `${instance}/${item ?? ''}/${attempt}`

const limitsOf = (maxInstances: number): Limits => ({
  ...defaultLimits,
  maxInstances,
  maxStartsPerTurn: STARTS_PER_COMMIT,
})
