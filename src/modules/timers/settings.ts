/** Configuration of timers. */
import type { CommonSettings, Config } from '../../config/index.ts'
import { machineTimeZone } from '../../lib/calendar/index.ts'
import type { EngineSettings } from './engine.ts'

export interface TimersSettings extends EngineSettings {
  /** `timersengine.enable`. If off, timers can be listed but none fires. */
  enabled: boolean
}

export function timersSettings(
  { timersengine }: Pick<Config, 'timersengine'>,
  { queueLimit }: CommonSettings,
): TimersSettings {
  return {
    enabled: timersengine.enable,
    localTimeZone: timersengine.local_timezone || machineTimeZone(),
    missed: timersengine.missed,
    maxPending: queueLimit,
  }
}
