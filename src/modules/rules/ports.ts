/** What rules need from modules above them; `app.ts` connects them. */
import type { PackConfigs } from '../executions/ports.ts'

export interface RulesPorts {
  readonly packConfigs: PackConfigs
}
