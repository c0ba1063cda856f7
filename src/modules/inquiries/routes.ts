/** Endpoints of contract 08, 8.15. */
import { listEndpoint, route, type AttributeOptions, type Route } from '../../http/index.ts'
import type { InquiryService } from './service.ts'
import { InquiryAnswer, InquiryRecord, InquiryResponse, PartialInquiry } from './types.ts'

const INQUIRIES_LIMIT = 20

const attributes: AttributeOptions = {
  known: Object.keys(InquiryRecord.properties),
  excludable: Object.keys(InquiryRecord.properties).filter((name) => name !== 'id'),
  always: ['id'],
}

export function createInquiryRoutes({
  service,
  maxPageSize,
}: {
  service: InquiryService
  maxPageSize: number
}): Route[] {
  return [
    listEndpoint({
      path: '/inquiries',
      permission: 'inquiry_list',
      summary: 'Lists the inquiries that wait for a response, newest first.',
      record: PartialInquiry,
      page: { defaultLimit: INQUIRIES_LIMIT, maxPageSize },
      attributes,
      async find({ page }) {
        const { inquiries, total } = await service.list(page)
        return { records: inquiries, total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/inquiries/:id',
      permission: 'inquiry_view',
      summary: 'Gets one inquiry that waits for a response.',
      response: InquiryRecord,
      failures: [400, 404],
      handler: ({ params }) => service.get(params.id),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/inquiries/:id',
      permission: 'inquiry_respond',
      resource: ({ params }) => service.resourceOf(params.id),
      summary: 'Responds to an inquiry: its execution succeeds, with the response in its result.',
      body: InquiryAnswer,
      response: InquiryResponse,
      failures: [400, 403, 404],
      async handler(request) {
        const { id } = request.params
        const { response } = request.body
        await service.respond(request, id, response)
        return { id, response }
      },
      answerAgain: ({ params: { id }, body: { response } }) => ({ id, response }),
    }),
  ]
}
