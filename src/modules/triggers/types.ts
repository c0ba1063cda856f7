import { descriptionSchema, nameSchema, packSchema } from '../../core/pack-content.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { timerTypes } from './builtin/timer-parameters.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { Scope } from '../../core/permissions.ts'

export interface TriggerTypeRecord {
  id: string
  /** `trigger_type:<pack>:<name>` */
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  /** Of the payload; `{}`: anything. */
  payload_schema: JsonSchema
  /** Of the parameters of triggers; `{}`: they have none, and there is one trigger of the type's own name. */
  parameters_schema: JsonSchema
  tags: { name: string; value: string }[]
  metadata_file?: string
}

/** What an author writes: the record without what is derived. */
export type TriggerTypeDefinition = Omit<TriggerTypeRecord, 'id' | 'uid' | 'ref'>

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
  /** Of a trigger with templates as secrets: the templates read what this user may read. Not for clients. */
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

/** Body of a PUT: what is absent stays, or gets its default. */
export const TriggerUpdate = record(
  'TriggerUpdate',
  Type.Object({
    type: Type.Optional(Type.String({ description: 'Reference of the trigger type; it cannot change.' })),
    ...requestProperties,
  }),
  { example: { description: 'Every five minutes.' } },
)
export type TriggerUpdate = Static<typeof TriggerUpdate>

/** A timer: its trigger, and when it fires. */
export const TimerRecord = record(
  'Timer',
  Type.Object({
    ...triggerProperties,
    type: Type.Unsafe<string>({ type: 'string', enum: timerTypes }),
    next_timestamp: Type.Optional(
      Type.String({ description: 'Next time; absent when it never fires again, or when timers are off.' }),
    ),
    fired_timestamp: Type.Optional(Type.String({ description: 'Last time it fired for; absent before the first.' })),
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
      next_timestamp: '2030-01-31T12:05:00.000000Z',
    },
  },
)
export type TimerRecord = Static<typeof TimerRecord>

/** The trigger of a webhook. */
export const WebhookRecord = record(
  'Webhook',
  Type.Object({
    ...triggerProperties,
    type: Type.String({ description: '`core.svc.webhook`' }),
    parameters: Type.FreeForm({ description: '`url`, and how senders sign; secret values are masked.' }),
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
    },
  },
)
export type WebhookRecord = Static<typeof WebhookRecord>

export const signatureSchemes = ['github', 'gitlab', 'stripe', 'slack', 'standard', 'hmac'] as const

export type SignatureScheme = (typeof signatureSchemes)[number]

/** Parameters of a trigger of the type `core.svc.webhook` (contract 06, 6.1). */
export interface WebhookParameters {
  /** What follows `/v1/webhooks/`; slashes around it do not count. */
  url: string
  /** How senders sign; absent: they need a credential. */
  signature?: SignatureParameters
  /** The header with the id of the delivery. */
  delivery_id_header?: string
}

/** `signature` of a trigger; everything after `tolerance_seconds` is for the scheme `hmac` alone. */
export interface SignatureParameters {
  scheme: SignatureScheme
  /** Two while one replaces the other. Templates are rendered when a signature is checked. */
  secret: string | string[]
  /** How far the time of a signature may be from ours, either way; default 300. */
  tolerance_seconds?: number
  /** Header with the signature. */
  header?: string
  /** Default `sha256`. */
  algorithm?: 'sha1' | 'sha256' | 'sha512'
  /** Default `hex`. */
  encoding?: 'hex' | 'base64'
  /** What stands in front of the signature in its header. */
  prefix?: string
  /** What is signed: text with `{body}`, and with `{timestamp}` and `{id}` where their headers are named; default `{body}`. */
  template?: string
  /** Header with the seconds since the epoch. */
  timestamp_header?: string
  id_header?: string
}

/** Who has written something, and what the credential was limited to. */
export interface TriggerAuthor {
  user: string
  scopes?: readonly Scope[]
}

/** `processing` is never stored: an instance and all it causes are one change. */
export type TriggerInstanceStatus = 'pending' | 'processed' | 'processing_failed'

export interface TriggerInstance {
  id: string
  /** Reference of the trigger. */
  trigger: string
  trigger_id: string
  /** Reference of its type. */
  trigger_type: string
  occurrence_time: string
  status: TriggerInstanceStatus
  trace_id: string
  payload: unknown
}

/** As clients see it. */
export interface TriggerInstanceRecord extends Omit<TriggerInstance, 'trigger_id' | 'payload'> {
  /** Absent where it is larger than a reader wants. */
  payload?: unknown
  /** Bytes, in the place of such a payload. */
  payload_size?: number
}

/** An instance that rules have to be looked at for. */
export type QueuedInstance = Pick<TriggerInstance, 'id' | 'trigger_id' | 'trigger' | 'trigger_type' | 'trace_id'>
