/** What rules ask of modules above them; `app.ts` says who answers. */
import type { PackConfigs } from '../executions/ports.ts'

export interface RulesPorts {
  readonly packConfigs: PackConfigs
}
