/** From a request body to a new execution (contract 03, 3.1). */
import {
  actionDisabled,
  actionUnknown,
  bodyInvalid,
  headerInvalid,
  isAppError,
  type AppError,
} from '../../core/errors.ts'
import type { ApiRequest } from '../../http/index.ts'
import { newId } from '../../core/ids.ts'
import { readJson, shown } from '../../lib/text/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { readerOf } from '../../core/template-reader.ts'
import { parameterScope, type ReadSecrets } from '../../core/parameter-scope.ts'
import { createSecretValues } from '../../lib/secrets/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Actions } from '../actions/index.ts'
import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
import type { Cause } from '../traces/types.ts'
import type { Sealing } from './sealing.ts'
import type { Execution, ExecutionOrigin } from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { PackConfigs } from './ports.ts'
import { userResource } from '../../core/permissions.ts'

/** Body of `POST /executions`; what else it holds is ignored, because clients of several versions send it. */
export interface ExecutionRequest {
  action: string
  parameters?: Record<string, unknown>
  user?: string | null
  context?: Record<string, unknown>
  notify?: Record<string, unknown>
  /** Milliseconds. */
  delay?: number | null
  callback?: Record<string, unknown>
}

const MAX_DELAY_MS = 31_536_000_000
const MAX_TAG_LENGTH = 1024

const parameters: JsonSchema = {
  type: 'object',
  description: 'Values of the parameters of the action.',
  propertyNames: { pattern: '^\\w+$' },
}
const user: JsonSchema = {
  type: ['string', 'null'],
  minLength: 1,
  description: 'Acting user; null or absent: the caller.',
}
const delay: JsonSchema = {
  type: ['integer', 'null'],
  minimum: 0,
  maximum: MAX_DELAY_MS,
  description: 'Milliseconds to wait before the execution is scheduled.',
}

const notifySection: JsonSchema = {
  type: 'object',
  properties: {
    message: { type: 'string' },
    data: { type: 'object' },
    routes: { type: 'array', items: { type: 'string' } },
    channels: { type: 'array', items: { type: 'string' } },
  },
  additionalProperties: false,
}

export const executionRequestSchema: JsonSchema = {
  type: 'object',
  required: ['action'],
  properties: {
    action: { type: 'string', description: 'Reference of the action, `<pack>.<name>`.' },
    parameters,
    user,
    context: {
      type: 'object',
      description: 'Merged into the context; `trace_context` joins (`id_`) or starts (`trace_tag`) a trace.',
      properties: {
        trace_context: {
          type: 'object',
          properties: { id_: { type: 'string' }, trace_tag: { type: 'string', maxLength: MAX_TAG_LENGTH } },
          additionalProperties: false,
        },
        parent: {
          type: 'object',
          properties: { execution_id: { type: 'string' }, user: { type: 'string' } },
        },
      },
    },
    notify: {
      type: 'object',
      properties: { 'on-complete': notifySection, 'on-success': notifySection, 'on-failure': notifySection },
      additionalProperties: false,
    },
    delay,
    callback: { type: 'object' },
  },
}

/** Body of `POST /executions/<id>/re_run`. */
export interface RerunRequest {
  parameters?: Record<string, unknown>
  /** Where the given parameters replace the original ones: names of those that stay as they were, secrets included. */
  keep?: string[]
  user?: string | null
  delay?: number | null
  tasks?: string[]
  reset?: string[]
}

export const rerunRequestSchema: JsonSchema = {
  type: 'object',
  properties: {
    parameters,
    keep: {
      type: 'array',
      items: { type: 'string' },
      maxItems: 1000,
      description: 'With `no_merge`: names of original parameters that stay as they were, secrets included.',
    },
    user,
    delay,
    tasks: { type: 'array', items: { type: 'string' }, description: 'Workflows only: names of tasks to run again.' },
    reset: {
      type: 'array',
      items: { type: 'string' },
      description: 'Workflows only: tasks whose results are discarded.',
    },
  },
}

/** What `draftAgain` changes. */
export interface Again {
  /** Takes the place of attributes of the context. */
  context: Record<string, unknown>
  delayMs: number
}

/**
 * Another execution like one that has ended: what it was given is data by now, and was checked when it was given.
 *
 * @param ended with its parameters as they are, not sealed
 * @throws ACTION_UNKNOWN, ACTION_DISABLED
 */
export function draftAgain(actions: Actions, rolesOf: RolesOf, ended: Execution, again: Again): Draft {
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
    delay: again.delayMs === 0 ? null : again.delayMs,
    due_timestamp: again.delayMs === 0 ? null : formatMicros(micros + again.delayMs * 1000),
    result_size: null,
    sealed_parameters: null,
    context: {
      ...inherited,
      ...(roles === undefined ? {} : { rbac: { user: ended.user, roles } }),
      ...again.context,
    },
    log: [{ status: 'requested', timestamp: start }],
    liveaction: { callback: {}, runner_info: {}, ...liveaction },
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

export interface Draft {
  execution: Execution
  cause: Cause
  /** Why the execution fails before it begins. Its record is kept, the caller gets this error. */
  failure: AppError | undefined
}

/** Who asks, from where, and what they may do. */
export type Caller = Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>

/** Role names of a user; undefined while access control is off. */
export type RolesOf = ((user: string) => string[]) | undefined

interface DraftOptions {
  actions: Actions
  rolesOf: RolesOf
  caller: Caller
  request: ExecutionRequest
  /** `svc-context` header. */
  contextHeader?: string | undefined
  /** Server-set context besides `user` and `pack`. */
  extraContext?: Record<string, unknown>
  /** Given for what is not asked for from outside: decides the trace. */
  cause?: Cause
  /** Given for what rules start. */
  origin?: ExecutionOrigin
  /** Id, given for what rules start. */
  triggerInstance?: string
  /** What templates may read. */
  readonly sources: TemplateSources
  sealing: Pick<Sealing, 'seal'>
  /** What must not be seen of values that were rendered before. */
  secrets?: readonly unknown[]
  /** Why it fails before it begins. */
  failure?: AppError
  /** Names of parameters that have been rendered already, by an earlier execution or a rule, and are data since. */
  literals?: ReadonlySet<string>
  findExecution: (id: string) => Execution | undefined
}

/** Context keys that only the server sets. */
const serverKeys = ['user', 'pack', 'rbac', 'scopes', 're-run', 'cancelled_by', 'rule', 'trigger_instance', 'policies']

/**
 * Checks a request in the order of contract 03 and makes the execution of it.
 *
 * @throws ACTION_UNKNOWN, PERMISSION_DENIED, HEADER_INVALID, PARAMETERS_INVALID, ACTION_DISABLED, BODY_INVALID
 */
export function draftExecution(options: DraftOptions): Draft {
  const { actions, request } = options
  const { origin = null } = options
  const { principal, rights } = options.caller
  const { action, runner } = findAction(actions, request.action)

  const supplied = { ...request.context, ...parseContextHeader(options.contextHeader) }
  for (const key of serverKeys) delete supplied[key]
  const parent = parentOf(supplied, options.findExecution)
  const actingUser = parent === undefined ? (request.user ?? principal.user) : parent.user
  // Whoever names a parent acts for its user, and nobody may become somebody else that way.
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
    // What the action calls with its own token is limited like the key that has started it.
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
      ...(request.notify === undefined ? {} : { notify: request.notify }),
      ...(request.notify === undefined || principal.user === actingUser ? {} : { notify_author: principal.user }),
    },
  }

  let failure = options.failure
  const read: ReadSecrets = [...(options.secrets ?? [])]
  /** What somebody was told in confidence is not repeated to them in a message. */
  const withoutSecrets = (error: unknown): unknown => {
    const marked = actions.secretsIn(action, runner, execution.parameters)
    return createSecretValues([...marked, ...read])?.maskError(error) ?? error
  }
  try {
    if (failure !== undefined) throw failure
    const scope = templateScope(options.sources, execution, read, principal.user)
    execution.parameters = actions.render(action, runner, execution.parameters, scope, options.literals)
  } catch (thrown) {
    const error = withoutSecrets(thrown)
    if (!isAppError(error) || error.code !== 'TEMPLATE_FAILED') throw error
    failure = error
    execution.liveaction.unrendered = Object.keys(execution.parameters).filter((name) => !options.literals?.has(name))
  }
  if (!action.enabled) throw actionDisabled(action.ref)
  if (failure === undefined) {
    try {
      actions.check(action, runner, execution.parameters, request.parameters ?? {})
    } catch (error) {
      throw withoutSecrets(error)
    }
  }
  options.sealing.seal(execution, read)

  return { execution, cause: options.cause ?? causeOf(execution, traceContext, parent), failure }
}

/** Where templates in parameters find what they read. */
export interface TemplateSources {
  /** The datastore. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  packConfigs: PackConfigs
}

/**
 * What the templates in its parameters may read.
 *
 * @param read gets the secrets among it
 * @param author see `readerOf`
 */
export function templateScope(
  { templates, packConfigs }: TemplateSources,
  execution: Execution,
  read: ReadSecrets,
  author?: string,
): TemplateScope {
  return parameterScope(
    templates(readerOf(execution, author)),
    execution.context,
    // Whoever writes a configuration is no caller whose rights could be looked at.
    () => packConfigs.resolve(execution.action.pack, readerOf(execution)),
    read,
  )
}

/** With its runner type. @throws ACTION_UNKNOWN */
export function findAction(actions: Actions, refOrId: string): { action: ActionRecord; runner: RunnerTypeRecord } {
  const action = actions.find(refOrId)
  const runner = action === undefined ? undefined : actions.findRunnerType(action.runner_type)
  if (action === undefined || runner === undefined) throw actionUnknown(refOrId)
  return { action, runner }
}

interface TraceContext {
  id_?: string
  trace_tag?: string
}

/** An empty object is the same as none. @throws BODY_INVALID: the header can carry what the body's schema has not seen */
function traceContextOf(context: Record<string, unknown>): TraceContext | undefined {
  const given = context['trace_context']
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw bodyInvalid(`context.trace_context: ${shown(given)} is not of type 'object'`)
  }
  const found: TraceContext = {}
  const entries = Object.entries(given)
  for (const [name, value] of entries) {
    if ((name !== 'id_' && name !== 'trace_tag') || typeof value !== 'string') {
      throw bodyInvalid(`context.trace_context: only the texts "id_" and "trace_tag" are allowed, got "${shown(name)}"`)
    }
    if (name === 'trace_tag' && value.length > MAX_TAG_LENGTH) {
      throw bodyInvalid(`context.trace_context.trace_tag: at most ${MAX_TAG_LENGTH} characters are allowed`)
    }
    if (value !== '') found[name] = value
  }
  if (found.id_ !== undefined || found.trace_tag !== undefined) return found
  if (entries.length === 0) return undefined
  throw bodyInvalid('context.trace_context: at least one of "id_" and "trace_tag" has to be given, and not be empty')
}

/** @throws BODY_INVALID when the context names a parent that does not exist */
function parentOf(
  context: Record<string, unknown>,
  find: (id: string) => Execution | undefined,
): Execution | undefined {
  const given = context['parent']
  if (typeof given !== 'object' || given === null || !('execution_id' in given)) return undefined
  const parent = typeof given.execution_id === 'string' ? find(given.execution_id) : undefined
  if (parent === undefined) {
    throw bodyInvalid(`context.parent.execution_id: there is no execution ${shown(given.execution_id)}`)
  }
  return parent
}

function causeOf(execution: Execution, traceContext: TraceContext | undefined, parent: Execution | undefined): Cause {
  const causedBy = parent === undefined ? undefined : ({ type: 'action_execution', id: parent.id } as const)
  if (traceContext === undefined && parent !== undefined) {
    return { kind: 'inherited', trace_id: parent.trace_id, caused_by: causedBy }
  }
  return {
    kind: 'request',
    default_tag: `execution-${execution.liveaction_id}`,
    caused_by: causedBy,
    ...(traceContext?.id_ === undefined ? {} : { trace_id: traceContext.id_ }),
    ...(traceContext?.trace_tag === undefined ? {} : { trace_tag: traceContext.trace_tag }),
  }
}

/** @throws HEADER_INVALID */
function parseContextHeader(header: string | undefined): Record<string, unknown> {
  if (header === undefined || header === '') return {}
  let value: unknown
  try {
    value = readJson(header)
  } catch {
    value = header
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.hasOwn(value, '__proto__')) {
    const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    throw headerInvalid(`Unable to convert svc-context from the headers into JSON: an object is needed (was ${kind}).`)
  }
  return { ...value }
}
