/** What can be done with executions: request, read, cancel, settle, run again. */
import { commitPlan, merge, type Database, type Unit } from '../../db/index.ts'
import {
  executionUpdateRefused,
  noExecutions,
  permissionDenied,
  queueFull,
  storageFull,
  resourceNotFound,
  transitionRefused,
  type AppError,
} from '../../core/errors.ts'
import { allRights, aboutCaller } from '../../http/index.ts'
import type { OldRecords } from '../../core/retention.ts'
import { isId } from '../../core/ids.ts'
import { inquirerName } from '../../runners/index.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import type { Actions } from '../actions/index.ts'
import type { ActionRecord } from '../actions/types.ts'
import type { Traces } from '../traces/index.ts'
import type { Cause } from '../traces/types.ts'
import { aboutExecution, idsOf } from './audit.ts'
import type { Change } from './change.ts'
import { startFailure } from './dispatcher.ts'
import type { Live } from './live.ts'
import {
  draftAgain,
  draftExecution,
  findAction,
  type Again,
  type Caller,
  type Draft,
  type ExecutionRequest,
  type RerunRequest,
  type RolesOf,
  type TemplateSources,
} from './request.ts'
import type { Sealing } from './sealing.ts'
import { isCancelable, isFinal, type FinalStatus } from './state.ts'
import type { ExecutionStore } from './store.ts'
import type { Execution, ExecutionOrigin, ExecutionStatus } from './types.ts'
import type { PlanReaction } from './ports.ts'

export interface ExecutionService {
  /** @throws see `draftExecution`; TRACE_UNKNOWN, QUEUE_FULL */
  request(caller: Caller, request: ExecutionRequest, contextHeader?: string): Promise<Execution>
  /**
   * An execution that the system starts by itself; writes nothing. With a `failure` it is one that has failed before it
   * began, kept for whoever looks for it.
   *
   * @throws ACTION_UNKNOWN, ACTION_DISABLED, PARAMETERS_INVALID, TRACE_UNKNOWN
   */
  plan(request: SystemRequest): { execution: Execution; unit: Unit; failure: AppError | undefined }
  /**
   * Another execution like one that has ended, caused by it; writes nothing. `actionrunner.queue_limit` does not keep it out:
   * what has ended has made the room.
   *
   * @param about for the audit log
   * @throws ACTION_UNKNOWN, ACTION_DISABLED, CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID
   */
  planAgain(ended: Execution, again: Again, about?: LogFields): { execution: Execution; unit: Unit }
  /**
   * Whether `actionrunner.queue_limit`, of which the last tenth is kept for requests, and the disk leave room for one more
   * that nobody has asked for.
   */
  hasRoom(): boolean
  /** @throws RESOURCE_NOT_FOUND, PERMISSION_DENIED, and what `request` throws */
  rerun(caller: Caller, id: string, request: RerunRequest, merges: boolean): Promise<Execution>
  /** @throws RESOURCE_NOT_FOUND; TRANSITION_REFUSED when it cannot be cancelled any more */
  cancel(caller: Caller, id: string): Promise<Execution>
  /**
   * Cancels those among the next old ones that have not ended.
   *
   * @returns how many that were, or would be
   */
  cancelOld(caller: Caller, old: OldRecords, dryRun: boolean): Promise<number>
  /** Pause, resume, cancel, or an end decided outside. @throws RESOURCE_NOT_FOUND, EXECUTION_UPDATE_REFUSED */
  update(caller: Caller, id: string, status: ExecutionStatus, result?: Record<string, unknown>): Promise<Execution>
  /** The action an execution is asked of. @throws ACTION_UNKNOWN */
  actionOf(refOrId: string): ActionRecord
  /** @throws RESOURCE_NOT_FOUND */
  get(id: string): Execution
  /** Also knows `last`. @throws RESOURCE_NOT_FOUND, NO_EXECUTIONS */
  getOrLast(idOrLast: string): Execution
  /** @throws RESOURCE_NOT_FOUND */
  getWithResult(idOrLast: string): Execution
}

export interface SystemRequest {
  action: string
  /** Data: nothing in them is a template any more. */
  parameters: Record<string, unknown>
  /** Besides what the server sets in every context. */
  context: Record<string, unknown>
  cause: Cause
  origin: ExecutionOrigin
  /** Id. */
  triggerInstance: string
  /** What must not be seen of the parameters, besides what their schemas mark. */
  secrets?: readonly unknown[]
  /** Why it fails before it begins: its parameters could not be rendered. */
  failure?: AppError
}

/** What a re-run is given of the parameters of the original, as they were. */
interface Kept {
  parameters: Record<string, unknown>
  isAll: boolean
}

/**
 * Of the places in the queue. Rules take each one in the moment in which it becomes free: with all of them, events that keep
 * coming, such as those of rules that set each other off, would leave none for people.
 */
const RULES_SHARE = 0.9

export function createExecutionService(deps: {
  store: ExecutionStore
  database: Database
  change: Change
  actions: Actions
  rolesOf: RolesOf
  traces: Traces
  live: Live
  log: Log
  /** Names of the parameters in which something is hidden from those who are no administrators. */
  secretsOf(execution: Execution): string[]
  /** Hides the secrets in a result that comes from outside; `sealed` is the whole, encrypted. */
  concealReport(execution: Execution, result: Record<string, unknown>): { result: unknown; sealed?: string }
  /** `actionrunner.queue_limit` */
  queueLimit: number
  readonly sources: TemplateSources
  sealing: Sealing
  /** Acting user of what the system starts by itself. */
  systemUser: string
  readonly planReaction: (execution: Execution) => ReturnType<PlanReaction>
}): ExecutionService {
  const { store, database, change, actions, rolesOf, traces, sources, sealing, log } = deps
  const system: Caller = {
    principal: { user: deps.systemUser, isAdmin: true, method: 'none' },
    rights: allRights,
    requestId: '-',
    remoteAddress: '-',
  }

  /** Admitted and not committed yet. */
  let creating = 0

  const waits = (): number => deps.live.waitingCount + creating

  function admit(): void {
    if (waits() >= deps.queueLimit) throw queueFull('executions', deps.queueLimit)
    if (!database.hasRoom()) throw storageFull()
  }

  function planCreation({ execution, cause, failure }: Draft, about?: LogFields): Unit {
    const member = { kind: 'execution', object_id: execution.id, ref: execution.action_ref } as const
    const trace = traces.plan(cause, member, execution.start_timestamp)
    execution.trace_id = trace.trace_id
    return merge(
      trace.unit,
      {
        steps: store.insert(execution),
        facts: [{ name: 'execution.created', payload: { execution, ...(about === undefined ? {} : { about }) } }],
      },
      deps.planReaction(execution),
      failure === undefined
        ? undefined
        : change.plan(execution, { kind: 'reject', result: startFailure(failure) })?.unit,
    )
  }

  async function create(draft: Draft, caller: Caller): Promise<Execution> {
    const { execution, failure } = draft
    creating += 1
    try {
      // When another request has started a trace with the same tag, this one joins it.
      await commitPlan(
        database,
        () => ({ result: undefined, unit: planCreation(draft, aboutCaller(caller)) }),
        'The trace',
      )
    } finally {
      creating -= 1
    }
    if (failure !== undefined) throw failure
    return execution
  }

  function get(id: string): Execution {
    const execution = isId(id) ? store.find(id) : undefined
    if (execution === undefined) throw resourceNotFound(id)
    return execution
  }

  function resolveLast(idOrLast: string): string {
    if (idOrLast !== 'last') return idOrLast
    const id = store.lastId()
    if (id === undefined) throw noExecutions()
    return id
  }

  /**
   * Reads and changes again as long as others change it in between.
   *
   * @param stays whether it is answered as it is; throws when it cannot be cancelled
   */
  async function cancelSeen(
    execution: Execution,
    caller: Caller,
    stays: (seen: Execution) => boolean,
  ): Promise<Execution> {
    let seen = execution
    for (;;) {
      if (stays(seen)) return seen
      const changed = await change.try(seen, { kind: 'cancel', user: caller.principal.user })
      if (changed !== undefined) {
        const { status } = changed
        const message = `Canceling action execution. ${idsOf(changed)}`
        log.audit('execution.canceled', message, { ...aboutExecution(changed, aboutCaller(caller)), status })
        return changed
      }
      seen = get(execution.id)
    }
  }

  async function settleSeen(
    execution: Execution,
    caller: Caller,
    status: FinalStatus,
    result: Record<string, unknown> | undefined,
  ): Promise<Execution> {
    const concealed = result === undefined ? { result } : deps.concealReport(execution, result)
    let seen = execution
    for (;;) {
      refuseFinal(seen)
      const changed = await change.try(seen, { kind: 'settle', status, ...concealed })
      if (changed !== undefined) {
        const message = `Action execution updated. ${idsOf(changed)}`
        log.audit('execution.updated', message, { ...aboutExecution(changed, aboutCaller(caller)), status })
        return changed
      }
      seen = get(execution.id)
    }
  }

  /** @param names undefined: all */
  function keptOf(original: Execution, names: readonly string[] | undefined): Kept {
    if (names?.length === 0) return { parameters: {}, isAll: false }
    const entries = Object.entries(sealing.open(original).parameters)
    const kept = names === undefined ? entries : entries.filter(([name]) => names.includes(name))
    return { parameters: Object.fromEntries(kept), isAll: kept.length === entries.length }
  }

  /**
   * Who may not see somebody else's secrets can have them used again as they were, but not beside values of one's own, and
   * not without others that they were used with: a template could print them, and another command or address would get them.
   *
   * @param kept those that a re-run is given of the original
   * @returns whose secrets are among them
   * @throws PERMISSION_DENIED
   */
  function inheritSecrets(
    original: Execution,
    kept: Kept,
    { parameters = {}, user }: RerunRequest,
    caller: Caller,
  ): string[] {
    const { isAdmin, user: callingUser, scopes } = caller.principal
    const secrets = deps
      .secretsOf(original)
      .filter((name) => Object.hasOwn(kept.parameters, name) && !Object.hasOwn(parameters, name))
    if (secrets.length === 0) return []
    const owners = original.liveaction.secret_owners ?? [original.user]
    // Whoever holds a key with scopes is not told all that its user knows.
    const foreign = scopes === undefined ? owners.filter((owner) => owner !== (user ?? callingUser)) : owners
    const isUnchanged = kept.isAll && Object.keys(parameters).length === 0
    if (isAdmin || foreign.length === 0 || isUnchanged) return owners
    throw permissionDenied(
      `The execution has secret parameters (${secrets.join(', ')}) of "${foreign.join('" and "')}". Give other values for these too, or run it again without any changes.`,
    )
  }

  return {
    get,
    getOrLast: (idOrLast) => get(resolveLast(idOrLast)),
    getWithResult(idOrLast) {
      const id = resolveLast(idOrLast)
      const execution = isId(id) ? store.findWithResult(id) : undefined
      if (execution === undefined) throw resourceNotFound(id)
      return execution
    },

    actionOf: (refOrId) => findAction(actions, refOrId).action,

    async request(caller, request, contextHeader) {
      admit()
      return create(
        draftExecution({
          actions,
          rolesOf,
          caller,
          request,
          contextHeader,
          sources,
          sealing,
          findExecution: findById(store),
        }),
        caller,
      )
    },

    plan({ action, parameters, context, cause, origin, triggerInstance, secrets = [], failure }) {
      const draft = draftExecution({
        actions,
        rolesOf,
        sources,
        sealing,
        secrets,
        caller: system,
        request: { action, parameters },
        extraContext: context,
        literals: new Set(Object.keys(parameters)),
        cause,
        origin,
        triggerInstance,
        findExecution: findById(store),
        ...(failure === undefined ? {} : { failure }),
      })
      return { execution: draft.execution, unit: planCreation(draft), failure: draft.failure }
    },
    planAgain(ended, again, about) {
      const { parameters } = sealing.open(ended)
      const draft = draftAgain(actions, rolesOf, { ...ended, parameters }, again)
      // What was secret stays so, whatever the action says by now.
      sealing.seal(draft.execution, sealing.secretsOf(ended))
      return { execution: draft.execution, unit: planCreation(draft, about) }
    },
    hasRoom: () => waits() < Math.ceil(deps.queueLimit * RULES_SHARE) && database.hasRoom(),

    async rerun(caller, id, request, merges) {
      const original = get(id)
      checkTasks(request)
      const kept = keptOf(original, merges ? undefined : (request.keep ?? []))
      const secretOwners = inheritSecrets(original, kept, request, caller)
      admit()
      const inherited = kept.parameters
      const overrides = request.parameters ?? {}
      const templated = new Set([...Object.keys(overrides), ...(original.liveaction.unrendered ?? [])])
      const draft = draftExecution({
        actions,
        rolesOf,
        caller,
        literals: new Set(Object.keys(inherited).filter((name) => !templated.has(name))),
        request: {
          action: original.action_ref,
          parameters: { ...inherited, ...overrides },
          user: request.user ?? null,
          delay: request.delay ?? null,
        },
        extraContext: { 're-run': { ref: original.id } },
        cause: { kind: 'inherited', trace_id: original.trace_id, caused_by: undefined },
        sources,
        sealing,
        // What was secret stays so, whatever the action says by now.
        secrets: Object.keys(inherited).length === 0 ? [] : sealing.secretsOf(original),
        findExecution: findById(store),
      })
      const { execution } = draft
      if (secretOwners.length > 0) {
        const hasOwn = deps.secretsOf(execution).some((name) => Object.hasOwn(overrides, name))
        execution.liveaction.secret_owners = [...new Set([...secretOwners, ...(hasOwn ? [execution.user] : [])])]
      }
      return create(draft, caller)
    },

    async cancel(caller, id) {
      return cancelSeen(get(id), caller, ({ status }) => {
        if (status === 'canceled') return true
        if (isCancelable(status)) return false
        throw transitionRefused(`Action cannot be canceled. State = ${status}.`)
      })
    },

    async cancelOld(caller, { before, after, limit, actionRef }, dryRun) {
      const open = store.madeBefore(before, after, limit, actionRef).filter(({ status }) => isCancelable(status))
      if (dryRun) return open.length
      let canceled = 0
      for (const { id } of open) {
        const execution = store.find(id)
        if (execution === undefined) continue
        await cancelSeen(execution, caller, ({ status }) => !isCancelable(status))
        canceled += 1
      }
      return canceled
    },

    async update(caller, id, status, result) {
      const execution = get(id)
      refuseFinal(execution)
      if (status === 'succeeded' && execution.runner.name === inquirerName) {
        // Only whom it asks may say what the answer is.
        throw executionUpdateRefused(`An inquiry succeeds by a response: PUT /inquiries/${id}.`)
      }
      switch (status) {
        case 'pausing':
        case 'paused':
          throw executionUpdateRefused(pauseRefusal(execution, 'pause'))
        case 'resuming':
          throw executionUpdateRefused(pauseRefusal(execution, 'resume'))
        case 'canceling':
        case 'canceled':
          return cancelSeen(execution, caller, (seen) => {
            refuseFinal(seen)
            return !isCancelable(seen.status)
          })
        case 'succeeded':
        case 'failed':
        case 'timeout':
        case 'abandoned':
          return settleSeen(execution, caller, status, result)
        default:
          throw executionUpdateRefused(
            `status: "${status}" is set by the server itself; use a final status, canceling, pausing or resuming.`,
          )
      }
    },
  }
}

function findById(store: ExecutionStore): (id: string) => Execution | undefined {
  return (id) => (isId(id) ? store.find(id) : undefined)
}

/** @throws EXECUTION_UPDATE_REFUSED */
function refuseFinal({ status }: Execution): void {
  if (isFinal(status)) throw executionUpdateRefused('Execution is already in completed state.')
}

function pauseRefusal(execution: Execution, verb: 'pause' | 'resume'): string {
  return (
    `Failed updating execution. Unable to ${verb} liveaction "${execution.liveaction_id}" because it is not supported ` +
    `by the "${execution.runner.name}" runner.`
  )
}

/** Names of tasks make sense for workflows only. @throws EXECUTION_UPDATE_REFUSED */
function checkTasks({ tasks = [], reset = [], parameters = {} }: RerunRequest): void {
  if (tasks.length === 0 && reset.length === 0) return
  if (Object.keys(parameters).length > 0) {
    throw executionUpdateRefused('Parameters override is not supported when re-running task(s) for a workflow.')
  }
  if (reset.some((task) => !tasks.includes(task))) {
    throw executionUpdateRefused('List of tasks to reset does not match the tasks to rerun.')
  }
  throw executionUpdateRefused('Task option is only supported for Orquesta workflows.')
}
