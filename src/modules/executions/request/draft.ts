/** From a request to a new execution (contract 03, 3.1). */
import { actionDisabled, actionUnknown, bodyInvalid, isAppError, type AppError } from '../../../core/errors.ts'
import { newId } from '../../../core/ids.ts'
import { CONFIG_SECRETS, type ReadSecrets } from '../../../core/parameter-scope.ts'
import { textLengthOf } from '../../../core/template-values.ts'
import { userResource } from '../../../core/permissions.ts'
import { formatMicros, nowMicros } from '../../../core/time.ts'
import type { ApiRequest } from '../../../http/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { Actions } from '../../actions/index.ts'
import type { ActionRecord, RunnerTypeRecord } from '../../actions/types.ts'
import type { Cause } from '../../traces/types.ts'
import type { ParameterSecrets } from '../secrets/parameters.ts'
import type { Execution, ExecutionOrigin, RunningRules } from '../types.ts'
import { attemptOf } from '../attempts.ts'
import { causeOf, givenContext, parentOf, traceContextOf } from './context.ts'
import type { ExecutionRequest } from './schemas.ts'
import { templateScope, type TemplateSources } from './template-scope.ts'

export interface Draft {
  execution: Execution
  cause: Cause
  /** Why the execution fails before it begins. Its record is kept, the caller gets this error. */
  failure: AppError | undefined
}

/** The caller of a request: user, address and permissions. */
export type ExecutionCaller = Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>

/** Role names of a user; undefined while access control is off. */
export type RolesOf = ((user: string) => string[]) | undefined

export interface DraftOptions {
  actions: Actions
  rolesOf: RolesOf
  caller: ExecutionCaller
  request: ExecutionRequest
  /** `svc-context` header. */
  contextHeader?: string | undefined
  /** Server-set context besides `user` and `pack`. */
  extraContext?: Record<string, unknown>
  /** `notify` of the request holds no templates. */
  notifyIsData?: boolean
  /** Decides the trace of executions that the system starts. */
  cause?: Cause
  /** Of executions that rules start. */
  origin?: ExecutionOrigin
  /** The workflow that starts it, instead of the one that the context names. */
  parent?: Execution
  /** Seconds that it may take once it has started. */
  timeout?: number
  /** Of executions that rules start. */
  running?: RunningRules
  /** Of executions that rules start: see `Liveaction.depth`. */
  depth?: number
  /** Id, of executions that rules start. */
  triggerInstance?: string
  /** What templates may read. */
  readonly sources: TemplateSources
  parameters: Pick<ParameterSecrets, 'encryptInTurns'>
  /** Secrets in values that were rendered before. */
  secrets?: readonly unknown[]
  /** Why it fails before it begins. */
  failure?: AppError
  /** Names of parameters that an earlier execution or a rule has rendered: they are data. */
  literals?: ReadonlySet<string>
  /** Those of them that hold a secret which the caller did not enter in this request. */
  secretLiterals?: ReadonlySet<string>
  findExecution: (id: string) => Execution | undefined
}

/**
 * Checks a request in the order of contract 03 and creates the execution.
 *
 * @throws ACTION_UNKNOWN, PERMISSION_DENIED, HEADER_INVALID, PARAMETERS_INVALID, ACTION_DISABLED, BODY_INVALID
 */
export async function draftExecution(options: DraftOptions): Promise<Draft> {
  const { actions, request } = options
  const { origin = null } = options
  const { principal, rights } = options.caller
  const { action, runner } = findAction(actions, request.action)

  refuseLarge(request)
  const supplied = givenContext(request.context, options.contextHeader)
  const parent = options.parent ?? parentOf(supplied, options.findExecution)
  const actingUser = parent === undefined ? (request.user ?? principal.user) : parent.user
  // A request that names a parent acts for the user of the parent, which needs the permission to impersonate that user.
  if (actingUser !== principal.user) rights.require('user_impersonate', userResource(actingUser))
  const apiUser = supplied['api_user']
  if (typeof apiUser === 'string' && apiUser !== principal.user && apiUser !== actingUser) {
    // Templates read the datastore in this user's name.
    rights.require('user_impersonate', userResource(apiUser))
  }
  const roles = options.rolesOf?.(actingUser)
  const traceContext = traceContextOf(supplied)
  if (traceContext === undefined) delete supplied['trace_context']
  const context: Record<string, unknown> = {
    ...supplied,
    ...options.extraContext,
    user: actingUser,
    pack: action.pack,
    ...(roles === undefined ? {} : { rbac: { user: actingUser, roles } }),
    // The token of the action has the scopes of the API key that started it.
    ...(principal.scopes === undefined ? {} : { scopes: principal.scopes }),
  }

  const micros = nowMicros()
  const start = formatMicros(micros)
  const execution: Execution = {
    id: newId(micros),
    revision: 1,
    status: 'requested',
    liveaction_id: newId(),
    action_ref: action.ref,
    user: actingUser,
    action,
    runner,
    trace_id: '',
    parent: parent?.id ?? null,
    rule: origin?.rule.name ?? null,
    trigger: origin?.trigger.name ?? null,
    trigger_type: origin?.trigger_type.name ?? null,
    trigger_instance: options.triggerInstance ?? null,
    origin,
    start_timestamp: start,
    end_timestamp: null,
    elapsed_seconds: null,
    delay: request.delay ?? null,
    due_timestamp: request.delay ? formatMicros(micros + request.delay * 1000) : null,
    result_size: null,
    parameters: request.parameters ?? {},
    sealed_parameters: null,
    context,
    log: [{ status: 'requested', timestamp: start }],
    liveaction: {
      callback: request.callback ?? {},
      runner_info: {},
      ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
      ...(options.running === undefined ? {} : { running: options.running }),
      ...(request.notify === undefined ? {} : { notify: request.notify }),
      ...(request.notify === undefined || principal.user === actingUser ? {} : { notify_author: principal.user }),
      ...(options.notifyIsData === true ? { notify_is_data: true } : {}),
    },
  }

  const depth = options.depth ?? parent?.liveaction.depth
  if (depth !== undefined) execution.liveaction.depth = depth
  const failure = await prepareParameters(execution, options)
  return { execution, cause: options.cause ?? causeOf(execution, traceContext, parent), failure }
}

/**
 * Largest `context`, `callback` and `notify`, each, in characters of names and texts plus one for each value: they are
 * in every record, event and trigger instance of the execution.
 */
const MAX_ADDITION_LENGTH = 65_536

/** @throws BODY_INVALID */
function refuseLarge({ context, callback, notify }: ExecutionRequest): void {
  for (const [name, value] of Object.entries({ context, callback, notify })) {
    if (textLengthOf(value, MAX_ADDITION_LENGTH) <= MAX_ADDITION_LENGTH) continue
    throw bodyInvalid(
      `${name}: names and texts have more than ${MAX_ADDITION_LENGTH} characters together. Pass large values as parameters.`,
    )
  }
}

/**
 * Renders, checks and encrypts the parameters of a new execution.
 *
 * @returns why it fails before it begins
 */
async function prepareParameters(execution: Execution, options: DraftOptions): Promise<AppError | undefined> {
  const { actions, request, caller } = options
  const { action, runner } = execution
  let failure = options.failure
  const read: ReadSecrets = [...(options.secrets ?? [])]
  // A message must not repeat the secrets that its reader has entered.
  const withoutSecrets = (error: unknown): unknown => {
    const marked = actions.secretsIn(action, runner, execution.parameters)
    return createSecretValues([...marked, ...read])?.maskError(error) ?? error
  }
  try {
    if (failure !== undefined) throw failure
    const { user } = caller.principal
    const scope = templateScope(options.sources, execution, read, user)
    const ofCaller = caller.rights.may(CONFIG_SECRETS)
      ? undefined
      : {
          user,
          scope: templateScope(options.sources, execution, read, user, user),
          secretLiterals: options.secretLiterals ?? new Set<string>(),
        }
    const turn = { caller: user, isRequest: options.origin === undefined && options.parent === undefined }
    execution.parameters = await actions.render(action, runner, execution.parameters, scope, turn, {
      ...(options.literals === undefined ? {} : { literals: options.literals }),
      ...(ofCaller === undefined ? {} : { ofCaller }),
    })
  } catch (thrown) {
    const error = withoutSecrets(thrown)
    if (!isAppError(error) || error.code !== 'TEMPLATE_FAILED') throw error
    failure = error
    execution.liveaction.unrendered = Object.keys(execution.parameters).filter((name) => !options.literals?.has(name))
  }
  if (!action.enabled) throw actionDisabled(action.ref)
  if (failure === undefined) {
    await actions.prepareCheck(action, runner)
    try {
      actions.check(action, runner, execution.parameters, request.parameters ?? {})
    } catch (error) {
      throw withoutSecrets(error)
    }
  }
  await options.parameters.encryptInTurns(execution, read)
  return failure
}

/** What `draftRetry` changes. */
export interface RetryChanges {
  /** Replaces attributes of the context. */
  context: Record<string, unknown>
  delayMs: number
}

/**
 * A new execution with the parameters of one that has ended. They are data by now, and were checked before.
 *
 * @param ended with its parameters decrypted
 * @throws ACTION_UNKNOWN, ACTION_DISABLED
 */
export function draftRetry(actions: Actions, rolesOf: RolesOf, ended: Execution, changes: RetryChanges): Draft {
  const { action, runner } = findAction(actions, ended.action_ref)
  if (!action.enabled) throw actionDisabled(action.ref)
  const { cancelled_by: _, ...inherited } = ended.context
  const roles = rolesOf?.(ended.user)
  const { runner_info: _i, callback: _c, ...liveaction } = ended.liveaction
  const micros = nowMicros()
  const start = formatMicros(micros)
  const execution: Execution = {
    ...ended,
    id: newId(micros),
    revision: 1,
    status: 'requested',
    liveaction_id: newId(),
    action,
    runner,
    trace_id: '',
    start_timestamp: start,
    end_timestamp: null,
    elapsed_seconds: null,
    delay: changes.delayMs === 0 ? null : changes.delayMs,
    due_timestamp: changes.delayMs === 0 ? null : formatMicros(micros + changes.delayMs * 1000),
    result_size: null,
    sealed_parameters: null,
    context: {
      ...inherited,
      ...(roles === undefined ? {} : { rbac: { user: ended.user, roles } }),
      ...changes.context,
    },
    log: [{ status: 'requested', timestamp: start }],
    liveaction: {
      callback: {},
      runner_info: {},
      ...liveaction,
      attempt: attemptOf(ended) + 1,
      retry_of: ended.id,
    },
  }
  delete execution.result
  delete execution.sealed_result
  const cause: Cause = {
    kind: 'inherited',
    trace_id: ended.trace_id,
    caused_by: { type: 'action_execution', id: ended.id },
  }
  return { execution, cause, failure: undefined }
}

/** An action and its runner type. @throws ACTION_UNKNOWN */
export function findAction(actions: Actions, refOrId: string): { action: ActionRecord; runner: RunnerTypeRecord } {
  const action = actions.find(refOrId)
  const runner = action === undefined ? undefined : actions.findRunnerType(action.runner_type)
  if (action === undefined || runner === undefined) throw actionUnknown(refOrId)
  return { action, runner }
}
