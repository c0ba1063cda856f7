/** Which headers of a request can contain a credential. */
import { MASK, isObject } from '../../../lib/schema/index.ts'
import type { CredentialHeaders } from '../types.ts'

/**
 * Names, in lower case, of headers that prove who the sender is: `authorization`, `x-api-key`, `x-hub-token`. A name that
 * only contains such a word, such as `token-count`, is none.
 */
const credentialName =
  /(?:^|[-_])(?:auth|authorization|token|secret|password|passwd|credentials?|cookie|jwt|apikey|(?:api|auth|access|account|private|secret|shared|subscription|functions)[-_]?key)$/

/** @param name in lower case */
export const isCredentialHeader = (name: string): boolean => credentialName.test(name)

/** The payload of a webhook of another server, with masks for its credentials. @returns `credentials`: their values; undefined: there are none */
export function maskHeaders(payload: Record<string, unknown>): {
  payload: Record<string, unknown>
  credentials: CredentialHeaders | undefined
} {
  const credentials: CredentialHeaders = { headers: {}, headers_lower: {} }
  const masked = { ...payload }
  for (const attribute of ['headers', 'headers_lower'] as const) {
    const headers = payload[attribute]
    if (!isObject(headers)) continue
    const shown = { ...headers }
    for (const [name, value] of Object.entries(headers)) {
      if (typeof value !== 'string' || value === '' || !isCredentialHeader(name.toLowerCase())) continue
      credentials[attribute][name] = value
      shown[name] = MASK
    }
    masked[attribute] = shown
  }
  const hasSome = Object.values(credentials).some((headers) => Object.keys(headers as object).length > 0)
  return { payload: masked, credentials: hasSome ? credentials : undefined }
}
