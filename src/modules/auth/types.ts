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
