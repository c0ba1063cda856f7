/** Wire records of contract 08, 8.15. */
import { record, Type, type Static } from '../../lib/schema/index.ts'

const texts = Type.Array(Type.String())

/** A question that an execution waits with. */
export const InquiryRecord = record(
  'Inquiry',
  Type.Object({
    id: Type.String({ description: 'Id of its execution.' }),
    schema: Type.FreeForm({ description: 'JSON schema of the response.' }),
    roles: { ...texts, description: 'A user needs one of these roles to respond; empty: none.' },
    users: { ...texts, description: 'Who may respond; empty: all users.' },
    route: Type.String(),
    ttl: Type.Integer({ description: 'Minutes from the question to the time-out; 0: never.' }),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f506',
      schema: { type: 'object', properties: { continue: { type: 'boolean', required: true } } },
      roles: [],
      users: ['jane'],
      route: 'developers',
      ttl: 1440,
    },
  },
)
export type InquiryRecord = Static<typeof InquiryRecord>

/** An inquiry in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialInquiry = record(
  'PartialInquiry',
  Type.Object({ ...Type.Partial(InquiryRecord).properties, id: Type.String() }),
  { example: { id: '67a1f0c2e4b0a1d2c3e4f506', route: 'developers' } },
)

const response = Type.FreeForm({ description: 'Fits the schema of the inquiry.' })

/** What a user sends. Clients send the whole inquiry back, so that further attributes are taken and not read. */
export const InquiryAnswer = record('InquiryAnswer', Type.Object({ id: Type.Optional(Type.String()), response }), {
  example: { response: { continue: true } },
})
export type InquiryAnswer = Static<typeof InquiryAnswer>

/** What has been taken as the response. */
export const InquiryResponse = record('InquiryResponse', Type.Object({ id: Type.String(), response }), {
  example: { id: '67a1f0c2e4b0a1d2c3e4f506', response: { continue: true } },
})
export type InquiryResponse = Static<typeof InquiryResponse>
