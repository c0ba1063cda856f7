/** The passport strategies: each turns a kind of credential into a principal. There are no sessions. */
import type { Request, Response } from 'express'
import passport from 'passport'
import { BasicStrategy } from 'passport-http'
import { credentialsMissing } from '../../core/errors.ts'
import type { Principal } from '../../http/index.ts'
import { readBasic, type UserPassword } from './basic.ts'
import { readRemoteUser, type NoRemoteUser, type RemoteUser } from './proxy.ts'
import { readCredential, type Credential } from './credentials.ts'

export type StrategyName = 'basic' | 'proxy' | Credential['kind']

/** Each resolves with the caller or throws the error that is the answer. */
export interface Verifiers {
  /** Gets the reason as text if the header holds no user and password. */
  basic(given: UserPassword | string, request: Request): Promise<Principal>
  /** Gets the reason if no user is named. It checks itself whether the peer is trusted to name a user. */
  proxy(given: RemoteUser | NoRemoteUser, request: Request): Promise<Principal>
  token(credential: Credential, request: Request): Principal
  apiKey(credential: Credential, request: Request): Principal
}

/** Runs one strategy on a request. */
export type Authenticate = (strategy: StrategyName, request: Request, response: Response) => Promise<Principal>

/** What passport gives to the copy of a strategy that it makes for each request. */
interface Outcome {
  success(principal: Principal): void
  error(error: unknown): void
}

/**
 * The published strategy cuts passwords at their second colon, takes `XBasic` for Basic and leaves encodings to chance,
 * so reading the header is replaced.
 */
class StrictBasicStrategy extends BasicStrategy {
  // No `#private` members here and below: passport calls an object that merely has this one as its prototype.
  declare readonly success: Outcome['success']
  declare readonly error: Outcome['error']
  readonly verify: Verifiers['basic']

  constructor(verify: Verifiers['basic']) {
    super(() => undefined)
    this.verify = verify
  }

  override authenticate(request: Request): void {
    this.verify(readBasic(request.headersDistinct['authorization']), request).then(
      (principal) => this.success(principal),
      (error: unknown) => this.error(error),
    )
  }
}

type Verify = (request: Request) => Principal | Promise<Principal>

/** Any other credential of a request: it is read, then verified. */
class RequestStrategy extends passport.Strategy {
  readonly verify: Verify

  constructor(verify: Verify) {
    super()
    this.verify = verify
  }

  override authenticate(request: Request): void {
    let principal: Principal | Promise<Principal>
    try {
      principal = this.verify(request)
    } catch (error) {
      this.error(error)
      return
    }
    if (principal instanceof Promise) principal.then(this.success.bind(this), this.error.bind(this))
    else this.success(principal)
  }
}

/** @param userHeader in which a proxy names the user; empty: in one of several */
export function createAuthenticate(verifiers: Verifiers, userHeader: string): Authenticate {
  const authenticator = new passport.Passport()
  authenticator.use('basic', new StrictBasicStrategy((given, request) => verifiers.basic(given, request)))
  authenticator.use(
    'proxy',
    new RequestStrategy((request) => verifiers.proxy(readRemoteUser(request, userHeader), request)),
  )
  authenticator.use('token', new RequestStrategy((request) => verifiers.token(readCredential(request), request)))
  authenticator.use('api-key', new RequestStrategy((request) => verifiers.apiKey(readCredential(request), request)))
  return (strategy, request, response) =>
    new Promise((resolve, reject) => {
      const run: (request: Request, response: Response, next: (error: unknown) => void) => void =
        authenticator.authenticate(strategy, { session: false }, (error: unknown, principal: unknown) => {
          if (error !== null) reject(error)
          else if (principal === false || principal === undefined) reject(credentialsMissing())
          else resolve(principal as Principal) // passport hands on what `success` was given
        })
      run(request, response, reject)
    })
}
