/** Stores the trigger instances of a request, at most once per delivery, and builds the response. */
import { createHash, randomUUID } from 'node:crypto'
import { conflict, headerInvalid, queueFull } from '../../core/errors.ts'
import { Conflict, merge, type Database } from '../../db/index.ts'
import { Reply, writeJsonInTurns, type ApiRequest, type Rights } from '../../http/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { isFinal, type Executions } from '../executions/index.ts'
import type { ExecutionStatus } from '../executions/types.ts'
import { genericHook, traceTagHeader, type Triggers } from '../triggers/index.ts'
import type { CredentialHeaders, TriggerInstance, TriggerRecord } from '../triggers/types.ts'
import { type Deliveries, type Delivery, type DeliveryId } from './deliveries.ts'
import { preferredWait, type SentHeaders } from './headers.ts'
import type { WebhookOutcome } from './types.ts'
import type { OutcomeWait, Waits } from './waits.ts'
import { executionResource } from '../../core/permissions.ts'

/** Attempts to commit a request that conflicts with others of the same tag or key. */
const MAX_ATTEMPTS = 5
/** The same limit as in execution contexts. */
const MAX_TAG_LENGTH = 1024
/** Bytes of all results in one response. Clients read further results from the executions. */
const MAX_RESULT_BYTES = 1024 * 1024

export interface Dispatch {
  hook: string
  /** One or more. */
  triggers: readonly TriggerRecord[]
  /** Those of them that a repeated delivery dispatches again. */
  always: readonly TriggerRecord[]
  payload: Record<string, unknown>
  /** Values of the headers that are masked in the payload. */
  credentials: CredentialHeaders | undefined
  /** The parsed body, returned in the response. */
  body: unknown
  headers: SentHeaders
  deliveryId: DeliveryId | undefined
}

interface Answer {
  body: unknown
  headers: Record<string, string>
  delivery: Delivery
  wait: OutcomeWait | undefined
  waitSeconds: number
}

/** @throws QUEUE_FULL, STORAGE_FULL, IDEMPOTENCY_KEY_REUSED, HEADER_INVALID, STORAGE_FAILED */
export type DispatchRequest = (request: ApiRequest, wanted: Dispatch) => Promise<Reply>

export function createDispatch(deps: {
  deliveries: Deliveries
  waits: Waits
  database: Pick<Database, 'write' | 'shortage' | 'hasRoom'>
  triggers: Triggers
  executions: Executions
  /** See `Rules.versionOf`. */
  readonly versionOf: (triggerId: string) => string
  queueLimit: number
}): DispatchRequest {
  const { deliveries, waits, database, triggers, executions, versionOf, queueLimit } = deps

  async function dispatch(request: ApiRequest, wanted: Dispatch): Promise<Reply> {
    const { deliveryId } = wanted
    const traceTag = traceTagOf(wanted.headers)
    const waitSeconds = preferredWait(wanted.headers.get('prefer'))
    // Once for all triggers and attempts.
    const payloadText = await writeJsonInTurns(wanted.payload)
    const defaultTag = `webhook-${wanted.hook}-${randomUUID().replaceAll('-', '')}`
    for (let attempt = 1; ; attempt++) {
      const before = deliveryId === undefined ? undefined : deliveries.find(deliveryId)
      const rules = deliveryId === undefined ? '' : rulesOf(wanted.triggers)
      if (before !== undefined && deliveryId !== undefined && !runsAgain(deliveryId, before, rules)) {
        if (database.hasRoom())
          await database.write(merge(...before.instanceIds.map((id) => triggers.planRepetition(id))))
        if (!deliveryId.isIdempotent && wanted.always.length > 0) {
          return dispatch(request, { ...wanted, triggers: wanted.always, deliveryId: undefined })
        }
        const wait = waitSeconds > 0 ? waits.begin(before.instanceIds, true) : undefined
        return answer(request, { ...replayed(before, wanted), delivery: before, wait, waitSeconds })
      }
      if (triggers.pendingCount() >= queueLimit) throw queueFull('trigger instances', queueLimit)
      const shortage = database.shortage()
      if (shortage !== undefined) throw shortage
      const [first, ...others] = plan(wanted, payloadText, traceTag, defaultTag)
      if (first === undefined) throw new Error('there is nothing to dispatch')
      const instances = [first, ...others].map(({ instance }) => instance)
      const instanceIds = instances.map(({ id }) => id)
      const delivery: Delivery = { traceId: first.instance.trace_id, instanceIds, rules }
      const pending = instances.filter(({ status }) => status === 'pending').map(({ id }) => id)
      const wait = waitSeconds > 0 ? waits.begin(pending, false) : undefined
      try {
        await database.write(
          merge(
            deliveryId === undefined ? undefined : deliveries.plan(deliveryId, delivery, before),
            first.unit,
            ...others.map(({ unit }) => unit),
          ),
        )
      } catch (error) {
        wait?.cancel()
        if (!(error instanceof Conflict)) throw error
        if (attempt === MAX_ATTEMPTS) throw conflict('The trace')
        continue
      }
      return answer(request, { body: wanted.body, headers: {}, delivery, wait, waitSeconds })
    }
  }

  /** A digest of the enabled rules of these triggers. */
  function rulesOf(wanted: readonly TriggerRecord[]): string {
    const hash = createHash('sha256')
    for (const { id } of wanted) hash.update(`${id} ${versionOf(id)}\n`)
    return hash.digest('hex')
  }

  /**
   * Whether a repetition runs: nothing of the first is at work, and the first has started nothing that may have
   * succeeded, or has met other rules.
   */
  function runsAgain({ isIdempotent }: DeliveryId, before: Delivery, rules: string): boolean {
    if (isIdempotent) return false
    const stages = before.instanceIds.map(stageOf)
    // A retry by policy is open from the moment in which the execution that it repeats has failed.
    if (stages.includes('open')) return false
    return (before.rules !== '' && before.rules !== rules) || stages.every((stage) => stage === 'failed')
  }

  /** `failed` also if no rule matched. `done` for an instance that is purged. */
  function stageOf(id: string): 'open' | 'failed' | 'done' {
    const status = triggers.findInstance(id)?.status
    if (status === undefined) return 'done'
    if (status === 'pending') return 'open'
    const statuses = executions.ofTriggerInstance(id).map((execution) => executions.statusOf(execution))
    if (statuses.some((one) => one !== undefined && !isFinal(one))) return 'open'
    return statuses.every((one) => one !== undefined && failures.has(one)) ? 'failed' : 'done'
  }

  /** Plans one instance per trigger, all in one trace. */
  function plan(
    { triggers: wanted, credentials }: Dispatch,
    payloadText: string,
    traceTag: string | undefined,
    defaultTag: string,
  ): ReturnType<Triggers['planStored']>[] {
    let traceId: string | undefined
    return wanted.map((trigger) => {
      const planned = triggers.planStored(
        trigger,
        payloadText,
        traceId === undefined
          ? {
              kind: 'request',
              default_tag: defaultTag,
              ...(traceTag === undefined ? {} : { trace_tag: traceTag }),
            }
          : { kind: 'inherited', trace_id: traceId, caused_by: undefined },
        { credentials },
      )
      traceId ??= planned.instance.trace_id
      return planned
    })
  }

  /** The first response, for a repeated delivery. */
  function replayed({ instanceIds }: Delivery, { body, hook }: Dispatch): Pick<Answer, 'body' | 'headers'> {
    const headers = { 'Idempotent-Replayed': 'true' }
    if (hook === genericHook) return { body, headers }
    const payload = triggers.findInstance(instanceIds[0] ?? '')?.payload
    return { body: isObject(payload) ? payload['body'] : body, headers }
  }

  async function answer(
    { rights, onClose }: ApiRequest,
    { body, headers: more, delivery, wait, waitSeconds }: Answer,
  ): Promise<Reply> {
    const { traceId, instanceIds } = delivery
    const headers = {
      'Svc-Trigger-Instance-Id': instanceIds.join(','),
      'Svc-Trace-Id': traceId,
      Location: `/v1/triggerinstances/${instanceIds[0] ?? ''}`,
      ...more,
    }
    const hasFinished = await wait?.end(waitSeconds, onClose)
    if (hasFinished !== true) return new Reply(body, { headers })
    return new Reply(outcomeOf(instanceIds, rights), {
      status: 200,
      headers: { ...headers, 'Preference-Applied': `wait=${waitSeconds}` },
    })
  }

  function outcomeOf(instanceIds: readonly string[], rights: Rights): WebhookOutcome {
    const instances = instanceIds.map((id): Pick<TriggerInstance, 'id'> & Partial<TriggerInstance> => ({
      id,
      ...statusOf(triggers.findInstance(id)),
    }))
    let remaining = MAX_RESULT_BYTES
    return {
      trigger_instances: instances,
      executions: instanceIds
        .flatMap((id) => executions.ofTriggerInstance(id))
        .flatMap((id) => {
          const execution = executions.find(id)
          if (execution === undefined) return []
          const { status, action_ref: action, origin, rule, result_size: size } = execution
          const record = { id, status, action, rule: origin?.rule.ref ?? rule }
          if (!isFinal(status) || !rights.may('execution_view', executionResource(execution))) return [record]
          remaining -= size ?? 0
          // Clients read a long result from the execution.
          if (remaining < 0) return [{ ...record, result_size: size }]
          return [{ ...record, result: executions.findWithResult(id)?.result }]
        }),
    }
  }

  return dispatch
}

const failures: ReadonlySet<ExecutionStatus> = new Set(['failed', 'timeout', 'abandoned'])

function statusOf(instance: TriggerInstance | undefined): Pick<TriggerInstance, 'status'> | undefined {
  return instance === undefined ? undefined : { status: instance.status }
}

/** @throws HEADER_INVALID */
function traceTagOf(headers: SentHeaders): string | undefined {
  const tag = headers.get(traceTagHeader)?.join(',').trim()
  if (tag === undefined || tag === '') return undefined
  if (tag.length > MAX_TAG_LENGTH) {
    throw headerInvalid(`The header Svc-Trace-Tag has more than ${MAX_TAG_LENGTH} characters. Use a shorter tag.`)
  }
  return tag
}
