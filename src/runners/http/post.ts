/** POST requests of the server itself to addresses that its administrator has written: private networks included. */
import { version } from '../../core/version.ts'
import { createAddresses } from './addresses.ts'
import { exchange, HttpProblem, type HttpAnswer } from './exchange.ts'
import { proxyOf } from './get.ts'

const MAX_ANSWER_BYTES = 65_536
/** Whoever writes the address may reach what the server can reach. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']

/**
 * Sends one POST; follows no redirect.
 *
 * @param headers names in lower case
 * @throws HttpProblem, also for an answer of more than 64 KiB; the reason of the signal when it is aborted
 */
export type HttpPost = (
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<Pick<HttpAnswer, 'statusCode' | 'headers' | 'body'>>

/** @param env the server's: `http_proxy`, `https_proxy`, `no_proxy` */
export function createHttpPost(env: NodeJS.ProcessEnv): HttpPost {
  const addresses = createAddresses(EVERYWHERE)
  return async (target, body, headers, signal) => {
    const { username, password } = target
    const url = new URL(target)
    url.username = url.password = ''
    const authorization =
      username === ''
        ? {}
        : {
            authorization: `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`,
          }
    const request = {
      method: 'POST',
      url,
      headers: new Map(
        Object.entries({ 'user-agent': `svc/${version}`, 'accept-encoding': 'identity', ...authorization, ...headers }),
      ),
      body,
      followsRedirects: false,
      verifiesCertificates: true,
      proxyFor: (to: URL) => proxyOf(to, env),
      checkUrl({ protocol }: URL) {
        if (protocol !== 'https:' && protocol !== 'http:') throw new HttpProblem('The URL is not one of http or https')
      },
    }
    return exchange(request, { addresses, maxBodyBytes: MAX_ANSWER_BYTES, maxBodyName: 'the limit', signal })
  }
}
