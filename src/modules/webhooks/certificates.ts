/** The certificates with which Amazon SNS signs, fetched from where its messages say and kept for an hour. */
import { X509Certificate } from 'node:crypto'
import { Lru } from '../../lib/cache/index.ts'
import { signatureCertificateMissing } from '../../core/errors.ts'
import type { FetchAmazon } from './amazon.ts'

export interface Certificates {
  /**
   * @param url a checked address of a certificate
   * @throws SIGNATURE_UNCHECKABLE if it cannot be fetched, or was not a moment ago
   */
  at(url: URL): Promise<X509Certificate>
}

const MAX_CERTIFICATES = 20
const KEPT_MS = 3_600_000
/** Made-up addresses must not push out certificates, so failures are kept apart. */
const MAX_FAILURES = 100
const FAILURE_KEPT_MS = 30_000
const MIN_KEY_BITS = 2048

/** @param now milliseconds on a clock that never goes back */
export function createCertificates(fetch: FetchAmazon, now: () => number): Certificates {
  const known = new Lru<string, { certificate: X509Certificate; until: number }>(MAX_CERTIFICATES)
  const failures = new Map<string, { cause: unknown; until: number }>()
  const pending = new Map<string, Promise<X509Certificate>>()

  async function load(url: URL): Promise<X509Certificate> {
    try {
      const certificate = certificateIn(await fetch(url))
      known.set(url.href, { certificate, until: now() + KEPT_MS })
      return certificate
    } catch (cause) {
      failures.set(url.href, { cause, until: now() + FAILURE_KEPT_MS })
      throw signatureCertificateMissing(cause)
    } finally {
      pending.delete(url.href)
    }
  }

  /** @throws SIGNATURE_UNCHECKABLE */
  function refuseAfterFailure(url: string): void {
    const time = now()
    for (const [other, { until }] of failures) if (until <= time) failures.delete(other)
    const failure = failures.get(url)
    if (failure !== undefined) throw signatureCertificateMissing(failure.cause)
    if (failures.size + pending.size >= MAX_FAILURES) {
      throw signatureCertificateMissing(new Error('too many certificates could not be fetched in the last 30 seconds'))
    }
  }

  return {
    async at(url) {
      const found = known.get(url.href)
      if (found !== undefined && now() < found.until) return found.certificate
      const begun = pending.get(url.href)
      if (begun !== undefined) return begun
      refuseAfterFailure(url.href)
      const loading = load(url)
      pending.set(url.href, loading)
      return loading
    },
  }
}

/** @throws Error if there is none that can be used */
function certificateIn(pem: Buffer): X509Certificate {
  const certificate = new X509Certificate(pem)
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey
  if (type !== 'rsa' || (details?.modulusLength ?? 0) < MIN_KEY_BITS) {
    throw new Error(`the certificate has no RSA key of at least ${MIN_KEY_BITS} bits`)
  }
  return certificate
}
