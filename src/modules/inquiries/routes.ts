/** Endpoints of contract 08, 8.15. */
import { listReply, pageHeaders, pageQuery, parsePage, type Route } from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { InquiryService } from './service.ts'

const INQUIRIES_LIMIT = 20

const text: JsonSchema = { type: 'string' }
const texts: JsonSchema = { type: 'array', items: text }

const inquirySchema: JsonSchema = {
  title: 'Inquiry',
  type: 'object',
  required: ['id', 'schema', 'roles', 'users', 'route', 'ttl'],
  properties: {
    id: { type: 'string', description: 'Of its execution.' },
    schema: { type: 'object', description: 'JSON schema of the response.' },
    roles: { ...texts, description: 'A user needs one of these roles to respond; empty: none.' },
    users: { ...texts, description: 'Who may respond; empty: all users.' },
    route: text,
    ttl: { type: 'integer', description: 'Minutes from the question to the time-out; 0: never.' },
  },
}

const response: JsonSchema = { type: 'object', description: 'Fits the schema of the inquiry.' }

interface ResponseBody {
  response: Record<string, unknown>
}

export function createRoutes({ service, maxPageSize }: { service: InquiryService; maxPageSize: number }): Route[] {
  return [
    {
      surface: 'api',
      method: 'get',
      path: '/inquiries',
      permission: 'inquiry_list',
      summary: 'Lists the inquiries that wait for a response, newest first.',
      query: pageQuery,
      response: { type: 'array', items: inquirySchema },
      failures: [400, 403, 503],
      async handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: INQUIRIES_LIMIT, maxPageSize })
        const { inquiries, total } = await service.list(page)
        return listReply(inquiries, pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/inquiries/:id',
      permission: 'inquiry_view',
      summary: 'Gets one inquiry that waits for a response.',
      response: inquirySchema,
      failures: [400, 404],
      handler: ({ params }) => service.get(params['id'] ?? ''),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/inquiries/:id',
      permission: 'inquiry_respond',
      resource: ({ params }) => service.resourceOf(params['id'] ?? ''),
      summary: 'Responds to an inquiry: its execution succeeds, with the response in its result.',
      body: { type: 'object', required: ['response'], properties: { id: text, response } },
      response: {
        title: 'InquiryResponse',
        type: 'object',
        required: ['id', 'response'],
        properties: { id: text, response },
      },
      failures: [400, 403, 404],
      async handler(request) {
        const id = request.params['id'] ?? ''
        const { response: given } = request.body as ResponseBody // fits the schema
        await service.respond(request, id, given)
        return { id, response: given }
      },
    },
  ]
}
