/** The user that a reverse proxy has authenticated (proxy mode; contract 01, 1.3). */
import type { IncomingMessage } from 'node:http'
import { MAX_USER_CHARACTERS, isUserName } from '../../core/account-rules.ts'

/** In order of precedence. The reverse proxy must set or remove all of them, unless the configuration names one. */
const userHeaders = ['remote-user', 'x-remote-user', 'x-forwarded-user'] as const

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface RemoteUser {
  user: string
}

/** Why there is no user, for the audit log. */
export interface NoRemoteUser {
  problem: string
  /** The value of the header; absent without one. */
  given?: string
}

/**
 * The name in the first of the headers that is there, exactly as it is spelled. One that is there and cannot be a name is
 * not passed over: the proxy has said that this is nobody, or somebody else has written it. Says nothing about whether
 * the peer may be believed.
 *
 * @param only the name of the header that counts (`auth.remote_user_header`); empty: all of them
 */
export function readRemoteUser(
  request: Pick<IncomingMessage, 'headersDistinct'>,
  only = '',
): RemoteUser | NoRemoteUser {
  for (const header of only === '' ? userHeaders : [only.toLowerCase()]) {
    const values = request.headersDistinct[header]
    const [value] = values ?? []
    if (values === undefined || value === undefined) continue
    if (values.length > 1) return { problem: `The header ${header} is given more than once`, given: values.join(', ') }
    const user = decode(value)
    if (user === undefined) return { problem: `The header ${header} is not UTF-8`, given: value }
    if (user === '') return { problem: `The header ${header} is empty`, given: '' }
    // Two headers that something on the way has joined look like this.
    if (user.includes(',')) return { problem: `The header ${header} holds a comma`, given: user }
    if (!isUserName(user)) {
      return {
        problem: `The header ${header} has more than ${MAX_USER_CHARACTERS} characters or unprintable ones`,
        given: user,
      }
    }
    return { user }
  }
  return { problem: 'No remote user provided' }
}

/** Node.js reads headers as Latin-1, web servers write names as UTF-8. */
function decode(value: string): string | undefined {
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return undefined
  }
}
