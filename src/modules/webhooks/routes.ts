/** Endpoints of contract 06, 6.2 and 6.3. */
import { listReply, pageHeaders, route, textFilter, type Route } from '../../http/index.ts'
import { Type, type JsonSchema } from '../../lib/schema/index.ts'
import { hookOf, WebhookRecord } from '../triggers/index.ts'
import type { WebhookService } from './service.ts'
import { WebhookChallenge, WebhookOutcome, WebhookSubscription, WebhookValidation } from './types.ts'
import { webhookResource } from '../../core/permissions.ts'

const received: JsonSchema = { type: ['object', 'array'], description: 'The parsed body of the request.' }

export function createWebhookRoutes(service: WebhookService): Route[] {
  const hook = ({ params }: { params: { hook: string } }): string => hookOf(params.hook)
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/webhooks',
      permission: 'webhook_list',
      summary: 'Lists the triggers of all webhooks.',
      query: { pack: { type: 'string', description: 'Pack of a rule of the webhook.' } },
      response: Type.Array(WebhookRecord),
      handler({ rights, query }) {
        const { records, total } = service.list(rights, textFilter(query, 'pack'))
        return listReply(records, pageHeaders({ limit: undefined, offset: 0 }, total))
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/webhooks/*hook',
      permission: 'webhook_view',
      resource: (request) => webhookResource(hook(request)),
      provesItself: (request) => service.isChallenged(hook(request)),
      summary: 'Gets the first trigger of a webhook, or answers a sender that verifies the address.',
      query: {
        'hub.mode': { type: 'string', description: '`subscribe`: the sender verifies the address.' },
        'hub.verify_token': { type: 'string', description: 'Token of the challenge.' },
        'hub.challenge': { type: 'string', description: 'Text that the answer repeats.' },
      },
      headers: { 'X-Okta-Verification-Challenge': 'Text that the answer repeats.' },
      response: WebhookRecord,
      failures: [404],
      handler: (request) => service.view(hook(request), request),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/webhooks/*hook',
      permission: 'webhook_send',
      resource: (request) => webhookResource(hook(request)),
      provesItself: (request) => service.provesItself(hook(request), request.headers),
      summary: 'Sends an event to a webhook. svc stores it as trigger instances and evaluates their rules.',
      headers: {
        'Svc-Trace-Tag': 'Tag of the trace: of a new one, or of an existing one that the event joins.',
        'Idempotency-Key': 'A repeated request within 24 hours has no effect and gets the first answer.',
        Prefer: '`wait=<seconds>`, at most 300: the answer is 200 as soon as the started executions have finished.',
      },
      answerHeaders: {
        'Svc-Trigger-Instance-Id': 'Ids of the trigger instances, separated by commas.',
        'Svc-Trace-Id': 'Id of their trace.',
        Location: 'Path of the first trigger instance.',
        'Idempotent-Replayed': '`true` for a repeated request.',
        'Preference-Applied': 'The applied `wait`.',
      },
      query: {
        validationToken: { type: 'string', description: 'Of a challenge `graph`: text that the answer repeats.' },
      },
      rawBody: received,
      status: 202,
      response: received,
      otherResponses: { 200: Type.Union([WebhookOutcome, WebhookChallenge, WebhookValidation, WebhookSubscription]) },
      failures: [404, 409, 503],
      handler: (request) => service.receive(hook(request), request),
    }),
  ]
}
