/** Wire records of contract 01: tokens, users, API keys. */
import { record, Type, type Static } from '../../lib/schema/index.ts'

const timestamp = (description: string) => Type.String({ format: 'date-time', description })

/** Body of the creation of a token; only `ttl` is checked here (contract 01, 1.2). */
export const TokenRequest = record(
  'TokenRequest',
  Type.Object({
    ttl: Type.Optional(
      Type.Nullable(
        Type.Integer({
          minimum: 1,
          description: 'Seconds until the token expires, at most auth.token_ttl (the default).',
        }),
      ),
    ),
    user: Type.Optional(
      Type.Unknown({ description: 'Service accounts only: the name of the user whom the token is for.' }),
    ),
    impersonate_user: Type.Optional(
      Type.Unknown({ description: 'Service accounts only: a nickname of the user, if user is not given.' }),
    ),
    nickname_origin: Type.Optional(Type.Unknown({ description: 'The chat system of the nickname.' })),
  }),
  { example: { ttl: 3600 } },
)
export type TokenRequest = Static<typeof TokenRequest>

/** The record of a token with its value, which no other answer shows (contract 01, 1.2). */
export const IssuedToken = record(
  'Token',
  Type.Object({
    id: Type.String({ description: 'Id of the record; it is no credential.' }),
    user: Type.String(),
    token: Type.String({ description: 'The value to send in X-Auth-Token. No other answer shows it.' }),
    expiry: Type.String({ format: 'date-time' }),
    metadata: Type.FreeForm(),
    service: Type.Boolean(),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f509',
      user: 'ada',
      token: '0123456789abcdef0123456789abcdef',
      expiry: '2030-01-31T12:00:00.000000Z',
      metadata: {},
      service: false,
    },
  },
)
export type IssuedToken = Static<typeof IssuedToken>

export const TokenValidationRequest = record(
  'TokenValidationRequest',
  Type.Object({ token: Type.Optional(Type.Nullable(Type.String({ description: 'The value of the token.' }))) }),
  { example: { token: '0123456789abcdef0123456789abcdef' } },
)

export const TokenValidation = record('TokenValidation', Type.Object({ valid: Type.Boolean() }), {
  example: { valid: true },
})

export const RevokedTokens = record(
  'RevokedTokens',
  Type.Object({ revoked: Type.Integer({ description: 'Number of tokens.' }) }),
  { example: { revoked: 2 } },
)

/** Contract 01, 1.11. */
export const SsoState = record('SsoState', Type.Object({ enabled: Type.Boolean() }), { example: { enabled: false } })

/** `GET /user` (contract 01, 1.10). */
export const CurrentUser = record(
  'CurrentUser',
  Type.Object({
    username: Type.String(),
    authentication: Type.Object({
      method: Type.Nullable(
        Type.Unsafe<'authentication token' | 'API key'>({
          type: 'string',
          enum: ['authentication token', 'API key'],
          description: 'Null: any other way, or authentication is off.',
        }),
      ),
      location: Type.Nullable(
        Type.Unsafe<'header' | 'query' | 'cookie'>({ type: 'string', enum: ['header', 'query', 'cookie'] }),
      ),
      token_expire: Type.Optional(timestamp('Tokens only; without a fraction of a second.')),
    }),
    rbac: Type.Object({
      enabled: Type.Boolean({ description: 'Whether roles grant permissions.' }),
      roles: Type.Array(Type.String(), { description: 'Names of the roles.' }),
      is_admin: Type.Boolean(),
    }),
  }),
  {
    example: {
      username: 'ada',
      authentication: {
        method: 'authentication token',
        location: 'header',
        token_expire: '2030-01-31T12:00:00Z',
      },
      rbac: { enabled: true, roles: ['admin'], is_admin: true },
    },
  },
)
export type CurrentUser = Static<typeof CurrentUser>

const nicknames = Type.MapOf(Type.String({ minLength: 1, maxLength: 256 }), {
  maxProperties: 100,
  description: 'Chat system → nickname there. A service account can ask for a token of a nickname.',
})

const isService = Type.Boolean({
  description: 'The user can ask for tokens of other users, except of administrators.',
})

const isDisabled = Type.Boolean({ description: 'Logins, tokens and API keys of the user are refused.' })

/** Without a type: a message about a schema repeats the value that breaks it. */
const password = Type.Unknown({ description: 'Text of at most 1024 bytes.' })

const userExample = {
  name: 'ada',
  is_service: false,
  is_disabled: false,
  nicknames: { slack: 'ada.l' },
  created_at: '2030-01-31T12:00:00.000000Z',
  has_password: true,
}

/** A user as clients see it. */
export const UserRecord = record(
  'User',
  Type.Object({
    name: Type.String(),
    is_service: isService,
    is_disabled: isDisabled,
    nicknames,
    created_at: Type.Nullable(timestamp('Null: an account without a login so far.')),
    has_password: Type.Nullable(Type.Boolean({ description: 'Null: the backend does not keep passwords.' })),
  }),
  { example: userExample },
)
export type UserRecord = Static<typeof UserRecord>

/** Body of the creation of a user. */
export const NewUserRequest = record(
  'NewUser',
  Type.Object(
    {
      name: Type.String(),
      password: Type.Optional(password),
      is_service: Type.Optional(isService),
      nicknames: Type.Optional(nicknames),
    },
    { additionalProperties: false },
  ),
  { example: { name: 'ada', password: 'correct horse battery staple' } },
)
export type NewUserRequest = Static<typeof NewUserRequest>

/** Body of the update of a user: what is absent stays. */
export const UserRequest = record(
  'UserRequest',
  Type.Object(
    {
      name: Type.Optional(Type.String({ description: 'The name in the path: names cannot change.' })),
      password: Type.Optional(password),
      current_password: Type.Optional(
        Type.Unknown({ description: 'Required when users who are no administrators change their own password.' }),
      ),
      is_service: Type.Optional(isService),
      is_disabled: Type.Optional(isDisabled),
      nicknames: Type.Optional(nicknames),
      created_at: Type.Optional(Type.Nullable(Type.String({ description: 'Ignored.' }))),
      has_password: Type.Optional(Type.Nullable(Type.Boolean({ description: 'Ignored.' }))),
    },
    { additionalProperties: false },
  ),
  { example: { is_disabled: true } },
)
export type UserRequest = Static<typeof UserRequest>

const scopeExample = { permission_types: ['action_execute'], resource_uid: 'action:core:local' }

/** A part of what the owner of an API key has permission for. */
export const ApiKeyScope = record(
  'ApiKeyScope',
  Type.Object(
    {
      permission_types: Type.Array(Type.String(), { minItems: 1, maxItems: 500 }),
      resource_uid: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 1024,
          description: 'The one resource, such as `webhook:deploy` or `action:core:local`. Absent: every resource.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  { example: scopeExample },
)
export type ApiKeyScope = Static<typeof ApiKeyScope>

const keyMetadata = Type.FreeForm({ description: 'For people: the purpose of the key.' })

/** What every answer about an API key contains. */
const keyProperties = {
  id: Type.String(),
  uid: Type.String({ description: '`api_key:` and the digest; masked with it.' }),
  user: Type.String({ description: 'The user whom requests with this key act for.' }),
  metadata: keyMetadata,
  created_at: Type.String({ format: 'date-time' }),
  enabled: Type.Boolean(),
  expires_at: Type.Optional(timestamp('Absent: it does not expire.')),
  scopes: Type.Optional(Type.Array(ApiKeyScope, { description: 'Absent: every permission of the owner.' })),
  last_used_at: Type.Optional(timestamp('Absent: never used.')),
}

const keyExample = {
  id: '67a1f0c2e4b0a1d2c3e4f50a',
  uid: '********',
  user: 'ada',
  metadata: { used_by: 'deployment' },
  created_at: '2030-01-31T12:00:00.000000Z',
  enabled: true,
}

export const ApiKeyRecord = record(
  'ApiKey',
  Type.Object({
    ...keyProperties,
    key_hash: Type.String({ description: 'Digest of the key; masked unless an administrator asks for it.' }),
  }),
  { example: { ...keyExample, key_hash: '********', scopes: [scopeExample] } },
)
export type ApiKeyRecord = Static<typeof ApiKeyRecord>

/** The answer to the creation of an API key. */
export const NewApiKeyRecord = record(
  'NewApiKey',
  Type.Object({
    ...keyProperties,
    key: Type.Nullable(
      Type.String({
        description: 'The value to send in Svc-Api-Key. No other answer shows it. Null if key_hash was given.',
      }),
    ),
  }),
  { example: { ...keyExample, key: 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY' } },
)
export type NewApiKeyRecord = Static<typeof NewApiKeyRecord>

/** Body of the creation and of the update of an API key. What an update leaves out stays. */
export const ApiKeyRequest = record(
  'ApiKeyRequest',
  Type.Object(
    {
      id: Type.Optional(Type.String({ description: 'Id of a key from another server. Absent: a new id.' })),
      user: Type.Optional(
        Type.Nullable(
          Type.String({
            description: 'The owner. Default: the caller. Any other user needs the permission user_impersonate.',
          }),
        ),
      ),
      key_hash: Type.Optional(
        Type.Nullable(
          Type.String({ description: 'Digest of an existing key. Absent: svc makes a key. It cannot change.' }),
        ),
      ),
      metadata: Type.Optional(keyMetadata),
      enabled: Type.Optional(Type.Boolean()),
      expires_at: Type.Optional(
        Type.Nullable(Type.String({ description: 'UTC time. Null or absent: it does not expire.' })),
      ),
      scopes: Type.Optional(
        Type.Nullable(
          Type.Array(ApiKeyScope, {
            minItems: 1,
            maxItems: 100,
            description: 'Limits of the key. Null or absent: every permission of the owner.',
          }),
        ),
      ),
      uid: Type.Optional(Type.String({ description: 'Ignored.' })),
      created_at: Type.Optional(Type.String({ description: 'Ignored.' })),
      last_used_at: Type.Optional(Type.Nullable(Type.String({ description: 'Ignored.' }))),
    },
    { additionalProperties: false },
  ),
  { example: { metadata: { used_by: 'deployment' }, scopes: [scopeExample] } },
)
export type ApiKeyRequest = Static<typeof ApiKeyRequest>
