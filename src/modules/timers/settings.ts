/** What the configuration says about timers. */
import type { CommonSettings, Config } from '../../config/index.ts'
import type { EngineSettings } from './engine.ts'

export interface TimersSettings extends EngineSettings {
  /** `timersengine.enable`: off, timers can be looked at and none fires. */
  enabled: boolean
}

export function timersSettings(
  { timersengine }: Pick<Config, 'timersengine'>,
  { queueLimit }: CommonSettings,
): TimersSettings {
  return {
    enabled: timersengine.enable,
    localTimeZone: timersengine.local_timezone,
    missed: timersengine.missed,
    maxPending: queueLimit,
  }
}
