/** What of a payload somebody may see: internal triggers tell about executions and other records of everybody. */
import { isAppError } from '../../../core/errors.ts'
import { triggerResource, type Resource } from '../../../core/permissions.ts'
import type { Rights } from '../../../http/index.ts'
import { WrittenJson } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { subjectOf } from '../builtin/types.ts'
import type { Kept, PayloadCheck } from '../builtin/subjects.ts'
import type { TriggerInstance } from '../types.ts'

/** What is not in a reduced payload. */
export interface Withheld {
  /** The missing permission, and what the payload is reduced to, in one or two sentences. */
  reason: string
  /** Whether a path into the payload leads to a value that is as it was. @param names below the payload */
  keeps(names: readonly (string | number)[]): boolean
}

export interface VisiblePayload {
  payload: unknown
  /** Absent: the payload is whole. */
  withheld?: Withheld
}

export type VisibilityRights = Pick<Rights, 'may' | 'require' | 'onlyOf'>

/** No grant names it and no caller owns it: who may see it may see every record. */
const OF_SOMEBODY_ELSE: Resource = { uid: '-', owner: '' }

/**
 * Asks for no row, so that it can be called for each event.
 *
 * @param instance its payload may be a `WrittenJson`
 */
export function visiblePayload(
  rights: VisibilityRights,
  { trigger_type: type, payload: given, owner }: Pick<TriggerInstance, 'trigger_type' | 'payload' | 'owner'>,
): VisiblePayload {
  const subject = subjectOf(type)
  if (subject === undefined) return { payload: given }
  const { kept } = subject
  const checksOf = (value: unknown): PayloadCheck[] => [
    { permission: 'trigger_view', resource: triggerResource(type) },
    ...subject.checks(isObject(value) ? value : {}, owner),
  ]
  // A long payload is read only if something in it decides.
  const mayAll = (): boolean => checksOf({}).every(({ permission }) => rights.may(permission, OF_SOMEBODY_ELSE))
  if (given instanceof WrittenJson && mayAll()) return { payload: given }
  const payload = WrittenJson.read(given)
  const missing = checksOf(payload).find(({ permission, resource }) => !rights.may(permission, resource))
  if (missing === undefined) return { payload }
  const names = Object.keys(kept).filter((name) => isObject(payload) && Object.hasOwn(payload, name))
  return {
    payload: reduce(payload, kept),
    withheld: {
      reason: `The payload is reduced to ${names.length === 0 ? 'nothing' : names.join(', ')}: ${refusalOf(rights, missing)}`,
      keeps: (path) => isKept(path, kept),
    },
  }
}

/** As the request for the record would be refused. */
function refusalOf(rights: VisibilityRights, { permission, resource, grant }: PayloadCheck): string {
  try {
    rights.require(permission, resource)
  } catch (error) {
    if (!isAppError(error)) throw error
    const end = error.message.endsWith('.') ? '' : '.'
    // A grant does not help against isolation.
    return `${error.message}${end}${grant === undefined || rights.onlyOf !== undefined ? '' : ` Grant ${grant}.`}`
  }
  // The right has come back.
  return `permission ${permission} is missing.`
}

function reduce(value: unknown, kept: Kept): Record<string, unknown> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(kept).flatMap(([name, below]) => {
      if (!Object.hasOwn(value, name)) return []
      return [[name, below === true ? value[name] : reduce(value[name], below)]]
    }),
  )
}

function isKept(path: readonly (string | number)[], kept: Kept): boolean {
  const [name, ...rest] = path
  if (typeof name !== 'string' || !Object.hasOwn(kept, name)) return false
  const below = kept[name]
  return below === true || (below !== undefined && isKept(rest, below))
}
