/** `svc policy`: concurrency limits and retries of executions (contract 09, 9.3; contract 02, 2.11). */
import { CliCommand } from '../command.ts'
import type { Query } from '../connection/client.ts'
import { names } from '../names.ts'
import {
  createCreateCommand,
  createDeleteCommand,
  createGetCommand,
  createListCommand,
  createUpdateCommand,
  type ListFlags,
  type Operand,
  type CliResource,
} from '../resources.ts'
import type { CommandContext } from '../session.ts'

const policy: CliResource = {
  name: 'Policy',
  pluralName: 'Policies',
  path: '/policies',
  columns: ['ref', 'resource_ref', 'policy_type', 'enabled'],
  order: ['id', 'uid', 'ref', 'pack', 'name', 'description', 'enabled', 'resource_ref', 'policy_type', 'parameters'],
}
const policies: Operand = ['<ref...>', 'references or ids']

interface PolicyListFlags extends ListFlags {
  resourceRef?: string
  policyType?: string
  pack?: string
}

export function createPolicyCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, policy, queryOf)
    .shortNames({ '-pt': '--policy-type' })
    .description('List policies.')
    .option('-r, --resource-ref <ref>', 'only policies for this action')
    .completions({ '--resource-ref': names.action })
    .option('--policy-type <ref>', 'only policies of this type')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc policy list -pt action.retry')

  const get = createGetCommand(context, policy, ...policies)
    .description('Show policies.')
    .examples('svc policy get default.one_deploy')

  const create = createCreateCommand(context, policy)
    .description('Create a policy. It takes effect at once.')
    .examples('svc policy create one_deploy.yaml')
    .sample(
      'one_deploy.yaml',
      `name: one_deploy
resource_ref: shop.deploy
policy_type: action.concurrency.attr
parameters: {threshold: 1, attributes: [environment]}`,
    )

  const update = createUpdateCommand(context, policy, ['<ref>', 'reference or id'])
    .description('Replace a policy. Attributes that the definition omits get their defaults.')
    .examples('svc policy update default.one_deploy one_deploy.yaml')

  const remove = createDeleteCommand(context, policy, ...policies)
    .description('Delete policies. Executions that they delayed continue.')
    .examples('svc policy delete default.one_deploy')

  return new CliCommand('policy')
    .addCommand(list)
    .addCommand(get)
    .addCommand(create)
    .addCommand(update)
    .addCommand(remove)
}

function queryOf({ resourceRef, policyType, pack }: PolicyListFlags): Query {
  return { resource_ref: resourceRef, policy_type: policyType, pack }
}
