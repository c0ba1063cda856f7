/** `svc rule-enforcement`: which rule started which execution (contract 09, 9.3; contract 05, 5.7). */
import { CliCommand } from '../command.ts'
import { isId } from '../../core/ids.ts'
import { addTimeOptions, type TimeFlags } from '../options.ts'
import { createGetCommand, createListCommand, type ListFlags, type CliResource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const ruleEnforcement: CliResource = {
  name: 'Rule Enforcement',
  pluralName: 'Rule Enforcements',
  path: '/ruleenforcements',
  columns: ['id', 'rule.ref', 'trigger_instance_id', 'execution_id', 'enforced_at'],
  order: [],
  shown: ['id', 'rule.ref', 'trigger_instance_id', 'execution_id', 'failure_reason', 'skip_reason', 'enforced_at'],
  sometimes: ['skip_reason'],
  isNewestFirst: true,
}

interface EnforcementListFlags extends ListFlags, TimeFlags {
  triggerInstance?: string
  execution?: string
  rule?: string
}

export function createRuleEnforcementCommand(context: CommandContext): CliCommand {
  const queryOf = ({ triggerInstance, execution, rule = '', timestampGt, timestampLt }: EnforcementListFlags) => ({
    trigger_instance: triggerInstance,
    execution,
    ...(isId(rule) ? { rule_id: rule } : { rule_ref: rule || undefined }),
    enforced_at_gt: timestampGt,
    enforced_at_lt: timestampLt,
  })
  const list = addTimeOptions(createListCommand(context, ruleEnforcement, queryOf), 'enforcements')
    .description('List rule enforcements, newest last: executions that rules started, failed to start or skipped.')
    .option('--trigger-instance <id>', 'only enforcements caused by this trigger instance')
    .option('--execution <id>', 'only the enforcement that started this execution')
    .option('--rule <ref>', 'only enforcements of this rule: reference or id')
    .examples('svc rule-enforcement list -n 10 --rule default.on_order')

  const get = createGetCommand(context, ruleEnforcement, '<id...>', 'ids')
    .description('Show rule enforcements with the execution or the reason why there is none.')
    .examples('svc rule-enforcement get 6000000000000000000000aa')

  return new CliCommand('rule-enforcement').addCommand(list).addCommand(get)
}
