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

export interface TriggerRecord {
  id: string
  /** `trigger:<pack>:<name>:<md5 of the parameters as clients see them>` */
  uid: string
  /** `<pack>.<name>`; of triggers with parameters the name is a random UUID. */
  ref: string
  name: string
  pack: string
  /** Reference of the trigger type. */
  type: string
  description: string
  /** As given, secrets included: records for clients are made by `Triggers.record`. */
  parameters: Record<string, unknown>
  /** Of one with templates as secrets: in whose name they read, besides the server's. Not for clients. */
  author?: TriggerAuthor
}

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

/** A timer as replies show it. */
export interface TimerRecord extends Omit<TriggerRecord, 'author'> {
  /** Absent when it never fires again, or timers are off. */
  next_timestamp?: string
  /** The time that it has fired for last; absent before the first. */
  fired_timestamp?: string
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
