/** Settings of notifications. */
import type { CommonSettings, Config } from '../../config/index.ts'
import type { ConditionName } from '../../core/notify.ts'

export interface NotificationsSettings {
  enabled: boolean
  /** Names of destinations that hear of every job. */
  globals: readonly string[]
  /** Of which destinations hear that do not say it. */
  on: readonly ConditionName[]
  /** Messages of a destination in a minute; more become one. 0: no digest. */
  digestThreshold: number
  maxAttempts: number
  maxAgeSeconds: number
  /** Waiting notifications of a destination. */
  maxPending: number
  /** The user with whose permissions destinations read the datastore. */
  systemUser: string
  basePath: string
  maxPageSize: number
}

export function notificationsSettings({ notifications }: Config, common: CommonSettings): NotificationsSettings {
  return {
    enabled: notifications.enable,
    globals: notifications.destinations,
    on: notifications.on as ConditionName[], // the option checks it
    digestThreshold: notifications.digest_threshold,
    maxAttempts: notifications.max_attempts,
    maxAgeSeconds: notifications.max_age_seconds,
    maxPending: notifications.max_pending,
    systemUser: common.systemUser,
    basePath: common.basePath,
    maxPageSize: common.maxPageSize,
  }
}
