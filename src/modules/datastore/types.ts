export type KeyScope = 'svckv.system' | 'svckv.user'

/** What names one item. */
export interface ItemKey {
  scope: KeyScope
  /** Of the user scope; else empty. */
  user: string
  name: string
}

export interface KeyValuePair extends ItemKey {
  id: string
  description: string | null
  /** Upper-case hex cipher text when `encrypted`. */
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp: string | null
}

/** As clients see it; what is null is left out. */
export interface KeyValuePairRecord {
  id: string
  uid: string
  name: string
  scope: KeyScope
  user?: string
  description?: string
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp?: string
}
