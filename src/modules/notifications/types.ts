/** Records of notifications: on the wire, in files and inside the server. */
import { durationSchema } from '../../lib/calendar/index.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { conditionNames, type Condition } from '../../core/notify.ts'
import type { MissReason } from '../rules/types.ts'

export { conditionNames, conditions, type Condition, type ConditionName } from '../../core/notify.ts'

export const notificationStatuses = ['pending', 'sending', 'sent', 'failed', 'suppressed', 'digested'] as const
export type NotificationStatus = (typeof notificationStatuses)[number]

/** Why a message exists: a condition, or neither. */
export type Occasion = Condition | 'digest' | 'test'

/** What a notification tells, as its row holds it: secrets masked, every text bounded. */
export interface Content {
  action?: string
  user?: string
  /** Status of the execution. */
  outcome?: string
  attempt?: number
  elapsed?: number
  /** Of the event: when the execution ended, when the run was due. */
  at: string
  exit_code?: number
  error?: string
  stderr?: string
  due?: string
  expect?: unknown
  last_success?: string | null
  reason?: MissReason
  /** Of the rule's author. */
  message?: string
  to?: readonly string[]
  /** Of a digest. */
  items?: readonly { id: string; condition: Occasion; job: string; execution?: string; at: string }[]
  /** Those that a digest does not list. */
  more?: number
}

/** A row. */
export interface Notification {
  id: string
  destination: string
  occasion: Occasion
  status: NotificationStatus
  /** Reference of the rule, else of the action; empty for a digest and a test. */
  job: string
  rule: string | null
  execution: string | null
  attempts: number
  /** Not sent before. */
  due_at: string
  created_at: string
  /** Since when svc tries to send it: when it was made, or replayed. */
  queued_at: string
  sent_at: string | null
  /** Why the last attempt failed, or why nothing was sent. */
  error: string | null
  /** The digest that tells of it. */
  digest: string | null
  content: Content
}

const Timestamp = Type.String({ description: 'ISO 8601 UTC with microseconds.' })

export const NotificationRecord = record(
  'Notification',
  Type.Object({
    id: Type.String({ description: 'The same in each attempt: receivers can ignore repetitions by it.' }),
    destination: Type.String({ description: 'Name of the destination.' }),
    condition: Type.String({ description: 'One of the conditions, or `digest` or `test`.' }),
    status: Type.Enum(notificationStatuses, { type: 'string' }),
    title: Type.String({ description: 'First line of the message.' }),
    job: Type.Optional(
      Type.String({ description: 'Reference of the rule that started the execution, else of its action.' }),
    ),
    rule: Type.Optional(Type.String({ description: 'Reference.' })),
    action: Type.Optional(Type.String({ description: 'Reference.' })),
    execution: Type.Optional(Type.String({ description: 'Id of the execution.' })),
    web_url: Type.Optional(Type.String({ description: 'Page of the execution in the web client.' })),
    user: Type.Optional(Type.String({ description: 'Of the execution.' })),
    attempts: Type.Integer({ description: 'Attempts to send it.' }),
    created_at: Timestamp,
    due_at: Type.Optional(Type.String({ description: 'While it waits: the time of the next attempt.' })),
    sent_at: Type.Optional(Timestamp),
    error: Type.Optional(Type.String({ description: 'Why the last attempt failed, or why it was not sent.' })),
    digest: Type.Optional(Type.String({ description: 'Id of the digest that lists it.' })),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f521',
      destination: 'slack',
      condition: 'failed',
      status: 'sent',
      title: 'Failed: shop.deploy',
      job: 'shop.deploy',
      rule: 'shop.deploy',
      action: 'core.local',
      execution: '67a1f0c2e4b0a1d2c3e4f506',
      web_url: 'https://svc.example.com/#/history/67a1f0c2e4b0a1d2c3e4f506/general',
      user: 'svc',
      attempts: 1,
      created_at: '2026-01-31T12:00:00.000000Z',
      sent_at: '2026-01-31T12:00:00.120000Z',
    },
  },
)
export type NotificationRecord = Static<typeof NotificationRecord>

export const DestinationRecord = record(
  'NotificationDestination',
  Type.Object({
    name: Type.String(),
    description: Type.String(),
    channel: Type.String(),
    pack: Type.Optional(Type.String({ description: 'The pack that has it; absent: the site.' })),
    file: Type.String({ description: 'Relative to the base path, or to the pack.' }),
    on: Type.Array(Type.Enum(conditionNames, { type: 'string' })),
    is_global: Type.Boolean({ description: 'Whether it hears of every job: `notifications.destinations`.' }),
    settings: Type.FreeForm({ description: 'Without secrets: those are masked.' }),
    state: Type.Enum(['ok', 'failing', 'unused'], {
      type: 'string',
      description: 'Of the last attempt since the start.',
    }),
    last_error: Type.Optional(Type.String()),
    last_sent_at: Type.Optional(Timestamp),
    pending: Type.Integer({ description: 'Notifications that wait to be sent.' }),
    warnings: Type.Array(Type.String()),
  }),
  {
    example: {
      name: 'slack',
      description: '',
      channel: 'slack',
      file: 'notifications/slack.yaml',
      on: ['failed', 'timeout', 'recovered', 'missed'],
      is_global: false,
      settings: { webhook_url: '********' },
      state: 'ok',
      last_sent_at: '2026-01-31T12:00:00.120000Z',
      pending: 0,
      warnings: [],
    },
  },
)
export type DestinationRecord = Static<typeof DestinationRecord>

export const TestOutcome = record(
  'NotificationTest',
  Type.Object({
    id: Type.String({ description: 'Of the notification.' }),
    destination: Type.String(),
    sent: Type.Boolean(),
    message: Type.String({ description: 'What the receiver said, or why it was not sent.' }),
  }),
  { example: { id: '67a1f0c2e4b0a1d2c3e4f522', destination: 'slack', sent: true, message: 'ok' } },
)
export type TestOutcome = Static<typeof TestOutcome>

/** `{count, per}`: at most so many messages of a job. */
export const rateLimitSchema = {
  type: 'object',
  required: ['count', 'per'],
  additionalProperties: false,
  properties: { count: { type: 'integer', minimum: 1, maximum: 1000 }, per: durationSchema },
} as const
