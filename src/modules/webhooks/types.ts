import { executionStatuses } from '../../core/execution-status.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'
import type { TriggerInstanceStatus } from '../triggers/types.ts'

/** Answer to a sender that waited for the executions (`Prefer: wait`). */
export const WebhookOutcome = record(
  'WebhookOutcome',
  Type.Object({
    trigger_instances: Type.Array(
      Type.Object({
        id: Type.String(),
        status: Type.Optional(
          Type.Unsafe<TriggerInstanceStatus>({ type: 'string', description: 'Absent after the instance was purged.' }),
        ),
      }),
    ),
    executions: Type.Array(
      Type.Object({
        id: Type.String(),
        status: Type.Enum(executionStatuses),
        action: Type.String({ description: 'Reference of the action.' }),
        rule: { ...Type.Nullable(Type.String()), description: 'Reference of the rule.' },
        result: Type.Optional(Type.Unknown({ description: 'Only for callers who can view the execution.' })),
        result_size: Type.Optional(
          Type.Unsafe<number | null>({
            type: ['integer', 'null'],
            description: 'Bytes of a result that is too long for this answer.',
          }),
        ),
      }),
    ),
  }),
  {
    example: {
      trigger_instances: [{ id: '67a1f0c2e4b0a1d2c3e4f50a', status: 'processed' }],
      executions: [
        {
          id: '67a1f0c2e4b0a1d2c3e4f506',
          status: 'succeeded',
          action: 'core.local',
          rule: 'examples.deploy',
          result: { stdout: 'deployed', stderr: '', return_code: 0, succeeded: true, failed: false },
        },
      ],
    },
  },
)
export type WebhookOutcome = Static<typeof WebhookOutcome>

export const WebhookSubscription = record(
  'WebhookSubscription',
  Type.Object({
    topic: Type.String({ description: 'ARN of the topic.' }),
    subscription: Type.Enum(['confirmed', 'ended']),
  }),
  {
    description: 'Answer to Amazon SNS, which begins or ends a subscription.',
    example: { topic: 'arn:aws:sns:eu-central-1:123456789012:alarms', subscription: 'confirmed' },
  },
)
export type WebhookSubscription = Static<typeof WebhookSubscription>

/** Query parameters of requests that verify an address. */
export type SentQuery = Partial<
  Record<'hub.mode' | 'hub.verify_token' | 'hub.challenge' | 'validationToken', string | undefined>
>

export const WebhookChallenge = record('WebhookChallenge', Type.Object({ challenge: Type.String() }), {
  description: 'Answer to a sender that verifies the address before it sends any event, as Slack does.',
  example: { challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' },
})
export type WebhookChallenge = Static<typeof WebhookChallenge>

export const WebhookValidation = record(
  'WebhookValidation',
  Type.Object({
    plainToken: Type.String(),
    encryptedToken: Type.String({ description: 'HMAC-SHA256 of the text, in hexadecimal.' }),
  }),
  {
    description: 'Answer to Zoom, which verifies the address and the secret before it sends any event.',
    example: {
      plainToken: 'qgg8vlvZRS6UYooatFL8Aw',
      encryptedToken: '33c87763eeee7760422d82e566d46fe8b5eaca6c3da5abf7923e6e8765c76a26',
    },
  },
)
export type WebhookValidation = Static<typeof WebhookValidation>
