/** How long the executions of one action or rule are kept (`keep`). */
import { Type, type Static } from '../lib/schema/index.ts'

const MAX_DAYS = 36_500
const MAX_COUNT = 1_000_000

const properties = {
  days: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_DAYS,
    description: 'Executions that are older are deleted; 0: none is for its age.',
  },
  count: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_COUNT,
    description: 'Older executions than the newest of this number are deleted; 0: none is for their number.',
  },
} as const

const description =
  'How long finished executions are kept, with what they have started. It replaces `garbagecollector.action_executions_record_ttl`.'

const Keep = Type.Object(
  {
    days: Type.Optional(Type.Unsafe<number>(properties.days)),
    count: Type.Optional(Type.Unsafe<number>(properties.count)),
  },
  { description },
)
/** Absent or 0: no limit. */
export type Keep = Static<typeof Keep>

/** Of a record. */
export const keepProperties = { keep: Type.Optional(Keep) }

const orNull = (schema: (typeof properties)['days' | 'count']) =>
  Type.Optional(Type.Unsafe<number | null>({ ...schema, type: ['integer', 'null'] }))

/** Of a definition; null: not given. */
export const givenKeepProperties = {
  keep: Type.Optional(
    Type.Nullable(
      Type.Object(
        { days: orNull(properties.days), count: orNull(properties.count) },
        { additionalProperties: false, minProperties: 1, description },
      ),
    ),
  ),
}

interface Given {
  keep?: { days?: number | null; count?: number | null } | null
}

/** The retention alone, without what is not given. */
export function keepOf({ keep }: Given): { keep?: Keep } {
  if (keep === undefined || keep === null) return {}
  const { days, count } = keep
  return {
    keep: {
      ...(days === undefined || days === null ? {} : { days }),
      ...(count === undefined || count === null ? {} : { count }),
    },
  }
}
