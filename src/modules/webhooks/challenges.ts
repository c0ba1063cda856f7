/** Requests by which senders verify an address before they send events: answered by configuration, never dispatched. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { signatureInvalid, signatureUncheckable } from '../../core/errors.ts'
import { Reply } from '../../http/index.ts'
import type { ChallengeParameters } from '../triggers/types.ts'
import type { SentQuery } from './types.ts'

/** Characters of a text that is given back. */
const MAX_CHALLENGE_LENGTH = 2000

/**
 * The answer to a GET; undefined: it is no such request.
 *
 * @param challenges of the triggers of one hook
 * @throws SIGNATURE_INVALID for a wrong verify token, SIGNATURE_UNCHECKABLE
 */
export function answerToGet(
  challenges: readonly Challenge[],
  query: SentQuery,
  oktaHeader: string | string[] | undefined,
): Reply | undefined {
  const ofMeta = challenges.filter(({ scheme }) => scheme === 'meta')
  const { 'hub.mode': mode, 'hub.verify_token': token, 'hub.challenge': text } = query
  if (ofMeta.length > 0 && mode === 'subscribe' && token !== undefined && text !== undefined) {
    if (!ofMeta.some((challenge) => isToken(challenge, token))) throw signatureInvalid()
    return plainText(text)
  }
  const isOkta = challenges.some(({ scheme }) => scheme === 'okta') && typeof oktaHeader === 'string'
  return isOkta && oktaHeader.length <= MAX_CHALLENGE_LENGTH ? new Reply({ verification: oktaHeader }) : undefined
}

/** The answer to a POST with `validationToken`, as Microsoft Graph sends it; undefined: it is no such request. */
export function answerToPost(challenges: readonly Challenge[], { validationToken }: SentQuery): Reply | undefined {
  if (validationToken === undefined || !challenges.some(({ scheme }) => scheme === 'graph')) return undefined
  return plainText(validationToken)
}

export interface Challenge extends ChallengeParameters {
  /** Renders the token. */
  readonly readToken: () => string
}

function isToken({ readToken }: Challenge, given: string): boolean {
  let token: string
  try {
    token = readToken()
  } catch (error) {
    throw signatureUncheckable(error)
  }
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(token), digest(given))
}

/** Text of the client: no browser may take it for a page. */
function plainText(text: string): Reply | undefined {
  if (text.length > MAX_CHALLENGE_LENGTH) return undefined
  const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' }
  return new Reply(Buffer.from(text), { status: 200, headers })
}
