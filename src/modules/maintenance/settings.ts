/** What the configuration says about old records. */
import type { Config } from '../../config/index.ts'
import type { RetentionLimits } from './collector.ts'

export interface MaintenanceSettings extends RetentionLimits {
  /** `garbagecollector.collection_interval` */
  intervalSeconds: number
}

export function maintenanceSettings({ garbagecollector }: Pick<Config, 'garbagecollector'>): MaintenanceSettings {
  return {
    days: daysKept(garbagecollector),
    maxRecords: garbagecollector.max_records,
    maxDatabaseBytes: garbagecollector.max_database_bytes,
    pauseSeconds: garbagecollector.sleep_delay,
    intervalSeconds: garbagecollector.collection_interval,
  }
}

/** Of each kind; 0 keeps for ever. The specification's reading of `action_executions_ttl` is output (contract 10, 10.5). */
function daysKept(collector: Config['garbagecollector']): RetentionLimits['days'] {
  return {
    executions: collector.action_executions_record_ttl,
    output: collector.action_executions_output_ttl ?? collector.action_executions_ttl,
    'trigger-instances': collector.trigger_instances_ttl,
    traces: collector.traces_ttl,
    tokens: collector.tokens_ttl,
    'rule-enforcements': collector.rule_enforcements_ttl,
    notifications: collector.notifications_ttl,
    workflows: shorter(collector.workflow_executions_ttl, collector.task_executions_ttl),
  }
}

/** Tasks are a part of their workflow. @returns 0: neither has a limit */
function shorter(...days: readonly number[]): number {
  const limits = days.filter((limit) => limit > 0)
  return limits.length === 0 ? 0 : Math.min(...limits)
}
