/** Tokens that a service account requests for another user (contract 01, 1.6). */
import { problemOfUserName } from '../../core/account-rules.ts'
import {
  bodyInvalid,
  impersonationRefused,
  nicknameAmbiguous,
  nicknameOriginMissing,
  permissionDenied,
  userNotLocated,
} from '../../core/errors.ts'
import type { Principal } from '../../http/index.ts'
import type { Rbac } from '../rbac/index.ts'
import type { AuthStore } from './store.ts'
import type { TokenRequest } from './types.ts'
import { shown } from '../../lib/text/index.ts'

/** Only `user` counts when both it and the nickname are given; empty is the same as absent. */
export type ImpersonationRequest = Pick<TokenRequest, 'user' | 'impersonate_user' | 'nickname_origin'>

/**
 * The user whom the token is for; undefined: the caller.
 *
 * @throws IMPERSONATION_REFUSED, USER_NOT_LOCATED, NICKNAME_ORIGIN_MISSING, NICKNAME_AMBIGUOUS, BODY_INVALID,
 *   PERMISSION_DENIED
 */
export type Impersonate = (request: ImpersonationRequest, caller: Principal) => Promise<string | undefined>

export function createImpersonation(
  store: Pick<AuthStore, 'findUser' | 'namesByNickname'>,
  rbac: Pick<Rbac, 'isAdmin'>,
): Impersonate {
  async function locate(nickname: string, origin: string | undefined): Promise<string> {
    if (origin === undefined) throw nicknameOriginMissing(nickname)
    const who = `${nickname}@${origin}`
    const [name, ...others] = await store.namesByNickname(origin, nickname)
    if (name === undefined) throw userNotLocated(who)
    if (others.length > 0) throw nicknameAmbiguous(who)
    return name
  }

  return async (request, caller) => {
    const user = readText('user', request.user)
    const nickname = readText('impersonate_user', request.impersonate_user)
    if (user === undefined && nickname === undefined) return undefined

    const own = store.findUser(caller.user)
    if (own === undefined) throw userNotLocated(caller.user)
    if (own.is_service !== 1) throw impersonationRefused()
    const name = user ?? (await locate(nickname ?? '', readText('nickname_origin', request.nickname_origin)))
    const problem = problemOfUserName(name)
    if (problem !== undefined) throw bodyInvalid(`user ${problem}`, { path: ['user'] })
    if (store.findUser(name)?.is_disabled === 1)
      throw bodyInvalid(`user: "${shown(name)}" is disabled`, { path: ['user'] })
    // Being a service account must not be a way to become an administrator, nor to stay one for the length of a request.
    if (rbac.isAdmin(name) && !rbac.isAdmin(caller.user)) {
      throw permissionDenied(`Only administrators can request a token for "${shown(name)}", who is an administrator.`)
    }
    return name
  }
}

/** @throws BODY_INVALID */
function readText(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  throw bodyInvalid(`${name}: ${shown(value)} is not of type 'string'`, { path: [name] })
}
