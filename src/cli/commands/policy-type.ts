/** `svc policy-type`: the policy types (contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type ListFlags, type CliResource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const policyType: CliResource = {
  name: 'Policy type',
  pluralName: 'Policy types',
  path: '/policytypes',
  columns: ['id', 'resource_type', 'name', 'description'],
  order: ['id', 'uid', 'ref', 'resource_type', 'name', 'description', 'enabled', 'module', 'parameters'],
}

interface PolicyTypeListFlags extends ListFlags {
  resourceType?: string
}

export function createPolicyTypeCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, policyType, ({ resourceType }: PolicyTypeListFlags) => ({
    resource_type: resourceType,
  }))
    .description('List policy types.')
    .option('-r, --resource-type <type>', 'only policy types for this resource type, such as action')
    .examples('svc policy-type list')

  const get = createGetCommand(context, policyType, '<ref...>', 'references or ids')
    .description('Show policy types with their parameters.')
    .examples('svc policy-type get action.retry')

  return new CliCommand('policy-type').addCommand(list).addCommand(get)
}
