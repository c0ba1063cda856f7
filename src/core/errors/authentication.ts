/** Errors of logins, tokens, API keys and users. */
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

/** @param advice about what the request carries instead: a sentence after a blank */
export const credentialsMissing = (advice = ''): AppError =>
  new AppError('CREDENTIALS_MISSING', `Unauthorized - One of Token or API key required.${advice}`)

export const twoCredentials = (): AppError =>
  new AppError('TWO_CREDENTIALS', 'Unauthorized - Only one of Token or API key expected.')

export const tokenInvalid = (): AppError => new AppError('TOKEN_INVALID', 'Unauthorized - Invalid token.')

export const tokenExpired = (): AppError => new AppError('TOKEN_EXPIRED', 'Unauthorized - Token has expired.')

export const tokenUserDisabled = (): AppError =>
  new AppError('TOKEN_USER_DISABLED', 'Unauthorized - The user of the token is disabled.')

/** For session cookies: a browser has one for all its pages. */
export const userChanged = (): AppError =>
  new AppError('USER_CHANGED', 'Unauthorized - Another user has logged in with this browser; reload the page.')

export const apiKeyUnknown = (keyHash: string): AppError =>
  new AppError('API_KEY_UNKNOWN', `Unauthorized - ApiKey with key_hash=${keyHash} not found.`)

export const apiKeyDisabled = (): AppError => new AppError('API_KEY_DISABLED', 'Unauthorized - API key is disabled.')

export const apiKeyExpired = (): AppError => new AppError('API_KEY_EXPIRED', 'Unauthorized - API key has expired.')

export const apiKeyUserDisabled = (): AppError =>
  new AppError('API_KEY_USER_DISABLED', 'Unauthorized - The user of the API key is disabled.')

/** @param id undefined: the given value may be a key, and is not repeated */
export const apiKeyNotFound = (id: string | undefined): AppError =>
  new AppError(
    'API_KEY_NOT_FOUND',
    `ApiKey matching ${id === undefined ? 'the given value' : `"${id}"`} as id or key not found.`,
  )

/** One answer for every reason, so that it does not reveal which users exist; the audit log has the reason. */
export const loginRefused = (): AppError => new AppError('LOGIN_REFUSED', 'Invalid or missing credentials')

export const ttlTooLong = (ttlSeconds: number, maxSeconds: number): AppError =>
  new AppError('TTL_TOO_LONG', `TTL specified ${ttlSeconds} is greater than max allowed ${maxSeconds}.`, {
    details: { max_ttl: maxSeconds },
  })

export const impersonationRefused = (): AppError =>
  new AppError(
    'IMPERSONATION_REFUSED',
    'Current user is not a service and cannot request impersonated tokens; leave out "user" and "impersonate_user".',
  )

/** @param who a user name, or `<nickname>@<origin>` */
export const userNotLocated = (who: string): AppError =>
  new AppError('USER_NOT_LOCATED', `Could not locate user ${shown(who)}`)

export const nicknameOriginMissing = (nickname: string): AppError =>
  new AppError(
    'NICKNAME_ORIGIN_MISSING',
    `Nickname origin is not provided for nickname '${shown(nickname)}'; send the chat system as "nickname_origin".`,
  )

export const nicknameAmbiguous = (who: string): AppError =>
  new AppError('NICKNAME_AMBIGUOUS', `${shown(who)} matched more than one username`)

export const passwordsKeptElsewhere = (backend: string): AppError =>
  new AppError(
    'PASSWORDS_KEPT_ELSEWHERE',
    `The authentication backend "${shown(backend)}" does not store passwords, so they cannot be set here; leave out "password" and change the password in the system that stores it.`,
  )

export const currentPasswordWrong = (): AppError =>
  new AppError('CURRENT_PASSWORD_WRONG', 'current_password is not the password of this user.', {
    details: { path: ['current_password'] },
  })

export const tokenNotProvided = (): AppError =>
  new AppError('TOKEN_NOT_PROVIDED', 'Token is not provided. Send it as "token" in the body.')

export const tokenUnknown = (): AppError =>
  new AppError('TOKEN_UNKNOWN', 'The token does not exist; it may have been revoked.')

export const tokenNotUsed = (): AppError =>
  new AppError('TOKEN_NOT_USED', 'This request has no token to revoke; to end an API key, disable or delete it.')

export const tlsRequired = (): AppError =>
  new AppError('TLS_REQUIRED', 'Authentication requires TLS (auth.use_ssl); use the https:// address of the server.')

export const ssoOff = (): AppError => new AppError('SSO_OFF', 'Single sign-on is off: this release has none.')

export const authenticationOff = (): AppError =>
  new AppError('AUTHENTICATION_OFF', 'Authentication is off (auth.enable): requests need no token.')

/** @param waitSeconds whole seconds until the next attempt is accepted; sent as `Retry-After` */
export const tooManyFailures = (waitSeconds: number): AppError =>
  new AppError('TOO_MANY_FAILURES', `Too many failed logins; try again in ${waitSeconds} s.`, {
    details: { retry_after: waitSeconds },
  })

export const apiKeyValueLost = (id: string): AppError =>
  new AppError(
    'IDEMPOTENCY_ANSWER_LOST',
    `The API key "${id}" was created, but its value is not stored; delete it, and create another one with a new Idempotency-Key.`,
    { details: { 'conflict-id': id } },
  )
