/** What sensors ask of modules above them; `app.ts` says who answers. */
import type { PackConfigs } from '../executions/ports.ts'

export interface SensorsPorts {
  readonly packConfigs: PackConfigs
}
