/** `svc rule-type`: the rule types (contract 05, 5.5). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type CliResource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const ruleType: CliResource = {
  name: 'Rule type',
  pluralName: 'Rule types',
  path: '/ruletypes',
  columns: ['id', 'name', 'description', 'enabled'],
  order: ['id', 'name', 'description', 'enabled', 'parameters'],
}

export function createRuleTypeCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, ruleType)
    .description('List rule types: the values of "type" in a rule definition.')
    .examples('svc rule-type list')

  const get = createGetCommand(context, ruleType, '<name...>', 'names or ids')
    .description('Show rule types.')
    .examples('svc rule-type get backstop')

  return new CliCommand('rule-type').addCommand(list).addCommand(get)
}
