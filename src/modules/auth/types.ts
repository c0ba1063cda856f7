/** A token that was accepted. */
export interface VerifiedToken {
  /** 24 hexadecimal characters: the record, never the token. */
  id: string
  user: string
  /** Wire timestamp. */
  expiry: string
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
