/** `svc rule-type`: what kinds of rules there are (contract 05, 5.5). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type Resource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const ruleType: Resource = {
  name: 'Rule type',
  pluralName: 'Rule types',
  path: '/ruletypes',
  columns: ['id', 'name', 'description', 'enabled'],
  order: ['id', 'name', 'description', 'enabled', 'parameters'],
}

export function createRuleTypeCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, ruleType)
    .description('List the types of rules: what "type" of a definition can be.')
    .examples('svc rule-type list')

  const get = createGetCommand(context, ruleType, '<name...>', 'names or ids')
    .description('Show types of rules.')
    .examples('svc rule-type get backstop')

  return new CliCommand('rule-type').addCommand(list).addCommand(get)
}
