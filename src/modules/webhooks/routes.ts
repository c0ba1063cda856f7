/** Endpoints of contract 06, 6.2 and 6.3. */
import { listReply, pageHeaders, type ApiRequest, type Route } from '../../http/index.ts'
import { Type, type JsonSchema } from '../../lib/schema/index.ts'
import { hookOf, WebhookRecord } from '../triggers/index.ts'
import type { WebhookService } from './service.ts'
import { webhookResource } from '../../core/permissions.ts'

const text = { type: 'string' }

const outcomeSchema: JsonSchema = {
  title: 'WebhookOutcome',
  type: 'object',
  required: ['trigger_instances', 'executions'],
  properties: {
    trigger_instances: {
      type: 'array',
      items: { type: 'object', required: ['id'], properties: { id: text, status: text } },
    },
    executions: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'status', 'action'],
        properties: {
          id: text,
          status: text,
          action: text,
          rule: { type: ['string', 'null'] },
          result: { description: 'Only for callers who may view the execution.' },
          result_size: { type: ['integer', 'null'], description: 'Of a result too long to stand here.' },
        },
      },
    },
  },
}

const challengeSchema: JsonSchema = {
  title: 'WebhookChallenge',
  description: 'To a sender that asks whether the address is right before it sends any event, as Slack does.',
  type: 'object',
  required: ['challenge'],
  properties: { challenge: text },
}

const received: JsonSchema = { type: ['object', 'array'], description: 'What was sent, parsed.' }

export function createRoutes(service: WebhookService): Route[] {
  const hook = ({ params }: Pick<ApiRequest, 'params'>): string => hookOf(params['hook'] ?? '')
  return [
    {
      surface: 'api',
      method: 'get',
      path: '/webhooks',
      permission: 'webhook_list',
      summary: 'Lists the triggers of all webhooks.',
      response: Type.Array(WebhookRecord),
      handler({ rights }) {
        const webhooks = service.list(rights)
        return listReply(webhooks, pageHeaders({ limit: undefined, offset: 0 }, webhooks.length))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/webhooks/*hook',
      permission: 'webhook_view',
      resource: (request) => webhookResource(hook(request)),
      summary: 'Gets the first trigger of a webhook.',
      response: WebhookRecord,
      failures: [404],
      handler: (request) => service.find(hook(request)),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/webhooks/*hook',
      permission: 'webhook_send',
      resource: (request) => webhookResource(hook(request)),
      provesItself: (request) => service.provesItself(hook(request), request.headers),
      summary: 'Sends to a webhook; it becomes trigger instances, which rules then look at.',
      headers: {
        'Svc-Trace-Tag': 'Tag of the trace that begins with this, or of an existing one that it joins.',
        'Idempotency-Key': 'The same again within 24 hours causes nothing, and is answered as the first time.',
        Prefer: '`wait=<seconds>`, at most 300: answers with 200 once the executions that were started have finished.',
      },
      answerHeaders: {
        'Svc-Trigger-Instance-Id': 'Ids of the trigger instances, separated by commas.',
        'Svc-Trace-Id': 'Id of their trace.',
        Location: 'Path of the first trigger instance.',
        'Idempotent-Replayed': '`true` where this was a repetition.',
        'Preference-Applied': 'The `wait` that was kept to.',
      },
      rawBody: received,
      status: 202,
      response: received,
      otherResponses: { 200: { anyOf: [outcomeSchema, challengeSchema] } },
      failures: [404, 409, 503],
      handler: (request) => service.receive(hook(request), request),
    },
  ]
}
