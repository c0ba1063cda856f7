/** Tokens with which actions call the API while they run (contract 01, 1.7). */
import type { Unit } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { AuthStore } from './store.ts'
import type { Tokens } from './tokens.ts'
import type { ServiceTokens } from '../executions/ports.ts'

export interface ServiceTokensOptions {
  store: Pick<AuthStore, 'findUser' | 'insertServiceToken' | 'deleteTokenIfAny'>
  /** Undefined while authentication is off, or not started. */
  readonly tokens: () => Tokens | undefined
  /** `auth.enable` */
  enabled: boolean
  /** `auth.service_token_ttl` */
  ttlSeconds: number
  /** The user of rules and timers; it has a record only after a login. */
  systemUser: string
  log: Log
}

/**
 * The record of a token has the id of the live action that it is for, so that it is found again whatever becomes of the
 * server in between.
 */
export function createServiceTokens(options: ServiceTokensOptions): ServiceTokens {
  const { store, enabled, systemUser, log } = options

  /** A user who was deleted or disabled while the execution waited gets no new credential. */
  function mayHaveToken(user: string): boolean {
    const record = store.findUser(user)
    return record === undefined ? user === systemUser : record.is_disabled === 0
  }

  return {
    enabled,
    plan({ id, liveaction_id: liveactionId, user, action_ref: actionRef, context: { scopes } }) {
      const tokens = options.tokens()
      if (tokens === undefined) return undefined
      if (!mayHaveToken(user)) {
        const message = 'No token for an action: its user is disabled or unknown'
        log.warning('service_token.refused', message, { user, execution_id: id, action: actionRef })
        return undefined
      }
      const { token, row } = tokens.make(user, options.ttlSeconds, {
        id: liveactionId,
        isService: true,
        metadata: {
          service: 'actions_container',
          action_name: actionRef,
          live_action_id: liveactionId,
          ...(scopes === undefined ? {} : { scopes }),
        },
      })
      return { token, unit: { steps: [store.insertServiceToken(row)], facts: [] } }
    },
    planEnd: ({ liveaction_id: id }): Unit => ({
      steps: [store.deleteTokenIfAny(id)],
      facts: [{ name: 'token.revoked', payload: { id } }],
    }),
  }
}
