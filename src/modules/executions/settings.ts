/** What the configuration says about executions. */
import type { Compat } from '../../core/compat/index.ts'
import type { CommonSettings, Config } from '../../config/index.ts'

export interface ExecutionsSettings {
  /** `system.base_path`; absent in tests without a folder. */
  basePath?: string
  streamOutput: boolean
  /** `system.validate_output_schema`; default false. */
  validateOutput?: boolean
  actionsPoolSize: number
  shutdownGraceSeconds: number
  queueLimit: number
  /** Acting user of what the system starts by itself. */
  systemUser: string
  pollSeconds: number
  /** `garbagecollector.purge_inquiries` */
  expiresPending: boolean
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** Address of the web client, without a trailing slash. Asked when needed: with port 0 it is known late. */
  webUrl(): string
  /** Public address of the API with its version, for `SVC_ACTION_API_URL`. */
  apiUrl(): string
  /** Default: our names alone. */
  compat?: Pick<Compat, 'environment'>
}

export function executionsSettings(
  config: Pick<Config, 'system' | 'actionrunner' | 'scheduler' | 'garbagecollector'>,
  common: CommonSettings,
  server: { actionsPoolSize: number; webUrl: () => string; publicApiUrl: () => string },
): ExecutionsSettings {
  const { actionrunner, scheduler, garbagecollector } = config
  return {
    ...common,
    streamOutput: actionrunner.stream_output,
    validateOutput: config.system.validate_output_schema,
    actionsPoolSize: server.actionsPoolSize,
    shutdownGraceSeconds: actionrunner.shutdown_grace_seconds,
    pollSeconds: scheduler.sleep_interval,
    expiresPending: garbagecollector.purge_inquiries,
    webUrl: server.webUrl,
    apiUrl: () => `${server.publicApiUrl()}/v1`,
  }
}
