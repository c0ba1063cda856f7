/** The records that the payloads of internal trigger types tell about, and who may see what of them. */
import {
  actionResource,
  executionResource,
  keyResource,
  type Permission,
  type Resource,
} from '../../../core/permissions.ts'
import { isObject } from '../../../lib/schema/index.ts'

/** Names of a payload that anybody sees who may see the trigger type; below a name that is `true`, everything. */
export interface Kept {
  readonly [name: string]: true | Kept
}

export interface PayloadCheck {
  permission: Permission
  /** Absent: the permission without a resource. */
  resource?: Resource
  /** The permission and the resource to grant, if they are others: `action_view on "action:core:local"`. */
  grant?: string
}

export interface PayloadSubject {
  /** Ids, references, statuses and times: enough to count and to react. No content of a record. */
  kept: Kept
  /** What a reader of the whole payload needs. @param owner user of the record, if the record has one */
  checks(payload: Readonly<Record<string, unknown>>, owner: string | undefined): PayloadCheck[]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const keep = (...names: string[]): Kept => Object.fromEntries(names.map((name) => [name, true]))
/** Which instance a replayed one repeats. */
const replay = keep('__context')

/** @param more names besides those of every execution */
function ofExecution(...more: string[]): PayloadSubject {
  return {
    kept: { ...keep('execution_id', 'status', 'start_timestamp', 'action_ref', 'runner_ref', ...more), ...replay },
    checks({ execution_id: id, action_ref: ref }, owner = '') {
      const permission = 'execution_view'
      // Somebody sent the payload through a webhook, and it names no action.
      if (typeof ref !== 'string') return [{ permission }]
      const resource = executionResource({ id: textOf(id), action_ref: ref, user: owner })
      return [{ permission, resource, grant: `action_view on "${resource.grantedBy ?? ''}"` }]
    },
  }
}

function ofItems(...names: string[]): PayloadSubject {
  const kept = keep('id', 'scope', 'secret', 'encrypted', 'expire_timestamp')
  return {
    kept: { ...Object.fromEntries(names.map((name) => [name, kept])), ...replay },
    checks: (payload) =>
      names.map((name) => {
        const item = isObject(payload[name]) ? payload[name] : {}
        const key = { scope: textOf(item['scope']), name: textOf(item['name']), user: textOf(item['user']) }
        return { permission: 'key_value_pair_view', resource: keyResource(key) }
      }),
  }
}

export const execution = ofExecution(
  'action_name',
  'end_timestamp',
  'elapsed_seconds',
  'attempt',
  'will_retry',
  'trace_id',
  'web_url',
)
/** A route is an address, and named in the events that announce it. */
export const notification = ofExecution('end_timestamp', 'channel', 'route')
export const inquiry: PayloadSubject = {
  kept: { ...keep('id'), ...replay },
  checks: () => [{ permission: 'inquiry_view' }],
}
export const actionFile: PayloadSubject = {
  kept: { ...keep('ref'), ...replay },
  checks: ({ ref }) => [{ permission: 'action_view', resource: actionResource(textOf(ref)) }],
}
export const sensor: PayloadSubject = {
  kept: { ...keep('id', 'timestamp', 'exit_code'), ...replay },
  checks: () => [],
}
/** The state of a rule, and none of its content. */
export const missedJob: PayloadSubject = {
  kept: {
    ...keep('rule', 'reason', 'due_timestamp', 'late_seconds', 'expect', 'last_success_timestamp'),
    ...keep('execution_id', 'trace_id'),
    ...replay,
  },
  checks: () => [],
}
export const item = ofItems('object')
export const changedItem = ofItems('old_object', 'new_object')
