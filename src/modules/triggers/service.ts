/** Finds, changes and dispatches triggers. */
import { createHash, randomUUID } from 'node:crypto'
import type { Fact } from '../../bus/index.ts'
import { commitPlan, Conflict, type Database, type Unit } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import { parametersInvalid, triggerTypeUnknown } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import { fieldOf, canonical, MASK } from '../../lib/schema/index.ts'
import { keepMasked } from '../../lib/secrets/index.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import type { Traces } from '../traces/index.ts'
import type { Cause } from '../traces/types.ts'
import { isAlwaysChecked, isBuiltin } from './builtin/types.ts'
import { encryptionContext, type Catalogue } from './definitions/catalogue.ts'
import type { DefinitionStore, StoredTrigger } from './definitions/store.ts'
import type { InstanceStore } from './instances/store.ts'
import type { SealedHeaders } from './instances/sealed-headers.ts'
import {
  hasMask,
  hasSecrets,
  hasSecretTemplates,
  problemOfParameters,
  problemOfPayload,
  replaceSecrets,
} from './definitions/type-schemas.ts'
import type { KeptWithPayload, TriggerAuthor, TriggerInstance, TriggerRecord, TriggerTypeRecord } from './types.ts'
import type { TriggerService } from './ports.ts'
import { writeJson } from '../../lib/json/index.ts'

/** Input for a new trigger. */
export interface TriggerDraft {
  type: TriggerTypeRecord
  parameters: Record<string, unknown>
  id?: string
  pack?: string
  /** Default: a random name. */
  name?: string
  description?: string
  /** Stored if secrets are templates. */
  author?: TriggerAuthor | undefined
  /** Created for rules and deleted with the last of them. */
  isManaged: boolean
}

export interface TriggersService extends TriggerService {
  /**
   * Replaces masks in parameters with the stored values and checks the result.
   *
   * @throws PARAMETERS_INVALID
   */
  resolveParameters(
    type: TriggerTypeRecord,
    parameters: Record<string, unknown>,
    stored?: Record<string, unknown>,
  ): Record<string, unknown>
  /** The row of a trigger. @param draft has checked parameters */
  toStored(draft: TriggerDraft): StoredTrigger
  /** The row of the single trigger of a type without parameters. */
  shadowOf(type: TriggerTypeRecord, id?: string): StoredTrigger
}

export interface TriggersServiceDeps {
  database: Database
  store: DefinitionStore
  instances: InstanceStore
  catalogue: Catalogue
  traces: Pick<Traces, 'plan'>
  encryption: Encryption
  sealedHeaders: SealedHeaders
  pendingCount(): number
  hasRules(triggerId: string): boolean
  settings: { validateParameters: boolean; validatePayload: boolean }
}

export function createTriggersService(deps: TriggersServiceDeps): TriggersService {
  const { database, store, instances, catalogue, traces, encryption, sealedHeaders, settings } = deps

  function resolveParameters(
    type: TriggerTypeRecord,
    parameters: Record<string, unknown>,
    stored?: Record<string, unknown>,
  ): Record<string, unknown> {
    const resolved = replaceSecrets(type, parameters, keepMasked, stored)
    if (hasMask(type, resolved)) {
      throw parametersInvalid(
        `The mask "${MASK}" keeps a stored secret, but no secret is stored here. Send the secret itself.`,
      )
    }
    // An older version may have accepted them; a rule that keeps them can still be changed.
    const isAsStored = stored !== undefined && canonical(resolved) === canonical(stored)
    if (!isAsStored && (isBuiltin(type.ref) || settings.validateParameters)) {
      const problem = problemOfParameters(type, resolved)
      if (problem !== undefined) {
        throw parametersInvalid(`Parameters of trigger type "${type.ref}": ${problem.message}`, {
          path: ['parameters', ...fieldOf(problem)],
        })
      }
    }
    return resolved
  }

  function toStored({ type, parameters, ...draft }: TriggerDraft): StoredTrigger {
    const { id = newId(), pack = type.pack, name = randomUUID(), description = '', isManaged } = draft
    const ref = `${pack}.${name}`
    const masked = replaceSecrets(type, parameters, () => MASK)
    const author = hasSecretTemplates(type, parameters) ? draft.author : undefined
    const digest = createHash('md5').update(canonical(masked)).digest('hex')
    const record: TriggerRecord = {
      id,
      uid: `trigger:${pack}:${name}:${digest}`,
      ref,
      name,
      pack,
      type: type.ref,
      description,
      parameters: masked,
      ...(author === undefined ? {} : { author }),
    }
    const identity = identityOf(type, parameters, draft.author)
    if (!hasSecrets(type, parameters)) return { record, identity, isManaged }
    const what = `parameters of trigger "${ref}"`
    return {
      record,
      identity,
      isManaged,
      sealed: encryption.encrypt(writeJson(parameters), encryptionContext(id), what),
    }
  }

  /** Keyed, because a plain digest would let readers of the database guess secrets. */
  function identityOf(
    type: TriggerTypeRecord,
    parameters: Record<string, unknown>,
    author: TriggerAuthor | undefined,
  ): string {
    const isOfAuthor = author !== undefined && hasSecretTemplates(type, parameters)
    const text = canonical(isOfAuthor ? [parameters, author] : parameters)
    if (!hasSecrets(type, parameters)) return createHash('sha256').update(text).digest('hex')
    return encryption.digest(text, `parameters of a trigger of type "${type.ref}"`)
  }

  function planStored(
    trigger: TriggerRecord,
    payloadText: string,
    cause?: Cause,
    { credentials, owner, depth }: KeptWithPayload = {},
  ): ReturnType<TriggersService['planStored']> {
    const micros = nowMicros()
    const id = newId(micros)
    const at = formatMicros(micros)
    const member = { kind: 'trigger_instance', object_id: id, ref: trigger.ref } as const
    const origin = cause ?? { kind: 'request', default_tag: `trigger_instance-${id}` }
    const { trace_id, unit } = traces.plan(origin, member, at)
    const isAwaited = deps.hasRules(trigger.id)
    const instance = {
      id,
      trigger: trigger.ref,
      trigger_id: trigger.id,
      trigger_type: trigger.type,
      occurrence_time: at,
      status: isAwaited ? 'pending' : 'processed',
      trace_id,
      ...(credentials === undefined ? {} : { sealed_headers: sealedHeaders.seal(id, credentials) }),
      ...(owner === undefined ? {} : { owner }),
      ...(depth === undefined ? {} : { depth }),
    } as const
    unit.steps.push(instances.insert({ ...instance, payloadText }))
    if (isAwaited) {
      const { trigger_id, trigger: ref, trigger_type } = instance
      unit.facts.push({
        name: 'trigger_instance.created',
        payload: { id, trigger_id, trigger: ref, trigger_type, trace_id },
      })
    }
    return { instance, unit }
  }

  function planDispatch(
    trigger: TriggerRecord,
    payload: unknown,
    cause?: Cause,
    kept?: KeptWithPayload,
  ): { instance: TriggerInstance; unit: Unit } {
    const { instance, unit } = planStored(trigger, writeJson(payload), cause, kept)
    return { instance: { ...instance, payload }, unit }
  }

  return {
    findType: (refOrId) => catalogue.findType(refOrId),
    find: (refOrId) => catalogue.find(refOrId),
    ofType: (typeRef) => catalogue.ofType(typeRef),
    record: (trigger) => catalogue.record(trigger),

    resolveParameters,
    toStored,
    shadowOf: (type, id) =>
      toStored({
        type,
        parameters: {},
        pack: type.pack,
        name: type.name,
        description: type.description,
        isManaged: false,
        ...(id === undefined ? {} : { id }),
      }),

    planUse(typeRef, given, stored, author) {
      const type = catalogue.findType(typeRef)
      if (type === undefined) throw triggerTypeUnknown(typeRef)
      const parameters = resolveParameters(type, given, stored)
      const existing = store.findByIdentity(type.ref, identityOf(type, parameters, author))
      if (existing !== undefined) {
        const trigger = catalogue.find(existing.record.id) ?? { ...existing.record, parameters }
        return { trigger, unit: { steps: [store.use(trigger.id)], facts: [] } }
      }
      const made = toStored({ type, parameters, author, isManaged: true })
      const trigger = { ...made.record, parameters }
      return { trigger, unit: { steps: [store.insert(made, 1)], facts: [triggerFact('created', trigger)] } }
    },
    planRelease(triggerId) {
      const stored = store.find(triggerId)
      if (stored === undefined) throw new Conflict(`there is no trigger ${triggerId}`)
      if (!stored.isManaged || store.usesOf(triggerId) > 1) return { steps: [store.release(triggerId)], facts: [] }
      return { steps: [store.releaseAndDelete(triggerId)], facts: [triggerFact('deleted', stored.record)] }
    },

    problemOfPayload(typeRef, payload) {
      if (!settings.validatePayload && !isAlwaysChecked(typeRef)) return undefined
      const type = catalogue.findType(typeRef)
      return type === undefined ? triggerTypeUnknown(typeRef).message : problemOfPayload(type, payload)
    },
    planStored,
    planDispatch,
    dispatch(trigger, payload, cause, kept) {
      const shortage = database.shortage()
      if (shortage !== undefined) return Promise.reject(shortage)
      const plan = (): { result: TriggerInstance; unit: Unit } => {
        const { instance, unit } = planDispatch(trigger, payload, cause, kept)
        return { result: instance, unit: { ...unit, subject: instance.id } }
      }
      return commitPlan(database, plan, 'The trace')
    },
    planInternal(ref, payload, cause) {
      const trigger = catalogue.find(ref)
      if (trigger === undefined) throw new Error(`the trigger ${ref} is missing`)
      return planStored(trigger, writeJson(payload), cause).unit
    },

    findInstance: (id) => instances.find(id),
    typeOfInstance: (id) => instances.typeOf(id),
    openInstance: (instance) => sealedHeaders.open(instance),
    pending: (afterId, limit) => instances.pending(afterId, limit),
    pendingCount: () => deps.pendingCount(),
    planRepetition: (id) => ({ steps: [instances.repeat(id, formatMicros(nowMicros()))], facts: [] }),
    repetitionsOf: (id) => instances.repetitionsOf(id),
    planProcessed: (id, status) => ({ steps: [instances.end(id, status)], facts: [] }),
  }
}

export function triggerFact(what: 'created' | 'updated' | 'deleted', { id, type }: TriggerRecord): Fact {
  return { name: `trigger.${what}`, payload: { id, type } }
}
