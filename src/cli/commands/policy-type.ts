/** `svc policy-type`: what kinds of policies there are (contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type ListFlags, type Resource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const policyType: Resource = {
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
    .description('List the types of policies.')
    .option('-r, --resource-type <type>', 'only those about this kind of thing, such as action')
    .examples('svc policy-type list')

  const get = createGetCommand(context, policyType, '<ref...>', 'references or ids')
    .description('Show types of policies, with the parameters they take.')
    .examples('svc policy-type get action.retry')

  return new CliCommand('policy-type').addCommand(list).addCommand(get)
}
