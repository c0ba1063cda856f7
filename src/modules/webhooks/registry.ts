/** Triggers by hook (contract 06, 6.1), read at start and updated by facts. */
import type { Bus } from '../../bus/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { hookOf, problemOfWebhook, webhookTypeRef, type SignatureParameters, type Triggers } from '../triggers/index.ts'
import type { ChallengeParameters, TriggerAuthor, TriggerRecord } from '../triggers/types.ts'
import type { Challenge } from './challenges.ts'
import { createVerifier, type Verifier } from './signatures.ts'

export interface HookTrigger {
  hook: string
  record: TriggerRecord
  /** Undefined: senders need a credential instead of a signature. */
  verifier: Verifier | undefined
  /** In lower case. */
  deliveryIdHeader: string | undefined
  challenge: Challenge | undefined
  /** False: each delivery runs. */
  isDeduplicated: boolean
}

export interface Hook {
  name: string
  /** Oldest first; never empty. */
  triggers: readonly HookTrigger[]
  /** In lower case: headers that contain a secret of one of the triggers. Not part of payloads. */
  secretHeaders: ReadonlySet<string>
}

export interface Registry {
  find(hook: string): Hook | undefined
  /** Oldest first. */
  triggers(): HookTrigger[]
  start(): void
  stop(): void
}

export function createRegistry(deps: {
  triggers: Pick<Triggers, 'find' | 'ofType'>
  bus: Bus
  log: Log
  /** See `createVerifier`. */
  readonly readSecret: (text: string, author: TriggerAuthor | undefined) => string
  /** Verifies the scheme `sns`. */
  readonly verifySns: (parameters: SignatureParameters) => Verifier
}): Registry {
  const { triggers, bus, log, readSecret, verifySns } = deps
  const byId = new Map<string, HookTrigger>()
  const hooks = new Map<string, Hook>()
  let subscriptions: (() => void)[] = []

  function put(record: TriggerRecord): void {
    const { url, signature, challenge, delivery_id_header: idHeader } = record.parameters
    const trigger: HookTrigger = {
      hook: hookOf(String(url)),
      record,
      // Valid against the schema of the type, else the trigger could not exist.
      verifier: isObject(signature)
        ? verifierOf(signature as unknown as SignatureParameters, record.author)
        : undefined,
      challenge: isObject(challenge)
        ? {
            ...(challenge as unknown as ChallengeParameters), // valid likewise
            readToken: () => readSecret(String(challenge['token']), record.author),
          }
        : undefined,
      isDeduplicated: record.parameters['deduplicate'] !== false,
      deliveryIdHeader: typeof idHeader === 'string' ? idHeader.toLowerCase() : undefined,
    }
    byId.set(record.id, trigger)
    const others = hooks.get(trigger.hook)?.triggers ?? []
    setHook(trigger.hook, [...others, trigger].sort(byAge))
  }

  function verifierOf(signature: SignatureParameters, author: TriggerAuthor | undefined): Verifier {
    return signature.scheme === 'sns'
      ? verifySns(signature)
      : createVerifier(signature, (text) => readSecret(text, author))
  }

  function remove(id: string): void {
    const trigger = byId.get(id)
    if (trigger === undefined) return
    byId.delete(id)
    setHook(
      trigger.hook,
      (hooks.get(trigger.hook)?.triggers ?? []).filter((other) => other !== trigger),
    )
  }

  function setHook(name: string, ofHook: HookTrigger[]): void {
    if (ofHook.length === 0) hooks.delete(name)
    else {
      const secretHeaders = new Set(ofHook.flatMap(({ verifier }) => verifier?.secretHeaders ?? []))
      hooks.set(name, { name, triggers: ofHook, secretHeaders })
    }
  }

  function refresh({ id, type }: { id: string; type: string }): void {
    if (type !== webhookTypeRef && !byId.has(id)) return
    remove(id)
    const record = triggers.find(id)
    if (record?.type === webhookTypeRef) put(record)
  }

  return {
    find: (hook) => hooks.get(hook),
    triggers: () => [...byId.values()].sort(byAge),
    start() {
      subscriptions = (['trigger.created', 'trigger.updated', 'trigger.deleted'] as const).map((name) =>
        bus.subscribe(name, refresh),
      )
      for (const record of triggers.ofType(webhookTypeRef)) {
        put(record)
        // An older version has accepted them.
        const problem = problemOfWebhook(record.parameters)
        if (problem !== undefined) {
          const fields = { trigger: record.ref, url: String(record.parameters['url']) }
          log.warning('webhook.unusable', `A webhook may receive nothing: ${problem}. Change its rule.`, fields)
        }
      }
    },
    stop() {
      for (const unsubscribe of subscriptions) unsubscribe()
      subscriptions = []
      byId.clear()
      hooks.clear()
    },
  }
}

/** Ids sort by creation. */
function byAge(a: HookTrigger, b: HookTrigger): number {
  return a.record.id < b.record.id ? -1 : 1
}
