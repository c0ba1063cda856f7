/** A user as clients see it. */
export interface UserRecord {
  name: string
  /** May ask for tokens of other users. */
  is_service: boolean
  is_disabled: boolean
  /** By chat system. */
  nicknames: Record<string, string>
  /** Wire timestamp; null: there is an account of this name, which nobody has used yet. */
  created_at: string | null
  /** Null: the backend does not keep the passwords. */
  has_password: boolean | null
}

/** `GET /user` (contract 01, 1.10). */
export interface CurrentUser {
  username: string
  authentication: {
    /** Null: authentication is off, or the control socket proves it. */
    method: 'authentication token' | 'API key' | null
    location: 'header' | 'query' | 'cookie' | null
    /** Wire timestamp without a fraction, of tokens. */
    token_expire?: string
  }
  rbac: {
    /** Whether roles decide who may do what. */
    enabled: boolean
    /** Names. */
    roles: string[]
    is_admin: boolean
  }
}

/** A part of what the owner of an API key may do. */
export interface ApiKeyScope {
  permission_types: string[]
  /** Absent: whatever resource. */
  resource_uid?: string
}

/** What every answer says of an API key. */
interface ApiKeyFacts {
  id: string
  /** `api_key:` and the digest; masked with it. */
  uid: string
  /** Whom requests with it act for. */
  user: string
  metadata: Record<string, unknown>
  /** Wire timestamp. */
  created_at: string
  enabled: boolean
  /** Wire timestamp; absent: never. */
  expires_at?: string
  /** Absent: whatever its owner may do. */
  scopes?: ApiKeyScope[]
  /** Wire timestamp; absent: not used yet. */
  last_used_at?: string
}

export interface ApiKeyRecord extends ApiKeyFacts {
  key_hash: string
}

/** The answer to the creation of an API key. */
export interface NewApiKeyRecord extends ApiKeyFacts {
  /** The value, which is shown only now; null when its digest was given. */
  key: string | null
}

/** Body of the creation and of the update of an API key. What an update leaves out stays as it is. */
export interface ApiKeyRequest {
  id?: string
  user?: string | null
  key_hash?: string | null
  metadata?: Record<string, unknown>
  enabled?: boolean
  expires_at?: string | null
  scopes?: ApiKeyScope[] | null
}

/** Body of the creation of a user. */
export interface NewUserRequest {
  name: string
  /** Unchecked. */
  password?: unknown
  is_service?: boolean
  nicknames?: Record<string, string>
}

/** Body of the update of a user. What is left out stays as it is. */
export interface UserRequest {
  name?: string
  /** Unchecked. */
  password?: unknown
  /** Needed to change the own password, except by administrators; unchecked. */
  current_password?: unknown
  is_service?: boolean
  is_disabled?: boolean
  nicknames?: Record<string, string>
}

/** The record of a token with its value, which is shown only now (contract 01, 1.2). */
export interface IssuedToken {
  id: string
  user: string
  token: string
  /** Wire timestamp. */
  expiry: string
  metadata: Record<string, unknown>
  service: boolean
}
