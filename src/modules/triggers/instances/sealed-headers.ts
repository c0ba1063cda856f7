/**
 * Credential headers of webhook requests at rest: the payload of the instance has masks in their place, and beside it the
 * values encrypted, for criteria, templates and a replay. Clients never get them.
 */
import type { Encryption } from '../../../core/encryption.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { CredentialHeaders, OpenedInstance, TriggerInstance } from '../types.ts'

export interface SealedHeaders {
  /** Text for the row of the instance; plain JSON while encryption is off. @throws CRYPTO_KEY_MISSING, STORAGE_FAILED */
  seal(instanceId: string, headers: CredentialHeaders): string
  /**
   * The instance with the values in its payload.
   *
   * @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID: with masks in their place rules would decide otherwise
   */
  open(instance: TriggerInstance): OpenedInstance
}

export function createSealedHeaders(encryption: Pick<Encryption, 'enabled' | 'encrypt' | 'decrypt'>): SealedHeaders {
  function read({ id, sealed_headers: sealed }: TriggerInstance): CredentialHeaders | undefined {
    if (sealed === undefined) return undefined
    // `seal` has written it. Cipher text has no braces.
    const text = sealed.startsWith('{') ? sealed : encryption.decrypt(sealed, contextOf(id), subjectOf(id))
    return readJson(text) as unknown as CredentialHeaders
  }

  return {
    seal(id, headers) {
      const text = writeJson(headers)
      return encryption.enabled ? encryption.encrypt(text, contextOf(id), subjectOf(id)) : text
    },
    open(instance) {
      const headers = read(instance)
      const { payload } = instance
      if (headers === undefined || !isObject(payload)) return { ...instance, secrets: [], credentials: undefined }
      const filled = { ...payload }
      for (const name of ['headers', 'headers_lower'] as const) {
        const masked = payload[name]
        if (isObject(masked)) filled[name] = { ...masked, ...headers[name] }
      }
      const secrets = Object.values(headers.headers).flatMap(secretsIn)
      return { ...instance, payload: filled, secrets, credentials: headers }
    },
  }
}

/** A header, the credential after its scheme, and what `Basic` encodes: rules pass on any of them. */
function secretsIn(header: string): string[] {
  const [, scheme = '', credential] = /^(\S+)\s+(\S.*)$/.exec(header) ?? []
  if (credential === undefined) return [header]
  if (scheme.toLowerCase() !== 'basic') return [header, credential]
  const decoded = Buffer.from(credential, 'base64').toString()
  return [header, credential, decoded, decoded.slice(decoded.indexOf(':') + 1)]
}

const contextOf = (instanceId: string): string => `trigger_instance:${instanceId}`
const subjectOf = (instanceId: string): string => `the credential headers of trigger instance ${instanceId}`
