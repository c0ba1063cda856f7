/** The context of a new execution, and the cause that its trace records (contract 03, 3.1). */
import { bodyInvalid, headerInvalid } from '../../../core/errors.ts'
import { shown } from '../../../lib/text/index.ts'
import type { Cause } from '../../traces/types.ts'
import type { Execution } from '../types.ts'
import { MAX_TAG_LENGTH } from './schemas.ts'
import { readJson } from '../../../lib/json/index.ts'

/** Context keys that only the server sets. */
const serverKeys = [
  'user',
  'pack',
  'rbac',
  'scopes',
  're-run',
  'cancelled_by',
  'replaced_by',
  'paused_by',
  'resumed_by',
  'orquesta',
  'chain',
  'workflow_execution',
  'rule',
  'trigger_instance',
  'policies',
  'action_alias_ref',
  'datastore_user',
]

/** The context that a caller gives, without the keys that only the server sets. @throws HEADER_INVALID */
export function givenContext(
  context: Record<string, unknown> | undefined,
  header: string | undefined,
): Record<string, unknown> {
  const given = { ...context, ...parseContextHeader(header) }
  for (const key of serverKeys) delete given[key]
  return given
}

const path = ['context', 'trace_context']

export interface TraceContext {
  id_?: string
  trace_tag?: string
}

/** An empty object is the same as none. @throws BODY_INVALID: the header can carry what the body's schema has not seen */
export function traceContextOf(context: Record<string, unknown>): TraceContext | undefined {
  const given = context['trace_context']
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw bodyInvalid(`context.trace_context: ${shown(given)} is not of type 'object'`, { path })
  }
  const found: TraceContext = {}
  const entries = Object.entries(given)
  for (const [name, value] of entries) {
    if ((name !== 'id_' && name !== 'trace_tag') || typeof value !== 'string') {
      throw bodyInvalid(
        `context.trace_context: only the texts "id_" and "trace_tag" are allowed, got "${shown(name)}"`,
        {
          path: [...path, name],
        },
      )
    }
    if (name === 'trace_tag' && value.length > MAX_TAG_LENGTH) {
      throw bodyInvalid(`context.trace_context.trace_tag: at most ${MAX_TAG_LENGTH} characters are allowed`, {
        path: [...path, 'trace_tag'],
      })
    }
    if (value !== '') found[name] = value
  }
  if (found.id_ !== undefined || found.trace_tag !== undefined) return found
  if (entries.length === 0) return undefined
  throw bodyInvalid('context.trace_context: at least one of "id_" and "trace_tag" has to be given, and not be empty', {
    path,
  })
}

/** @throws BODY_INVALID when the context names a parent that does not exist */
export function parentOf(
  context: Record<string, unknown>,
  find: (id: string) => Execution | undefined,
): Execution | undefined {
  const given = context['parent']
  if (typeof given !== 'object' || given === null || !('execution_id' in given)) return undefined
  const parent = typeof given.execution_id === 'string' ? find(given.execution_id) : undefined
  if (parent === undefined) {
    throw bodyInvalid(`context.parent.execution_id: there is no execution ${shown(given.execution_id)}`, {
      path: ['context', 'parent', 'execution_id'],
    })
  }
  return parent
}

export function causeOf(
  execution: Execution,
  traceContext: TraceContext | undefined,
  parent: Execution | undefined,
): Cause {
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
