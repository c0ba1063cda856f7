import { record, Type, type Static } from '../../lib/schema/index.ts'

export const keyScopes = ['svckv.system', 'svckv.user'] as const
export type KeyScope = (typeof keyScopes)[number]

/** Identifies an item. */
export interface ItemKey {
  scope: KeyScope
  /** Owner in the user scope, else empty. */
  user: string
  name: string
}

export interface KeyValuePair extends ItemKey {
  id: string
  description: string | null
  /** Upper-case hexadecimal cipher text if `encrypted`. */
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp: string | null
}

/** UTF-8 bytes of a value. Its cipher text has two digits per byte. */
export const MAX_VALUE_BYTES = 1_048_576
/** A hundred years. */
export const MAX_TTL_SECONDS = 3_153_600_000

const ignored = Type.Optional(Type.Nullable(Type.String({ description: 'Set by the server; ignored.' })))

/** A key-value pair as clients see it; an attribute without a value is absent. */
export const KeyValuePairRecord = record(
  'KeyValuePair',
  Type.Object({
    id: Type.String(),
    uid: Type.String(),
    name: Type.String(),
    scope: Type.Enum(keyScopes),
    user: Type.Optional(Type.String({ description: 'Owner of a key in the scope `user`.' })),
    description: Type.Optional(Type.String()),
    value: Type.String({ description: 'Hexadecimal cipher text if `encrypted`.' }),
    secret: Type.Boolean(),
    encrypted: Type.Boolean(),
    expire_timestamp: Type.Optional(Type.String({ format: 'date-time', description: 'Absent: it never expires.' })),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f507',
      uid: 'key_value_pair:svckv.system:region',
      name: 'region',
      scope: 'svckv.system',
      value: 'eu-west-1',
      secret: false,
      encrypted: false,
    },
  },
)
export type KeyValuePairRecord = Static<typeof KeyValuePairRecord>

export const KeyValuePairRequest = record(
  'KeyValuePairRequest',
  Type.Object(
    {
      name: Type.String({ description: 'The same name as in the path.' }),
      value: Type.String({ description: `At most ${MAX_VALUE_BYTES} bytes.` }),
      description: Type.Optional(
        Type.Nullable(Type.String({ maxLength: 4096, description: 'Absent: the description stays.' })),
      ),
      secret: Type.Optional(Type.Nullable(Type.Boolean({ description: 'Encrypts the value. Default: false.' }))),
      encrypted: Type.Optional(
        Type.Nullable(
          Type.Boolean({
            description: 'The value is cipher text that svc created for this key. Administrators only.',
          }),
        ),
      ),
      scope: Type.Optional(Type.Nullable(Type.String({ description: '`system` (the default) or `user`.' }))),
      user: Type.Optional(
        Type.Nullable(
          Type.String({
            description:
              'Owner of a key in the scope `user`. Default: the caller. Administrators with access control only.',
          }),
        ),
      ),
      ttl: Type.Optional(
        Type.Nullable(
          Type.Integer({
            minimum: 1,
            maximum: MAX_TTL_SECONDS,
            description: 'Seconds until the key expires. Absent: it never expires, even if it had a TTL before.',
          }),
        ),
      ),
      id: ignored,
      uid: ignored,
      expire_timestamp: ignored,
    },
    { additionalProperties: false },
  ),
  { example: { name: 'region', value: 'eu-west-1' } },
)
export type KeyValuePairRequest = Static<typeof KeyValuePairRequest>
