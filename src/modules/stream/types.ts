import { record, Type, type Static } from '../../lib/schema/index.ts'

/** An event of the stream: lists of these records are out of date. */
export const ContentEvent = record(
  'ContentChange',
  Type.Object({
    kinds: Type.Array(
      Type.Union([
        Type.Literal('action'),
        Type.Literal('policy'),
        Type.Literal('rule'),
        Type.Literal('trigger'),
        Type.Literal('trigger_type'),
      ]),
      { description: 'Kinds of records of which some were created, changed or deleted since the last such event.' },
    ),
  }),
  { example: { kinds: ['action', 'rule'] } },
)
export type ContentEvent = Static<typeof ContentEvent>
export type ContentKind = ContentEvent['kinds'][number]
