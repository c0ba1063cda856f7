/** Receives requests to webhooks (contract 06). */
import {
  bodyInvalid,
  credentialsMissing,
  permissionDenied,
  signatureMissing,
  webhookNotRegistered,
} from '../../core/errors.ts'
import { jsonTypeOf, parseJsonBody, Reply, type ApiRequest, type RawRequest, type Rights } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { isObject, represent } from '../../lib/schema/index.ts'
import { genericHook, hookOf, webhookTypeRef, type Triggers, type WebhookRecord } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { answerToGet, answerToPost, type Challenge } from './challenges.ts'
import { deliveryIdOf } from './deliveries.ts'
import type { SentQuery } from './types.ts'
import { canonicalName, forwardHeaders, readHeaders } from './headers.ts'
import type { Hook, HookTrigger, Registry } from './registry.ts'
import { shown } from '../../lib/text/index.ts'
import { webhookResource } from '../../core/permissions.ts'
import type { AdmitDelivery } from './admission.ts'
import type { DispatchRequest } from './dispatch.ts'

export interface WebhookService {
  /**
   * Whether a signature can authenticate the request.
   *
   * @throws SIGNATURE_MISSING if the hook accepts signed requests only, and the request has no signature
   */
  provesItself(hook: string, headers: ApiRequest['headers']): boolean
  receive(hook: string, request: ApiRequest): Promise<Reply>
  /** Whether the sender of a hook may verify its address with a GET. */
  isChallenged(hook: string): boolean
  /**
   * The answer to a sender that verifies the address, else the first trigger of the hook.
   *
   * @throws WEBHOOK_NOT_REGISTERED, SIGNATURE_INVALID, CREDENTIALS_MISSING, PERMISSION_DENIED
   */
  view(
    hook: string,
    request: Pick<ApiRequest, 'headers' | 'rights' | 'principal'> & { query: SentQuery },
  ): WebhookRecord | Reply
  /** Those that the caller can view, oldest first. @param pack of a rule that the caller can view */
  list(rights: Rights, pack: string | undefined): { records: Iterable<WebhookRecord>; total: number }
}

export function createWebhookService(deps: {
  registry: Registry
  admit: AdmitDelivery
  dispatch: DispatchRequest
  triggers: Triggers
  /** See `Rules.refsOf`. */
  readonly rulesOf: (triggerId: string, rights: Rights) => string[]
  log: Log
}): WebhookService {
  const { registry, admit, dispatch, triggers, rulesOf, log } = deps

  function recordOf(trigger: TriggerRecord, rights: Rights): WebhookRecord {
    return { ...triggers.record(trigger), rules: rulesOf(trigger.id, rights) }
  }

  function* recordsOf(webhooks: readonly HookTrigger[], rights: Rights): Generator<WebhookRecord> {
    for (const { record } of webhooks) yield recordOf(record, rights)
  }

  function hookNamed(name: string): Hook {
    const hook = registry.find(name)
    if (hook === undefined) throw webhookNotRegistered(name)
    return hook
  }

  async function receiveCustom(name: string, request: ApiRequest, raw: RawRequest): Promise<Reply> {
    const hook = hookNamed(name)
    const headers = readHeaders(raw.headers)
    const admitted = await admit(hook, request, raw, headers)
    const eventText = admitted.find(({ proof }) => proof?.eventText !== undefined)?.proof?.eventText
    const validated = answerToPost(challengesOf(hook), request.query as SentQuery) // declared by the route
    if (validated !== undefined) return validated
    const body = eventText === undefined ? await raw.parse({ dropsBlank: true }) : await parseJsonBody(eventText)
    if (typeof body !== 'object' || body === null) {
      throw bodyInvalid(`${represent(body)} is not of type 'object', 'array'`)
    }
    for (const { proof } of admitted) {
      const answer = await proof?.answerTo?.(body)
      if (answer !== undefined) return new Reply(answer, { status: 200 })
    }
    const { forwarded, credentials } = forwardHeaders(headers, hook.secretHeaders)
    const payload = { ...forwarded, body }
    return dispatch(request, {
      hook: name,
      triggers: admitted.map(({ trigger }) => trigger.record),
      always: admitted.flatMap(({ trigger }) => (trigger.isDeduplicated ? [] : [trigger.record])),
      payload,
      credentials,
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
      throw bodyInvalid(`Trigger must be the reference of a trigger type, got: ${jsonTypeOf(name)}`)
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
      log.warning('webhook.dropped', 'Dropped an event: its trigger is not registered', {
        trigger: name,
        request_id: request.requestId,
      })
      return new Reply(body)
    }
    return dispatch(request, {
      hook: genericHook,
      triggers: [trigger],
      always: [],
      payload,
      credentials: undefined,
      body,
      headers,
      deliveryId: deliveryIdOf(genericHook, request.principal.user, [], headers, raw, body),
    })
  }

  /** The generic webhook must not bypass the permission or signature that another webhook requires. */
  function requireHookOf({ id, ref, parameters }: TriggerRecord, rights: Rights): void {
    const hook = hookOf(String(parameters['url']))
    if (
      registry.find(hook)?.triggers.some(({ record, verifier }) => record.id === id && verifier !== undefined) === true
    ) {
      throw permissionDenied(`The webhook of trigger "${ref}" requires a signature. Send to that webhook directly.`)
    }
    rights.require('webhook_send', webhookResource(hook))
  }

  /** Undefined: the name is valid, or no such type exists. */
  function problemOfName(name: string, trigger: TriggerRecord | undefined): string | undefined {
    if (trigger !== undefined || triggers.findType(name) === undefined) return undefined
    return `Triggers of type "${shown(name)}" have parameters; use the reference of such a trigger`
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
      if (raw === undefined) throw new Error('the route has no raw body')
      return name === genericHook ? receiveGeneric(request, raw) : receiveCustom(name, request, raw)
    },
    isChallenged: (name) => challengesOf(registry.find(name)).some(({ scheme }) => scheme !== 'graph'),
    view(name, { headers, query, rights, principal }) {
      const answer = answerToGet(challengesOf(registry.find(name)), query, headers['x-okta-verification-challenge'])
      if (answer !== undefined) return answer
      if (principal.method === 'none' && principal.user === '') throw credentialsMissing()
      rights.require('webhook_view', webhookResource(name))
      const [first] = hookNamed(name).triggers
      if (first === undefined) throw webhookNotRegistered(name)
      return recordOf(first.record, rights)
    },
    list(rights, pack) {
      const isOfPack = ({ record }: HookTrigger): boolean =>
        pack === undefined || rulesOf(record.id, rights).some((ref) => ref.startsWith(`${pack}.`))
      const seen = registry
        .triggers()
        .filter((trigger) => rights.may('webhook_view', webhookResource(trigger.hook)) && isOfPack(trigger))
      return { records: recordsOf(seen, rights), total: seen.length }
    },
  }
}

function challengesOf(hook: Hook | undefined): Challenge[] {
  return hook?.triggers.flatMap(({ challenge }) => challenge ?? []) ?? []
}

type SignedTrigger = HookTrigger & { verifier: NonNullable<HookTrigger['verifier']> }

function isSigned(trigger: HookTrigger): trigger is SignedTrigger {
  return trigger.verifier !== undefined
}
