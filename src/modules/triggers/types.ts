import { defaultPack, descriptionSchema, nameSchema, packSchema } from '../../core/pack-content.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { timerTypes } from './builtin/timer-parameters.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { Scope } from '../../core/permissions.ts'

const Tag = Type.Object({ name: Type.String(), value: Type.String() })

const typeProperties = {
  id: Type.String(),
  uid: Type.String({ description: '`trigger_type:<pack>:<name>`' }),
  ref: Type.String({ description: '`<pack>.<name>`' }),
  name: Type.String(),
  pack: Type.String(),
  description: Type.String(),
  payload_schema: Type.Unsafe<JsonSchema>({
    type: 'object',
    description: 'JSON schema of payloads; empty: payloads can be anything.',
  }),
  parameters_schema: Type.Unsafe<JsonSchema>({
    type: 'object',
    description: 'JSON schema of the parameters of triggers; empty: the type has one trigger, of its own name.',
  }),
  tags: Type.Array(Tag),
  metadata_file: Type.Optional(
    Type.String({ description: 'Set if the type comes from a pack: relative to the pack.' }),
  ),
}

const typeExample = {
  id: '67a1f0c2e4b0a1d2c3e4f509',
  uid: 'trigger_type:examples:build.finished',
  ref: 'examples.build.finished',
  name: 'build.finished',
  pack: 'examples',
  description: 'A build has finished.',
  payload_schema: { type: 'object', properties: { branch: { type: 'string' } } },
  parameters_schema: {},
  tags: [],
}

export const TriggerTypeRecord = record('TriggerType', Type.Object(typeProperties), { example: typeExample })
export type TriggerTypeRecord = Static<typeof TriggerTypeRecord>

/** A trigger type in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialTriggerType = record(
  'PartialTriggerType',
  Type.Object({ ...Type.Partial(TriggerTypeRecord).properties, id: Type.String(), ref: Type.String() }),
  { example: { id: typeExample.id, ref: typeExample.ref, pack: typeExample.pack, name: typeExample.name } },
)

/** The record without derived attributes. */
export type TriggerTypeDefinition = Omit<TriggerTypeRecord, 'id' | 'uid' | 'ref'>

const typeName = Type.Unsafe<string>({ ...nameSchema, description: 'Any text without blanks at its ends.' })

const typeRequestProperties = {
  pack: Type.Optional(
    Type.Unsafe<string | null>({ ...packSchema, type: ['string', 'null'], description: `Default: ${defaultPack}.` }),
  ),
  description: Type.Optional(Type.Unsafe<string | null>(descriptionSchema)),
  payload_schema: Type.Optional(
    Type.Unsafe<JsonSchema | null>({
      type: ['object', 'null'],
      description: 'JSON schema of payloads; empty: payloads can be anything.',
    }),
  ),
  parameters_schema: Type.Optional(
    Type.Unsafe<JsonSchema | null>({
      type: ['object', 'null'],
      description: 'JSON schema of the parameters of triggers; empty: triggers have none.',
    }),
  ),
  tags: Type.Optional(Type.Nullable(Type.Array(Tag, { maxItems: 100 }))),
  metadata_file: Type.Optional(Type.Nullable(Type.String({ maxLength: 1_024 }))),
}

const typeRequestExample = {
  name: typeExample.name,
  pack: typeExample.pack,
  description: typeExample.description,
  payload_schema: typeExample.payload_schema,
}

/** Body of a POST, and file of a pack. Unknown properties are ignored, because clients of several versions send them. */
export const TriggerTypeRequest = record(
  'TriggerTypeRequest',
  Type.Object({ name: typeName, ...typeRequestProperties }),
  { example: typeRequestExample },
)
export type TriggerTypeRequest = Static<typeof TriggerTypeRequest>

/** Body of a PUT: without a name or pack, those of the type stay. */
export const TriggerTypeUpdate = record(
  'TriggerTypeUpdate',
  Type.Object({ name: Type.Optional(typeName), ...typeRequestProperties }),
  { example: typeRequestExample },
)
export type TriggerTypeUpdate = Static<typeof TriggerTypeUpdate>

export const triggerProperties = {
  id: Type.String(),
  uid: Type.String({ description: '`trigger:<pack>:<name>:<md5 of the masked parameters>`' }),
  ref: Type.String({ description: '`<pack>.<name>`; of a trigger with parameters the name is a random UUID.' }),
  name: Type.String(),
  pack: Type.String(),
  type: Type.String({ description: 'Reference of the trigger type.' }),
  description: Type.String(),
  parameters: Type.FreeForm({ description: 'Secret values are masked.' }),
}

const triggerExample = {
  id: '67a1f0c2e4b0a1d2c3e4f508',
  uid: 'trigger:core:svc.generic.inquiry:99914b932bd37a50b983c5e7c90ae93b',
  ref: 'core.svc.generic.inquiry',
  name: 'svc.generic.inquiry',
  pack: 'core',
  type: 'core.svc.generic.inquiry',
  description: 'An inquiry waits for a response.',
  parameters: {},
}

/** A trigger as clients see it. */
export const Trigger = record('Trigger', Type.Object(triggerProperties), { example: triggerExample })
export type Trigger = Static<typeof Trigger>

/** A trigger inside the server, its secret parameters unmasked: `TriggerService.record` makes the one for clients. */
export interface TriggerRecord extends Trigger {
  /** Limits what secrets that are templates can read to the permissions of this user. Not for clients. */
  author?: TriggerAuthor
}

const requestProperties = {
  pack: Type.Optional(
    Type.Unsafe<string | null>({
      ...packSchema,
      type: ['string', 'null'],
      description: 'Default: the pack of the type.',
    }),
  ),
  name: Type.Optional(
    Type.Unsafe<string | null>({ ...nameSchema, type: ['string', 'null'], description: 'Default: a random name.' }),
  ),
  description: Type.Optional(Type.Unsafe<string | null>(descriptionSchema)),
  parameters: Type.Optional(Type.Nullable(Type.FreeForm())),
}

const triggerRequestExample = {
  type: 'core.svc.IntervalTimer',
  parameters: { unit: 'minutes', delta: 5 },
}

/** Body of a POST. */
export const TriggerRequest = record(
  'TriggerRequest',
  Type.Object({ type: Type.String({ description: 'Reference of the trigger type.' }), ...requestProperties }),
  { example: triggerRequestExample },
)
export type TriggerRequest = Static<typeof TriggerRequest>

/** Body of a PUT: absent attributes stay or get their defaults. */
export const TriggerUpdate = record(
  'TriggerUpdate',
  Type.Object({
    type: Type.Optional(Type.String({ description: 'Reference of the trigger type; it cannot change.' })),
    ...requestProperties,
  }),
  { example: { description: 'Every five minutes.' } },
)
export type TriggerUpdate = Static<typeof TriggerUpdate>

const rulesOfTrigger = Type.Array(Type.String(), {
  description: 'References of the rules that use it and that the caller can view, enabled or not.',
})

/** A timer: its trigger, and when it fires. */
export const TimerRecord = record(
  'Timer',
  Type.Object({
    ...triggerProperties,
    type: Type.Unsafe<string>({ type: 'string', enum: timerTypes }),
    timezone: Type.String({ description: 'Time zone in which svc reads its schedule.' }),
    next_timestamp: Type.Optional(
      Type.String({
        description:
          'Next time at which the timer fires if an enabled rule uses it; absent if none follows or timers are off.',
      }),
    ),
    fired_timestamp: Type.Optional(
      Type.String({
        description: 'Last time for which the timer fired, without its jitter; absent before the first.',
      }),
    ),
    next_run: Type.Optional(
      Type.String({
        description:
          'When it fires next, with its jitter; absent if it does not: none follows, no enabled rule uses it, or timers are off.',
      }),
    ),
    previous_run: Type.Optional(Type.String({ description: 'When it fired last; absent before the first time.' })),
    next_runs: Type.Optional(
      Type.Array(Type.String(), {
        description: '`next_run` and the times of the schedule that follow. In lists if the query asks for them.',
      }),
    ),
    rules: rulesOfTrigger,
  }),
  {
    example: {
      ...triggerExample,
      uid: 'trigger:core:0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1:5f0a1f3ac5a5b0b3bb2b8a3ac1e5f9ad',
      ref: 'core.0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1',
      name: '0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1',
      type: 'core.svc.IntervalTimer',
      description: '',
      parameters: { unit: 'minutes', delta: 5 },
      timezone: 'Europe/Berlin',
      next_timestamp: '2030-01-31T12:05:00.000000Z',
      fired_timestamp: '2030-01-31T12:00:00.000000Z',
      next_run: '2030-01-31T12:05:00.000000Z',
      previous_run: '2030-01-31T12:00:00.000412Z',
      next_runs: ['2030-01-31T12:05:00.000000Z', '2030-01-31T12:10:00.000000Z'],
      rules: ['examples.every_five_minutes'],
    },
  },
)
export type TimerRecord = Static<typeof TimerRecord>

/** Most times that one answer has. */
export const MAX_NEXT_RUNS = 50
export const DEFAULT_NEXT_RUNS = 5

/** Body of `POST /timers/preview`. */
export const TimerPreviewRequest = record(
  'TimerPreviewRequest',
  Type.Object(
    {
      type: Type.Unsafe<string>({ type: 'string', enum: timerTypes }),
      parameters: Type.Optional(
        Type.Nullable(Type.FreeForm({ description: 'As in the trigger of a rule. Default: none.' })),
      ),
      count: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_NEXT_RUNS,
          description: `How many times to return; default ${DEFAULT_NEXT_RUNS}.`,
        }),
      ),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      type: 'core.svc.CronTimer',
      parameters: { cron: '*/5 8-18 * * mon-fri', timezone: 'Europe/Berlin' },
      count: 2,
    },
  },
)
export type TimerPreviewRequest = Static<typeof TimerPreviewRequest>

export const TimerPreview = record(
  'TimerPreview',
  Type.Object({
    timezone: Type.String({ description: 'Time zone in which svc reads the schedule.' }),
    next_runs: Type.Array(Type.String(), {
      description: 'Times of the schedule after now, without jitter; empty: it never fires.',
    }),
  }),
  {
    example: {
      timezone: 'Europe/Berlin',
      next_runs: ['2030-01-31T12:05:00.000000Z', '2030-01-31T12:10:00.000000Z'],
    },
  },
)
export type TimerPreview = Static<typeof TimerPreview>

/** The trigger of a webhook. */
export const WebhookRecord = record(
  'Webhook',
  Type.Object({
    ...triggerProperties,
    type: Type.String({ description: '`core.svc.webhook`' }),
    parameters: Type.FreeForm({ description: '`url`, and how senders sign; secret values are masked.' }),
    rules: rulesOfTrigger,
  }),
  {
    example: {
      ...triggerExample,
      uid: 'trigger:core:1f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1:6f0a1f3ac5a5b0b3bb2b8a3ac1e5f9ad',
      ref: 'core.1f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1',
      name: '1f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1',
      type: 'core.svc.webhook',
      description: '',
      parameters: { url: 'deployments' },
      rules: ['examples.deploy'],
    },
  },
)
export type WebhookRecord = Static<typeof WebhookRecord>

export const signatureSchemes = ['github', 'gitlab', 'stripe', 'slack', 'zoom', 'standard', 'sns', 'hmac'] as const

export type SignatureScheme = (typeof signatureSchemes)[number]

/** Parameters of a trigger of the type `core.svc.webhook` (contract 06, 6.1). */
export interface WebhookParameters {
  /** Path after `/v1/webhooks/`, without slashes around it. */
  url: string
  /** How senders sign; absent: they need a credential. */
  signature?: SignatureParameters
  /** Header with the delivery id. */
  delivery_id_header?: string
  /** Whether a repeated delivery has no effect; default true. */
  deduplicate?: boolean
  /** How the sender verifies the address; its requests are answered and not dispatched. */
  challenge?: ChallengeParameters
}

export const challengeSchemes = ['meta', 'okta', 'graph'] as const

/** `challenge` of a trigger. */
export interface ChallengeParameters {
  scheme: (typeof challengeSchemes)[number]
  /** Only for `meta`: the verify token. */
  token?: string
}

/** `signature` of a trigger. Everything after `topics` is only for the scheme `hmac`. */
export interface SignatureParameters {
  scheme: SignatureScheme
  /** Two secrets during a rotation. Templates are rendered when a signature is checked. Absent for `sns` only. */
  secret?: string | string[]
  /** Maximum difference in seconds between the time of a signature and the time of svc; default 300, for `sns` 7200. */
  tolerance_seconds?: number
  /** Only for the scheme `sns`: ARNs of the topics whose messages are accepted. */
  topics?: string[]
  /** Header with the signature; also for the scheme `stripe`, there by default `Stripe-Signature`. */
  header?: string
  /** Default `sha256`. */
  algorithm?: 'sha1' | 'sha256' | 'sha512'
  /** Default `hex`. */
  encoding?: 'hex' | 'base64'
  /** Text before the signature in its header. */
  prefix?: string
  /** Signed text with `{body}`, and with `{timestamp}` and `{id}` if their headers are set; default `{body}`. */
  template?: string
  /** Header with the time: seconds or milliseconds since the epoch, or ISO 8601. */
  timestamp_header?: string
  id_header?: string
}

/** The author of a record and the scopes of the credential used. */
export interface TriggerAuthor {
  user: string
  scopes?: readonly Scope[]
}

/** `processing` is never stored: an instance and everything it causes are one transaction. */
export type TriggerInstanceStatus = 'pending' | 'processed' | 'processing_failed'

const instance = Type.Object({
  id: Type.String(),
  trigger: Type.String({ description: 'Reference of the trigger.' }),
  trigger_type: Type.String({ description: 'Reference of the trigger type.' }),
  payload: Type.Unknown({ description: 'Data of the event.' }),
  occurrence_time: Type.String({ description: 'ISO 8601 UTC with microseconds.' }),
  status: Type.Unsafe<TriggerInstanceStatus>({
    type: 'string',
    enum: ['pending', 'processing', 'processed', 'processing_failed'],
  }),
  trace_id: Type.String(),
})

export const instanceAttributes = Object.keys(instance.properties)

/**
 * An instance inside the server. `sealed_headers`: see `SealedHeaders`; absent: the payload has no credential. `owner`:
 * user of the execution that the payload tells about.
 */
export type TriggerInstance = Static<typeof instance> & {
  trigger_id: string
  sealed_headers?: string
  owner?: string
  depth?: number
}

/** Body of `POST /triggerinstances/import`. */
export const TriggerInstanceImport = record(
  'TriggerInstanceImport',
  Type.Object(
    {
      trigger_instances: Type.Array(
        Type.Object({
          id: Type.String({ pattern: '^[0-9a-f]{24}$', description: 'It stays.' }),
          trigger: Type.String({ minLength: 1, description: 'Reference of the trigger.' }),
          trigger_type: Type.Optional(
            Type.String({ description: 'Reference of its type. Absent: that of the trigger here, or its own.' }),
          ),
          payload: Type.Optional(Type.FreeForm()),
          occurrence_time: Type.String({ description: 'ISO 8601.' }),
          status: Type.Optional(Type.Enum(['processed', 'processing_failed'], { description: 'Default: processed.' })),
        }),
        { maxItems: 100 },
      ),
      dry_run: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      trigger_instances: [
        {
          id: '67a1f0c2e4b0a1d2c3e4f50a',
          trigger: 'shop.order',
          payload: { order: 42 },
          occurrence_time: '2026-01-31T12:00:00.000000Z',
        },
      ],
    },
  },
)
export type TriggerInstanceImport = Static<typeof TriggerInstanceImport>

/** An instance with the credential headers in its payload, which must not leave the server. */
export type OpenedInstance = TriggerInstance & {
  /** To mask in whatever is made of the payload. */
  secrets: readonly string[]
  /** To dispatch the payload again. */
  credentials: CredentialHeaders | undefined
}

/** What svc stores beside a payload. */
export interface KeptWithPayload {
  /** Headers that the payload has masks for. */
  credentials?: CredentialHeaders | undefined
  /** User of the execution that the payload tells about. */
  owner?: string | undefined
  /** Executions by rules in the chain that led to it; absent: 0. */
  depth?: number | undefined
}

/** The headers of a payload that contain credentials: `X-Api-Key`, and `x-api-key`. */
export interface CredentialHeaders {
  headers: Record<string, string>
  headers_lower: Record<string, string>
}

/** A trigger instance in a response. It has no payload if that is larger than `max_payload_size`. */
export type TriggerInstanceRecord = Omit<Static<typeof instance>, 'payload'> & {
  payload?: unknown
  payload_size?: number
  payload_reduced?: string
}

const payloadReduced = Type.Optional(
  Type.String({ description: 'Why the payload lacks keys: the permission that the caller does not have.' }),
)

const instanceExample = {
  id: '67a1f0c2e4b0a1d2c3e4f50a',
  trigger: 'examples.build.finished',
  trigger_type: 'examples.build.finished',
  payload: { branch: 'main' },
  occurrence_time: '2026-01-31T12:00:00.000000Z',
  status: 'processed',
  trace_id: '67a1f0c2e4b0a1d2c3e4f507',
} as const

/** A trigger instance in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialTriggerInstance = record(
  'TriggerInstance',
  Type.Object({
    ...Type.Partial(instance).properties,
    id: Type.String(),
    payload_size: Type.Optional(
      Type.Integer({ description: 'Bytes of the payload; replaces a payload larger than `max_payload_size`.' }),
    ),
    payload_reduced: payloadReduced,
  }),
  { example: instanceExample },
)

/** Answer to a POST that dispatches an instance again. */
export const ReEmittedInstance = record(
  'ReEmittedTriggerInstance',
  Type.Object({
    message: Type.String(),
    payload: Type.Unknown({ description: 'Payload of the new instance.' }),
    payload_reduced: payloadReduced,
  }),
  {
    example: {
      message: `Trigger instance ${instanceExample.id} successfully re-sent.`,
      payload: { branch: 'main', __context: { original_id: instanceExample.id } },
    },
  },
)
export type ReEmittedInstance = Static<typeof ReEmittedInstance>

/** Repetitions of the delivery of an instance that had no effect. Timestamps are ISO 8601 UTC. */
export interface Repetitions {
  count: number
  first_timestamp: string
  last_timestamp: string
}

/** An instance that waits for the evaluation of rules. */
export type QueuedInstance = Pick<TriggerInstance, 'id' | 'trigger_id' | 'trigger' | 'trigger_type' | 'trace_id'>
