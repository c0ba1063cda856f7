/** Tokens with which sensors call the API for as long as they run (contract 01, 1.7). */
import { LONGEST_TIMER_MS } from '../../core/clock.ts'
import { sensorsUser } from '../../core/permissions.ts'
import { formatMicros } from '../../core/time.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { AuthStore } from './store.ts'
import type { Tokens } from './tokens.ts'

export interface SensorTokens {
  /**
   * A token that counts until `end`, which never rejects; the server prolongs it meanwhile. Undefined while
   * authentication is off.
   */
  issue(sensor: { id: string; ref: string }): Promise<{ token: string; end(): Promise<void> } | undefined>
}

export function createSensorTokens(options: {
  database: Pick<Database, 'write'>
  store: Pick<AuthStore, 'insertServiceToken' | 'prolongToken' | 'deleteTokenIfAny'>
  /** Undefined while authentication is off, or not started. */
  readonly tokens: () => Tokens | undefined
  /** `auth.service_token_ttl` */
  ttlSeconds: number
  /** Microseconds since the epoch. */
  readonly now: () => number
  log: Log
}): SensorTokens {
  const { database, store, ttlSeconds, now, log } = options
  const warn = (id: string, error: unknown): void =>
    log.warning('sensor_token.not_stored', 'Could not store the token of a sensor', { sensor_id: id, error })

  return {
    async issue(sensor) {
      const made = options.tokens()?.make(sensorsUser, ttlSeconds, {
        isService: true,
        metadata: { service: 'sensors_container', sensor_ref: sensor.ref, sensor_id: sensor.id },
      })
      if (made === undefined) return undefined
      const { id } = made.row
      await database.write({ steps: [store.insertServiceToken(made.row)], facts: [] })
      const prolong = (): void => {
        const expiry = formatMicros(now() + ttlSeconds * 1_000_000)
        const facts = [{ name: 'token.prolonged' as const, payload: { id } }]
        database
          .write({ steps: [store.prolongToken(id, expiry)], facts })
          .catch((error: unknown) => warn(sensor.id, error))
      }
      const timer = setInterval(prolong, Math.min((ttlSeconds * 1000) / 2, LONGEST_TIMER_MS)).unref()
      return {
        token: made.token,
        async end() {
          clearInterval(timer)
          const facts = [{ name: 'token.revoked' as const, payload: { id } }]
          await database
            .write({ steps: [store.deleteTokenIfAny(id)], facts, isUnpromised: true })
            .catch((error: unknown) => warn(sensor.id, error))
        },
      }
    },
  }
}
