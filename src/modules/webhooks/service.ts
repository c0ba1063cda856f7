/** What a request to a webhook causes (contract 06). */
import { randomUUID } from 'node:crypto'
import {
  bodyInvalid,
  conflict,
  headerInvalid,
  isAppError,
  permissionDenied,
  queueFull,
  storageFull,
  signatureMissing,
  webhookNotRegistered,
  type AppError,
} from '../../core/errors.ts'
import { Conflict, merge, type Database } from '../../db/index.ts'
import { jsonTypeOf, Reply, type ApiRequest, type RawRequest, type Rights } from '../../http/index.ts'
import { type Log, createRepeatLimit } from '../../lib/log/index.ts'
import { isObject, represent } from '../../lib/schema/index.ts'
import { nowMicros } from '../../core/time.ts'
import { isFinal, type Executions } from '../executions/index.ts'
import { genericHook, hookOf, traceTagHeader, webhookTypeRef, type Triggers } from '../triggers/index.ts'
import type { TriggerInstance, TriggerRecord } from '../triggers/types.ts'
import { deliveryIdOf, type Admitted, type Deliveries, type Delivery, type DeliveryId } from './deliveries.ts'
import { canonicalName, forwardHeaders, preferredWait, readHeaders, type SentHeaders } from './headers.ts'
import type { Hook, HookTrigger, Registry } from './registry.ts'
import type { WebhookOutcome } from './types.ts'
import type { Wait, Waits } from './waits.ts'
import { shown } from '../../lib/text/index.ts'
import { executionResource, webhookResource } from '../../core/permissions.ts'

export interface WebhookService {
  /**
   * Whether a request may prove itself by a signature.
   *
   * @throws SIGNATURE_MISSING when nothing else would do
   */
  provesItself(hook: string, headers: ApiRequest['headers']): boolean
  receive(hook: string, request: ApiRequest): Promise<Reply>
  /** The first trigger of a hook, and those of all hooks. */
  find(hook: string): TriggerRecord
  list(rights: Rights): TriggerRecord[]
}

/** A request that keeps losing against others with the same tag or key loses for another reason. */
const MAX_ATTEMPTS = 5
/** As in the context of executions. */
const MAX_TAG_LENGTH = 1024
/** What all results in one answer may have together; the others are read by themselves. */
const MAX_RESULT_BYTES = 1024 * 1024

export function createWebhookService(deps: {
  registry: Registry
  deliveries: Deliveries
  waits: Waits
  database: Pick<Database, 'write' | 'hasRoom'>
  triggers: Triggers
  executions: Executions
  log: Log
  queueLimit: number
}): WebhookService {
  const { registry, deliveries, waits, database, triggers, executions, log, queueLimit } = deps
  const repeats = createRepeatLimit(10, () => performance.now())

  function hookNamed(name: string): Hook {
    const hook = registry.find(name)
    if (hook === undefined) throw webhookNotRegistered(name)
    return hook
  }

  /** What the request may set off. @throws SIGNATURE_…, CREDENTIALS_MISSING, PERMISSION_DENIED when that is nothing */
  function admit(hook: Hook, { rights, ...request }: ApiRequest, raw: RawRequest, headers: SentHeaders): Admitted[] {
    const admitted: Admitted[] = []
    let refusal: AppError | undefined
    let maySend: boolean | undefined
    for (const trigger of hook.triggers) {
      if (trigger.verifier === undefined) {
        maySend ??= rights.may('webhook_send', webhookResource(hook.name))
        if (maySend) admitted.push({ trigger, proof: undefined })
        continue
      }
      try {
        const proof = trigger.verifier.verify({ headers, body: raw.bytes }, nowMicros() / 1_000_000)
        admitted.push({ trigger, proof })
      } catch (error) {
        if (!isAppError(error)) throw error
        // Of several the one that says more than that there is no signature.
        if (refusal === undefined || refusal.code === 'SIGNATURE_MISSING') refusal = error
      }
    }
    if (admitted.length > 0) return admitted
    if (refusal === undefined) {
      rights.require('webhook_send', webhookResource(hook.name))
      throw webhookNotRegistered(hook.name)
    }
    noteRefusal(hook, refusal, request)
    throw refusal
  }

  function noteRefusal(hook: Hook, { code, message }: AppError, request: Omit<ApiRequest, 'rights'>): void {
    const { remoteAddress, requestId } = request
    const kept = repeats(`${hook.name} ${code} ${remoteAddress}`)
    if (kept === undefined) return
    log.audit('webhook.refused', message, {
      webhook: hook.name,
      code,
      remote_address: remoteAddress,
      request_id: requestId,
      ...(kept === 0 ? {} : { lines_kept_back: kept }),
    })
  }

  async function receiveCustom(name: string, request: ApiRequest, raw: RawRequest): Promise<Reply> {
    const hook = hookNamed(name)
    const headers = readHeaders(raw.headers)
    const admitted = admit(hook, request, raw, headers)
    const body = await raw.parse({ dropsBlank: true })
    if (typeof body !== 'object' || body === null) {
      throw bodyInvalid(`${represent(body)} is not of type 'object', 'array'`)
    }
    for (const { proof } of admitted) {
      const answer = proof?.answerTo?.(body)
      if (answer !== undefined) return new Reply(answer, { status: 200 })
    }
    const payload = { ...forwardHeaders(headers, hook.hiddenHeaders), body }
    return dispatch(request, raw, {
      hook: name,
      triggers: admitted.map(({ trigger }) => trigger.record),
      payload,
      body,
      headers,
      deliveryId: deliveryIdOf(name, request.principal.user, admitted, headers, raw, body),
    })
  }

  async function receiveGeneric(request: ApiRequest, raw: RawRequest): Promise<Reply> {
    const headers = readHeaders(raw.headers)
    const body = await raw.parse({ dropsBlank: true })
    if (!isObject(body)) throw bodyInvalid(`Webhook body needs to be an object, got: ${jsonTypeOf(body)}`)
    const { trigger: name, payload } = body
    if (name === undefined || name === null || name === '') throw bodyInvalid('Trigger not specified.')
    if (typeof name !== 'string') {
      throw bodyInvalid(`Trigger has to be the reference of a trigger type, got: ${jsonTypeOf(name)}`)
    }
    if (payload === undefined || payload === null) throw bodyInvalid('Payload not specified.')
    if (!isObject(payload)) throw bodyInvalid(`Payload needs to be an object, got: ${jsonTypeOf(payload)}`)
    const trigger = triggers.find(name)
    if (trigger?.type === webhookTypeRef) requireHookOf(trigger, request.rights)
    const problem = triggers.problemOfPayload(trigger?.type ?? name, payload) ?? problemOfName(name, trigger)
    if (problem !== undefined) {
      throw bodyInvalid(
        `Trigger payload validation failed and validation is enabled, not dispatching a trigger "${shown(name)}" (${represent(payload)}): ${problem}`,
      )
    }
    if (trigger === undefined) {
      log.warning('webhook.dropped', 'A trigger that nobody has registered is dropped', {
        trigger: name,
        request_id: request.requestId,
      })
      return new Reply(body)
    }
    return dispatch(request, raw, {
      hook: genericHook,
      triggers: [trigger],
      payload,
      body,
      headers,
      deliveryId: deliveryIdOf(genericHook, request.principal.user, [], headers, raw, body),
    })
  }

  /** Whoever may use the generic webhook can not thereby do what another one asks its own permission or signature for. */
  function requireHookOf({ id, ref, parameters }: TriggerRecord, rights: Rights): void {
    const hook = hookOf(String(parameters['url']))
    if (
      registry.find(hook)?.triggers.some(({ record, verifier }) => record.id === id && verifier !== undefined) === true
    ) {
      throw permissionDenied(`Senders to the webhook of the trigger "${ref}" have to sign; send to it directly.`)
    }
    rights.require('webhook_send', webhookResource(hook))
  }

  /** Undefined as well when nobody wants to know. */
  function problemOfName(name: string, trigger: TriggerRecord | undefined): string | undefined {
    if (trigger !== undefined || triggers.findType(name) === undefined) return undefined
    return `Triggers of type "${shown(name)}" have parameters; give the reference of one of them`
  }

  interface Dispatch {
    hook: string
    /** One or more. */
    triggers: readonly TriggerRecord[]
    payload: Record<string, unknown>
    /** As parsed: the answer. */
    body: unknown
    headers: SentHeaders
    deliveryId: DeliveryId | undefined
  }

  /** @throws QUEUE_FULL, STORAGE_FULL, IDEMPOTENCY_KEY_REUSED, HEADER_INVALID, STORAGE_FAILED */
  async function dispatch(request: ApiRequest, raw: RawRequest, wanted: Dispatch): Promise<Reply> {
    const { deliveryId } = wanted
    const traceTag = traceTagOf(wanted.headers)
    const waitSeconds = preferredWait(wanted.headers.get('prefer'))
    const defaultTag = `webhook-${wanted.hook}-${randomUUID().replaceAll('-', '')}`
    for (let attempt = 1; ; attempt++) {
      const before = deliveryId === undefined ? undefined : deliveries.find(deliveryId)
      if (before !== undefined) {
        const wait = waitSeconds > 0 ? waits.begin(before.instanceIds, true) : undefined
        return answer(request, raw, { ...replayed(before, wanted), delivery: before, wait, waitSeconds })
      }
      if (triggers.pendingCount() >= queueLimit) throw queueFull('trigger instances', queueLimit)
      if (!database.hasRoom()) throw storageFull()
      const [first, ...others] = plan(wanted, traceTag, defaultTag)
      if (first === undefined) throw new Error('there is nothing to dispatch')
      const instances = [first, ...others].map(({ instance }) => instance)
      const delivery: Delivery = { traceId: first.instance.trace_id, instanceIds: instances.map(({ id }) => id) }
      const pending = instances.filter(({ status }) => status === 'pending').map(({ id }) => id)
      const wait = waitSeconds > 0 ? waits.begin(pending, false) : undefined
      try {
        await database.write(
          merge(
            deliveryId === undefined ? undefined : deliveries.plan(deliveryId, delivery),
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
      return answer(request, raw, { body: wanted.body, headers: {}, delivery, wait, waitSeconds })
    }
  }

  /** One instance for each trigger, all in one trace. */
  function plan(
    { triggers: wanted, payload }: Dispatch,
    traceTag: string | undefined,
    defaultTag: string,
  ): ReturnType<Triggers['planDispatch']>[] {
    let traceId: string | undefined
    return wanted.map((trigger) => {
      const planned = triggers.planDispatch(
        trigger,
        payload,
        traceId === undefined
          ? {
              kind: 'request',
              default_tag: defaultTag,
              ...(traceTag === undefined ? {} : { trace_tag: traceTag }),
            }
          : { kind: 'inherited', trace_id: traceId, caused_by: undefined },
      )
      traceId ??= planned.instance.trace_id
      return planned
    })
  }

  /** The answer of the first time, when the same delivery comes with another body. */
  function replayed({ instanceIds }: Delivery, { body, hook }: Dispatch): Pick<Answer, 'body' | 'headers'> {
    const headers = { 'Idempotent-Replayed': 'true' }
    if (hook === genericHook) return { body, headers }
    const payload = triggers.findInstance(instanceIds[0] ?? '')?.payload
    return { body: isObject(payload) ? payload['body'] : body, headers }
  }

  interface Answer {
    body: unknown
    headers: Record<string, string>
    delivery: Delivery
    wait: Wait | undefined
    waitSeconds: number
  }

  async function answer(
    { rights }: ApiRequest,
    raw: RawRequest,
    { body, headers: more, delivery, wait, waitSeconds }: Answer,
  ): Promise<Reply> {
    const { traceId, instanceIds } = delivery
    const headers = {
      'Svc-Trigger-Instance-Id': instanceIds.join(','),
      'Svc-Trace-Id': traceId,
      Location: `/v1/triggerinstances/${instanceIds[0] ?? ''}`,
      ...more,
    }
    const hasFinished = await wait?.end(waitSeconds, (listener) => raw.onClose(listener))
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
    let room = MAX_RESULT_BYTES
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
          room -= size ?? 0
          // Whoever wants a long one reads it from the execution.
          if (room < 0) return [{ ...record, result_size: size }]
          return [{ ...record, result: executions.findWithResult(id)?.result }]
        }),
    }
  }

  return {
    provesItself(name, headers) {
      const hook = registry.find(name)
      const signed = hook?.triggers.filter(isSigned) ?? []
      if (hook === undefined || signed.length === 0) return false
      if (signed.some(({ verifier }) => verifier.headers.some((header) => headers[header] !== undefined))) return true
      if (signed.length < hook.triggers.length) return false
      throw signatureMissing([...new Set(signed.flatMap(({ verifier }) => verifier.headers.map(canonicalName)))])
    },
    async receive(name, request) {
      const { raw } = request
      if (raw === undefined) throw new Error('the route does not ask for the raw body')
      return name === genericHook ? receiveGeneric(request, raw) : receiveCustom(name, request, raw)
    },
    find(name) {
      const [first] = hookNamed(name).triggers
      if (first === undefined) throw webhookNotRegistered(name)
      return triggers.record(first.record)
    },
    list: (rights) =>
      registry
        .triggers()
        .filter(({ hook }) => rights.may('webhook_view', webhookResource(hook)))
        .map(({ record }) => triggers.record(record)),
  }
}

type SignedTrigger = HookTrigger & { verifier: NonNullable<HookTrigger['verifier']> }

function isSigned(trigger: HookTrigger): trigger is SignedTrigger {
  return trigger.verifier !== undefined
}

function statusOf(instance: TriggerInstance | undefined): Pick<TriggerInstance, 'status'> | undefined {
  return instance === undefined ? undefined : { status: instance.status }
}

/** @throws HEADER_INVALID */
function traceTagOf(headers: SentHeaders): string | undefined {
  const tag = headers.get(traceTagHeader)?.join(',').trim()
  if (tag === undefined || tag === '') return undefined
  if (tag.length > MAX_TAG_LENGTH) {
    throw headerInvalid(`The header Svc-Trace-Tag has more than ${MAX_TAG_LENGTH} characters; choose a shorter tag.`)
  }
  return tag
}
