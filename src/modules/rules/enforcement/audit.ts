/** Audit events of enforcements (contract 10, 10.3), written after their commit. */
import type { Bus } from '../../../bus/index.ts'
import type { Log } from '../../../lib/log/index.ts'

/** `rule.enforced`, `rule.enforcement_skipped` and `rule.enforcement_failed`. */
export function auditEnforcements(bus: Bus, log: Log): void {
  bus.subscribe('rule.enforced', ({ id, rule, trigger_instance_id, execution_id, failure_reason, ...more }) => {
    const about = { rule_enforcement_id: id, rule_id: rule.id, rule: rule.ref, trigger_instance_id }
    if (more.status === 'skipped') {
      const message = `Rule enforcement skipped. Rule ${rule.ref}, TriggerInstance ${trigger_instance_id}`
      log.audit('rule.enforcement_skipped', message, { ...about, reason: more.skip_reason })
    } else if (execution_id === undefined) {
      const message = `Rule enforcement failed. Rule ${rule.ref}, TriggerInstance ${trigger_instance_id}`
      log.audit('rule.enforcement_failed', message, { ...about, reason: failure_reason })
    } else {
      const message = `Rule enforced. Execution ${execution_id}, TriggerInstance ${trigger_instance_id}, Rule ${rule.ref}`
      log.audit('rule.enforced', message, { ...about, execution_id })
    }
  })
}
