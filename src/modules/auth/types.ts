import type { Scope } from '../../http/route.ts'

/** A token that was accepted. */
export interface VerifiedToken {
  /** 24 hexadecimal characters: the record, never the token. */
  id: string
  user: string
  /** Wire timestamp. */
  expiry: string
  /** Of an action that runs, for as long as it does. */
  isService: boolean
  /** Of the API key that has started the action; the same object for every request of a remembered token. */
  scopes: readonly Scope[] | undefined
}

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
