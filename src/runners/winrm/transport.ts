/** Sends messages to the WS-Management service of a Windows host, and logs in. */
import { HttpProblem, shownUrl } from '../http/exchange.ts'
import { createKeptConnection, type KeptAnswer, type KeptConnection } from '../http/kept-connection.ts'
import { authenticateMessage, negotiateMessage, readChallenge } from './ntlm.ts'

export interface WindowsHost {
  /** Of the service, as `https://host:5986/wsman`. */
  url: URL
  login: 'ntlm' | 'basic'
  username: string
  password: string
  verifiesCertificates: boolean
}

/** Why the host did not do what svc asked for; a sentence without its final point. */
export class WinrmProblem extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WinrmProblem'
  }
}

export interface Transport {
  /** @throws WinrmProblem, HttpProblem; the reason of the signal when it is aborted */
  post(message: string, signal: AbortSignal): Promise<{ statusCode: number; body: Buffer }>
  /** Drops the connection; the next message opens another one, and logs in. */
  reset(): Promise<void>
}

/** More than one envelope that svc accepts, and than a host sends (500 KiB). */
const MAX_ANSWER_BYTES = 1024 * 1024
const CONTENT_TYPE = 'application/soap+xml;charset=UTF-8'

export function createTransport(host: WindowsHost): Transport {
  let connection: KeptConnection | undefined
  let loggedIn: Record<string, string> | undefined

  async function send(body: string, headers: Record<string, string>, signal: AbortSignal): Promise<KeptAnswer> {
    connection ??= await createKeptConnection(host.url, {
      verifiesCertificates: host.verifiesCertificates,
      maxBodyBytes: MAX_ANSWER_BYTES,
    })
    return await connection.post({ headers: { 'content-type': CONTENT_TYPE, ...headers }, body }, signal)
  }

  /** The login of NTLM belongs to the connection: the message that proves the password carries the first request. */
  async function sendWithNtlm(body: string, signal: AbortSignal): Promise<KeptAnswer> {
    const offer = await send('', {}, signal)
    if (offer.statusCode !== 401) return offer
    const scheme = ntlmScheme(offer)
    const negotiate = `${scheme} ${negotiateMessage().toString('base64')}`
    const answer = await send('', { authorization: negotiate }, signal)
    if (answer.statusCode !== 401) return answer
    const token = offeredBy(answer).find(({ name, token }) => name === scheme.toLowerCase() && token !== '')?.token
    const challenge = readChallenge(Buffer.from(token ?? '', 'base64'))
    if (challenge === undefined) {
      throw new WinrmProblem(`${shownUrl(host.url)} did not answer the NTLM login with a challenge of NTLMv2`)
    }
    const proof = authenticateMessage(host, challenge).toString('base64')
    return await send(body, { authorization: `${scheme} ${proof}` }, signal)
  }

  function ntlmScheme(answer: KeptAnswer): string {
    const names = offeredBy(answer).map(({ name }) => name)
    if (names.includes('negotiate')) return 'Negotiate'
    if (names.includes('ntlm')) return 'NTLM'
    const others = names.length === 0 ? 'no login' : names.join(', ').slice(0, 100)
    const hint = names.includes('basic') ? '; set "transport" to basic, or enable Negotiate on the host' : ''
    throw new WinrmProblem(`${shownUrl(host.url)} offers ${others} instead of NTLM${hint}`)
  }

  function refused(answer: KeptAnswer): WinrmProblem {
    const names = offeredBy(answer).map(({ name }) => name)
    if (host.login === 'basic' && names.length > 0 && !names.includes('basic')) {
      return new WinrmProblem(
        `${shownUrl(host.url)} does not accept basic logins; set "transport" to ntlm, or enable Basic on the host`,
      )
    }
    return new WinrmProblem(`${shownUrl(host.url)} refused the user name or the password (HTTP 401)`)
  }

  return {
    async post(message, signal) {
      let answer: KeptAnswer
      if (host.login === 'basic') {
        const credentials = Buffer.from(`${host.username}:${host.password}`).toString('base64')
        answer = await send(message, { authorization: `Basic ${credentials}` }, signal)
      } else {
        answer = loggedIn === undefined ? await sendWithNtlm(message, signal) : await send(message, loggedIn, signal)
        // The connection was replaced: the host forgot its login, and has not read the message.
        if (answer.statusCode === 401 && loggedIn !== undefined) answer = await sendWithNtlm(message, signal)
      }
      if (answer.statusCode === 401) throw refused(answer)
      loggedIn = {}
      return answer
    },
    async reset() {
      const closed = connection
      connection = undefined
      loggedIn = undefined
      await closed?.close()
    },
  }
}

/** The logins that an answer offers, in lower case, with their data. */
function offeredBy(answer: KeptAnswer): { name: string; token: string }[] {
  return answer
    .header('www-authenticate')
    .flatMap((line) => line.slice(0, 16_384).split(','))
    .flatMap((offer) => {
      const [, name, token = ''] = /^\s*([A-Za-z]+)(?:\s+([A-Za-z0-9+/=]*))?/.exec(offer) ?? []
      return name === undefined || /^\s*[A-Za-z]+\s*=/.test(offer) ? [] : [{ name: name.toLowerCase(), token }]
    })
}

export { HttpProblem }
