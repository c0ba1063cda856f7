/** What lower parts ask of higher ones: every call that does not go down the table of modules. `app.ts` answers. */
import type { RunnersPorts } from '../runners/index.ts'
import type { ActionsPorts } from './actions/ports.ts'
import type { AuthPorts } from './auth/ports.ts'
import type { DatastorePorts } from './datastore/ports.ts'
import type { ExecutionsPorts } from './executions/ports.ts'
import type { JobsPorts } from './jobs/ports.ts'
import type { MonitoringPorts } from './monitoring/ports.ts'
import type { RulesPorts } from './rules/ports.ts'
import type { SensorsPorts } from './sensors/ports.ts'
import type { TracesPorts } from './traces/ports.ts'
import type { TriggersPorts } from './triggers/ports.ts'

/** By who asks. */
export interface Ports {
  runners: RunnersPorts
  monitoring: MonitoringPorts
  auth: AuthPorts
  datastore: DatastorePorts
  traces: TracesPorts
  triggers: TriggersPorts
  actions: ActionsPorts
  executions: ExecutionsPorts
  rules: RulesPorts
  jobs: JobsPorts
  sensors: SensorsPorts
}
