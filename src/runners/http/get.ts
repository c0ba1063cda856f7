/** GET requests of the server itself, to allowed addresses only, as those of http-request actions. */
import { version } from '../../core/version.ts'
import { createAddresses } from './addresses.ts'
import { exchange, HttpProblem, type HttpAnswer } from './exchange.ts'

export interface GetOptions {
  maxBytes: number
  signal: AbortSignal
  /** Also over HTTP. Default: HTTPS only. */
  allowsHttp?: boolean
  /** Default: the answer that redirects is returned. */
  followsRedirects?: boolean
  /** Names in lower case. Those that may be credentials do not go to another origin. */
  headers?: ReadonlyMap<string, string>
}

/**
 * Sends one GET, without credentials except those in `headers`.
 *
 * @throws HttpProblem, also for a body of more than `maxBytes`; the reason of the signal when it is aborted
 */
export type HttpGet = (
  url: URL,
  options: GetOptions,
) => Promise<Pick<HttpAnswer, 'statusCode' | 'body'> & Partial<Pick<HttpAnswer, 'headers'>>>

/** @param allowedPrivateNetworks `http_runner.allowed_private_networks` */
export function createHttpGet(allowedPrivateNetworks: readonly string[]): HttpGet {
  const addresses = createAddresses(allowedPrivateNetworks)
  return async (url, { maxBytes, signal, allowsHttp = false, followsRedirects = false, headers: given = [] }) => {
    const headers = new Map([['user-agent', `svc/${version}`], ['accept-encoding', 'identity'], ...given])
    const request = {
      method: 'GET',
      url,
      headers,
      body: undefined,
      followsRedirects,
      verifiesCertificates: true,
      proxies: { http: undefined, https: undefined },
      checkUrl({ protocol }: URL) {
        if (protocol === 'https:' || (protocol === 'http:' && allowsHttp)) return
        throw new HttpProblem(`The URL is not one of ${allowsHttp ? 'http or ' : ''}https`)
      },
    }
    return exchange(request, { addresses, maxBodyBytes: maxBytes, maxBodyName: 'the limit', signal })
  }
}
