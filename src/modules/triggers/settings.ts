/** Configuration of triggers. */
import type { Compat } from '../../core/compat/index.ts'
import type { CommonSettings, Config } from '../../config/index.ts'

export interface TriggersSettings {
  /** `system.validate_trigger_parameters` */
  validateParameters: boolean
  /** `system.validate_trigger_payload` */
  validatePayload: boolean
  /** `action_sensor.emit_when`; empty when `action_sensor.enable` is off. */
  emitWhen: readonly string[]
  /** Address of the web client, without a trailing slash. Asked when needed: with port 0 it is known late. */
  readonly webUrl: () => string
  /** `actionrunner.queue_limit`: maximum number of pending instances. */
  queueLimit: number
  /** `api.max_page_size` */
  maxPageSize: number
  /** Default: our names alone. */
  compat?: Compat
}

export function triggersSettings(
  { system, action_sensor: sensor }: Pick<Config, 'system' | 'action_sensor'>,
  common: CommonSettings,
  webUrl: () => string,
): TriggersSettings {
  return {
    ...common,
    webUrl,
    validateParameters: system.validate_trigger_parameters,
    validatePayload: system.validate_trigger_payload,
    emitWhen: sensor.enable ? sensor.emit_when : [],
  }
}
