/** Addresses of Amazon SNS in its messages, and requests to them. A stranger may have written the message. */
import type { HttpGet } from '../../runners/index.ts'

/**
 * The name of a region follows, such as `us-east-1`. Not any label: `sns.s3.amazonaws.com` is storage that somebody who
 * called it `sns` fills.
 */
const HOST = String.raw`sns\.[a-z]{2}(?:-[a-z]+)+-\d{1,2}\.amazonaws\.com(?:\.cn)?(?::443)?`
const certificateAddress = new RegExp(`^https://${HOST}/[A-Za-z0-9_-]{1,200}\\.pem$`)
const confirmationAddress = new RegExp(`^https://${HOST}/\\?[!-~]{1,2000}$`)

/** Undefined: no address of a certificate of Amazon SNS. */
export const certificateUrl = (text: string): URL | undefined =>
  certificateAddress.test(text) ? new URL(text) : undefined

/** Undefined: no address at which Amazon SNS confirms a subscription. */
export const confirmationUrl = (text: string): URL | undefined =>
  confirmationAddress.test(text) ? new URL(text) : undefined

/** The body of a response with status 200. @throws Error for every other outcome */
export type FetchAmazon = (url: URL) => Promise<Buffer>

const MAX_BYTES = 65_536
const MAX_AT_ONCE = 4
const MAX_MS = 5_000

/**
 * Limits requests: their number at a time, their length and their time.
 *
 * @param stopped ends all of them
 * @param timeLimit of one request
 */
export function createFetchAmazon(
  get: HttpGet,
  stopped: AbortSignal,
  timeLimit: () => AbortSignal = () => AbortSignal.timeout(MAX_MS),
): FetchAmazon {
  let running = 0
  return async (url) => {
    if (running >= MAX_AT_ONCE) throw new Error(`${MAX_AT_ONCE} requests to Amazon SNS have no answer yet`)
    running += 1
    try {
      const signal = AbortSignal.any([stopped, timeLimit()])
      const { statusCode, body } = await get(url, { maxBytes: MAX_BYTES, signal })
      if (statusCode !== 200) throw new Error(`"${url.origin}${url.pathname}" answered ${statusCode}`)
      return body
    } finally {
      running -= 1
    }
  }
}
