/**
 * GET requests of the server itself, to allowed addresses only, as those of http-request actions; through the proxies of
 * its environment.
 */
import { version } from '../../core/version.ts'
import { createAddresses } from './addresses.ts'
import { environmentProxy } from '../../lib/network/index.ts'
import { exchange, HttpProblem, type HttpAnswer, type RequestProxy } from './exchange.ts'

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

/**
 * @param allowedPrivateNetworks `http_runner.allowed_private_networks`
 * @param env the server's: `http_proxy`, `https_proxy`, `no_proxy`
 */
export function createHttpGet(allowedPrivateNetworks: readonly string[], env: NodeJS.ProcessEnv): HttpGet {
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
      proxyFor: (target: URL) => proxyOf(target, env),
      checkUrl({ protocol }: URL) {
        if (protocol === 'https:' || (protocol === 'http:' && allowsHttp)) return
        throw new HttpProblem(`The URL is not one of ${allowsHttp ? 'http or ' : ''}https`)
      },
    }
    return exchange(request, { addresses, maxBodyBytes: maxBytes, maxBodyName: 'the limit', signal })
  }
}

export function proxyOf(target: URL, env: NodeJS.ProcessEnv): RequestProxy | undefined {
  const found = environmentProxy(target, env)
  if (found === undefined) return undefined
  const { variable, url } = found
  if (url === undefined) throw new HttpProblem(`${variable} of the server is not the address of an HTTP proxy`)
  return { url, isTrusted: true }
}
