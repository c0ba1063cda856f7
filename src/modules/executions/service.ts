/** What can be done with executions: request, read, cancel, settle, run again. */
import { commitPlan, merge, type Database, type Unit } from '../../db/index.ts'
import { noExecutions, queueFull, resourceNotFound, type AppError } from '../../core/errors.ts'
import type { Scope } from '../../core/permissions.ts'
import { allRights, aboutCaller, writeStoredJson } from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import type { Actions } from '../actions/index.ts'
import type { ActionRecord } from '../actions/types.ts'
import type { Traces } from '../traces/index.ts'
import type { Cause } from '../traces/types.ts'
import type { Change } from './change.ts'
import type { Live } from './live.ts'
import {
  draftExecution,
  draftRetry,
  findAction,
  type ExecutionCaller,
  type Draft,
  type DraftOptions,
  type RetryChanges,
  type RolesOf,
} from './request/draft.ts'
import type { ExecutionRequest, RerunRequest } from './request/schemas.ts'
import type { TemplateSources } from './request/template-scope.ts'
import { createReruns } from './rerun.ts'
import { startFailure } from './run/dispatcher.ts'
import type { StopBackground } from './run/background.ts'
import type { ParameterSecrets } from './secrets/parameters.ts'
import type { ResultSecrets } from './secrets/results.ts'
import type { ExecutionStore } from './store.ts'
import type { ExecutionReaction } from './ports.ts'
import type { Execution, ExecutionOrigin, RunningRules } from './types.ts'
import { createUpdates, type Updates } from './update.ts'

export interface ExecutionService extends Updates {
  /** @throws see `draftExecution`; TRACE_UNKNOWN, QUEUE_FULL */
  request(
    caller: ExecutionCaller,
    request: ExecutionRequest,
    contextHeader?: string,
    more?: RequestOptions,
  ): Promise<Execution>
  /**
   * Several at once: all of them, or an error and none. One that fails before its start is stored, and the others are not.
   * With an idempotency key, the subject of the request is their ids, with commas between.
   *
   * @throws what `request` throws
   */
  requestAll(
    caller: ExecutionCaller,
    requests: readonly { request: ExecutionRequest; more: RequestOptions }[],
  ): Promise<Execution[]>
  /**
   * Plans an execution that the system starts itself; writes nothing. With a `failure` the execution failed before its
   * start; it is stored for reference.
   *
   * @throws ACTION_UNKNOWN, ACTION_DISABLED, PARAMETERS_INVALID, TRACE_UNKNOWN
   */
  plan(request: SystemRequest): Promise<{ execution: Execution; unit: Unit; failure: AppError | undefined }>
  /**
   * Plans a retry of an ended execution; writes nothing. `actionrunner.queue_limit` does not apply: the ended execution
   * has left the queue.
   *
   * @param about for the audit log
   * @throws ACTION_UNKNOWN, ACTION_DISABLED, CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID
   */
  planRetry(ended: Execution, changes: RetryChanges, about?: LogFields): { execution: Execution; unit: Unit }
  /**
   * Whether the queue and the disk have room for one more execution that no user requested. The last tenth of
   * `actionrunner.queue_limit` is reserved for requests.
   */
  hasRoom(): boolean
  /** @throws RESOURCE_NOT_FOUND, PERMISSION_DENIED, and what `request` throws */
  rerun(caller: ExecutionCaller, id: string, request: RerunRequest, merges: boolean): Promise<Execution>
  /** The action an execution is asked of. @throws ACTION_UNKNOWN */
  actionOf(refOrId: string): ActionRecord
  /** @throws RESOURCE_NOT_FOUND */
  get(id: string): Execution
  /** Also knows `last`. @throws RESOURCE_NOT_FOUND, NO_EXECUTIONS */
  getOrLast(idOrLast: string): Execution
  /** @throws RESOURCE_NOT_FOUND */
  getWithResult(idOrLast: string): Execution
  /** The one with the greatest id. */
  last(): Execution | undefined
}

export type RequestOptions = Pick<DraftOptions, 'extraContext' | 'literals' | 'notifyIsData'>

export interface SystemRequest {
  action: string
  /** Data: nothing in them is a template any more. */
  parameters: Record<string, unknown>
  /** Besides what the server sets in every context. */
  context: Record<string, unknown>
  cause: Cause
  /** The rule that starts it, and the id of the trigger instance. */
  origin?: ExecutionOrigin
  triggerInstance?: string
  /** The workflow that starts it: it runs in the name of the same user, with the same scopes. */
  parent?: Execution
  delayMs?: number
  /** Seconds that it may take once it has started; default: what its action says. */
  timeout?: number
  /** Executions by rules in the chain that led to it, itself included. */
  depth?: number
  /** What its rule says about overlaps and retries. */
  running?: RunningRules
  notify?: Record<string, unknown>
  /** What must not be seen of the parameters, besides what their schemas mark. */
  secrets?: readonly unknown[]
  /** Why it fails before it begins: its parameters could not be rendered. */
  failure?: AppError
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
  parameters: ParameterSecrets
  results: Pick<ResultSecrets, 'maskReport'>
  stopBackground: StopBackground
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** `actionrunner.queue_limit` */
  queueLimit: number
  readonly sources: TemplateSources
  /** Acting user of what the system starts by itself. */
  systemUser: string
  readonly planReaction: ExecutionReaction
  readonly stopRun: (id: string, user: string) => boolean
}): ExecutionService {
  const { store, database, change, actions, rolesOf, traces, sources, parameters: secrets, log } = deps
  const findExecution = (id: string): Execution | undefined => (isId(id) ? store.find(id) : undefined)
  const draftDeps = { actions, rolesOf, sources, parameters: secrets, findExecution }
  const reruns = createReruns({ ...draftDeps, maskSecrets: deps.maskSecrets })
  const system: ExecutionCaller = {
    principal: { user: deps.systemUser, isAdmin: true, method: 'none' },
    rights: allRights,
    requestId: '-',
    remoteAddress: '-',
  }

  /** Whoever runs a workflow may run its actions. */
  function callerOf(workflow: Execution): ExecutionCaller {
    const { scopes } = workflow.context
    const own = Array.isArray(scopes) ? { scopes: scopes as Scope[] } : {} // only the server sets them
    return { ...system, principal: { ...system.principal, user: workflow.user, ...own } }
  }

  /** Admitted and not committed yet. */
  let creating = 0

  const waits = (): number => deps.live.waitingCount + creating

  function admit(count: number): void {
    if (waits() + count > deps.queueLimit) throw queueFull('executions', deps.queueLimit)
    const shortage = database.shortage()
    if (shortage !== undefined) throw shortage
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
        subject: execution.id,
      },
      deps.planReaction(execution),
      failure === undefined
        ? undefined
        : change.plan(execution, { kind: 'reject', result: startFailure(failure) })?.unit,
    )
  }

  async function create(makeDrafts: readonly (() => Promise<Draft>)[], caller: ExecutionCaller): Promise<Execution[]> {
    const { length: count } = makeDrafts
    admit(count)
    creating += count
    try {
      const drafts: Draft[] = []
      for (const makeDraft of makeDrafts) {
        const draft = await makeDraft()
        await writeStoredJson(draft.execution.parameters)
        drafts.push(draft)
      }
      const failed = drafts.filter(({ failure }) => failure !== undefined)
      const created = failed.length > 0 ? failed : drafts
      const subject = created.map(({ execution }) => execution.id).join(',')
      // When another request has started a trace with the same tag, this one joins it.
      await commitPlan(
        database,
        () => {
          const units = created.map((draft) => planCreation(draft, aboutCaller(caller)))
          return { result: undefined, unit: { ...merge(...units), subject } }
        },
        'The trace',
      )
      for (const { failure } of failed) throw failure
      return created.map(({ execution }) => execution)
    } finally {
      creating -= count
    }
  }

  async function createOne(makeDraft: () => Promise<Draft>, caller: ExecutionCaller): Promise<Execution> {
    const [execution] = await create([makeDraft], caller)
    if (execution === undefined) throw new Error('one draft makes one execution')
    return execution
  }

  function get(id: string): Execution {
    const execution = findExecution(id)
    if (execution === undefined) throw resourceNotFound(id)
    return execution
  }

  function resolveLast(idOrLast: string): string {
    if (idOrLast !== 'last') return idOrLast
    const id = store.lastId()
    if (id === undefined) throw noExecutions()
    return id
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

    last() {
      const id = store.lastId()
      return id === undefined ? undefined : store.find(id)
    },

    actionOf: (refOrId) => findAction(actions, refOrId).action,

    request: (caller, request, contextHeader, more = {}) =>
      createOne(() => draftExecution({ ...draftDeps, ...more, caller, request, contextHeader }), caller),
    requestAll: (caller, requests) =>
      create(
        requests.map(
          ({ request, more }) =>
            () =>
              draftExecution({ ...draftDeps, ...more, caller, request, contextHeader: undefined }),
        ),
        caller,
      ),

    async plan({ action, parameters, context, delayMs, notify, secrets: known = [], failure, ...others }) {
      const { parent } = others
      const draft = await draftExecution({
        ...draftDeps,
        secrets: known,
        caller: parent === undefined ? system : callerOf(parent),
        request: {
          action,
          parameters,
          ...(delayMs === undefined ? {} : { delay: delayMs }),
          ...(notify === undefined ? {} : { notify }),
        },
        extraContext: context,
        literals: new Set(Object.keys(parameters)),
        ...others,
        ...(failure === undefined ? {} : { failure }),
      })
      await writeStoredJson(draft.execution.parameters)
      return { execution: draft.execution, unit: planCreation(draft), failure: draft.failure }
    },
    planRetry(ended, changes, about) {
      const { parameters } = secrets.decrypt(ended)
      const draft = draftRetry(actions, rolesOf, { ...ended, parameters }, changes)
      // A secret of the original stays one, even if the action has changed.
      secrets.encrypt(draft.execution, secrets.secretsOf(ended))
      return { execution: draft.execution, unit: planCreation(draft, about) }
    },
    hasRoom: () => waits() < Math.ceil(deps.queueLimit * RULES_SHARE) && database.hasRoom(),

    async rerun(caller, id, request, merges) {
      return createOne(reruns.prepare(caller, get(id), request, merges), caller)
    },

    ...createUpdates({
      store,
      get,
      change,
      stopRun: deps.stopRun,
      results: deps.results,
      stopBackground: deps.stopBackground,
      log,
    }),
  }
}
