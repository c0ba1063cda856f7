/** Who may respond to an inquiry, with what, and what comes of it. */
import {
  inquiryAnswered,
  inquiryCanceled,
  inquiryDenied,
  inquiryNotPending,
  inquiryResponseInvalid,
  inquiryTimedOut,
  notAnInquiry,
  resourceNotFound,
} from '../../core/errors.ts'
import { aboutCaller, type Caller, type Page } from '../../http/index.ts'
import type { CommonSettings, Config } from '../../config/index.ts'
import { isId } from '../../core/ids.ts'
import { inquirerName } from '../../runners/index.ts'
import { fieldOf, compileDraft4, isObject, MASK, type JsonSchema } from '../../lib/schema/index.ts'
import { compileSecrets } from '../../lib/secrets/index.ts'
import { now } from '../../core/time.ts'
import type { Execution } from '../executions/types.ts'
import type { InquiryRecord } from './types.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Executions } from '../executions/index.ts'
import { inquiryResource, type Resource } from '../../core/permissions.ts'

export interface InquiriesSettings {
  /** `api.max_page_size` */
  maxPageSize: number
  /** `garbagecollector.purge_inquiries` */
  expires: boolean
}

export function inquiriesSettings(
  { garbagecollector }: Pick<Config, 'garbagecollector'>,
  { maxPageSize }: CommonSettings,
): InquiriesSettings {
  return { maxPageSize, expires: garbagecollector.purge_inquiries }
}

export interface InquiriesDeps {
  executions: Pick<Executions, 'find' | 'findWithResult' | 'pending' | 'respond'>
  log: Log
  /** Roles of a user; undefined: access control is disabled, and every user counts as an administrator. */
  rolesOf: ((user: string) => string[]) | undefined
  settings: InquiriesSettings
}

export interface InquiryService {
  /** Those that wait, newest first. */
  list(page: Page): Promise<{ inquiries: Iterable<InquiryRecord>; total: number }>
  /** @throws RESOURCE_NOT_FOUND, NOT_AN_INQUIRY, INQUIRY_TIMED_OUT, INQUIRY_ANSWERED, INQUIRY_CANCELED, INQUIRY_NOT_PENDING */
  get(id: string): InquiryRecord
  /** What a caller without the permission for all needs it on. @throws RESOURCE_NOT_FOUND, NOT_AN_INQUIRY */
  resourceOf(id: string): Resource
  /**
   * Of several who respond at once one is heard.
   *
   * @throws as `get`; PERMISSION_DENIED, INQUIRY_RESPONSE_INVALID; CRYPTO_KEY_MISSING when its secrets cannot be kept
   */
  respond(caller: Caller, id: string, response: Record<string, unknown>): Promise<void>
}

export function createInquiryService({
  executions,
  log,
  rolesOf,
  expires,
}: Pick<InquiriesDeps, 'executions' | 'log' | 'rolesOf'> & { expires: boolean }): InquiryService {
  /** @throws RESOURCE_NOT_FOUND, NOT_AN_INQUIRY */
  function find(id: string): Execution {
    const execution = isId(id) ? executions.findWithResult(id) : undefined
    if (execution === undefined) throw resourceNotFound(id)
    if (execution.runner.name !== inquirerName) throw notAnInquiry(id)
    return execution
  }

  /** @throws as `InquiryService.get` */
  function findPending(id: string): { execution: Execution; inquiry: InquiryRecord } {
    const execution = find(id)
    const { status, due_timestamp: due } = execution
    // Its end may not be recorded yet.
    const isOver = expires && status === 'pending' && due !== null && due <= now()
    if (status === 'timeout' || isOver) throw inquiryTimedOut(id)
    if (status === 'succeeded') throw inquiryAnswered(id)
    if (status === 'canceled' && execution.parent !== null) throw inquiryCanceled(id)
    const inquiry = status === 'pending' ? recordOf(execution) : undefined
    if (inquiry === undefined) throw inquiryNotPending(id, status)
    return { execution, inquiry }
  }

  /** Both lists have to admit the user. */
  function admits({ users, roles }: InquiryRecord, user: string): boolean {
    if (users.length > 0 && !users.includes(user)) return false
    if (roles.length === 0 || rolesOf === undefined) return true
    const own = rolesOf(user)
    return roles.some((role) => own.includes(role))
  }

  return {
    async list(page) {
      const { executions: pending, total } = await executions.pending(inquirerName, page)
      function* inquiries(): Generator<InquiryRecord> {
        for (const execution of pending) {
          const inquiry = recordOf(execution)
          if (inquiry !== undefined) yield inquiry
        }
      }
      return { inquiries: inquiries(), total }
    },

    get: (id) => findPending(id).inquiry,

    resourceOf(id) {
      const { parent } = find(id)
      return inquiryResource({ id, asker: parent === null ? undefined : executions.find(parent) })
    },

    async respond(caller, id, response) {
      for (;;) {
        const { execution, inquiry } = findPending(id)
        const { user } = caller.principal
        if (!admits(inquiry, user)) throw inquiryDenied(user, id)
        const problem = compileDraft4(inquiry.schema).find(response)
        if (problem !== undefined) throw inquiryResponseInvalid(id, problem.message, fieldOf(problem))
        const asked = isObject(execution.result) ? execution.result : {}
        const masked = maskedBy(inquiry.schema, response)
        const ended = await executions.respond(
          execution,
          { ...asked, response },
          masked === response ? undefined : { ...asked, response: masked },
        )
        // Otherwise another response came first; the next round reports it.
        if (ended === undefined) continue
        const about = { ...aboutCaller(caller), execution_id: id, owner: execution.user }
        log.audit('inquiry.responded', `Inquiry "${id}" was responded to.`, about)
        return
      }
    },
  }
}

/** Undefined when what it asks has been lost with a part of the database. */
function recordOf({ id, result }: Execution): InquiryRecord | undefined {
  if (!isObject(result)) return undefined
  const { schema, roles, users, route, ttl } = result
  if (!isObject(schema)) return undefined
  return {
    id,
    schema,
    roles: textsOf(roles),
    users: textsOf(users),
    route: typeof route === 'string' ? route : '',
    ttl: typeof ttl === 'number' ? ttl : 0,
  }
}

/** The runner's parameters have passed their schemas. */
function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

/** The response itself when the schema marks nothing as secret. */
function maskedBy(schema: JsonSchema, response: Record<string, unknown>): unknown {
  const secrets = compileSecrets(schema)
  return secrets === undefined ? response : secrets(response, () => MASK)
}
