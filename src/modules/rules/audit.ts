/** What comes of rules, for the audit log (contract 10, 10.3): from the facts, so nothing is said too early. */
import type { Bus } from '../../bus/bus.ts'
import type { Log } from '../../log.ts'

/** `rule.enforced` and `rule.enforcement_failed`. */
export function auditEnforcements(bus: Bus, log: Log): void {
  bus.subscribe('rule.enforced', ({ id, rule, trigger_instance_id, execution_id, failure_reason }) => {
    const about = { rule_enforcement_id: id, rule_id: rule.id, rule: rule.ref, trigger_instance_id }
    if (execution_id === undefined) log.audit('rule.enforcement_failed', { ...about, reason: failure_reason })
    else log.audit('rule.enforced', { ...about, execution_id })
  })
}
