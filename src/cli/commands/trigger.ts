/** `svc trigger`: trigger types and their triggers (contract 09, 9.3; contract 05, 5.1 and 5.2). */
import { CliCommand } from '../command.ts'
import { textOrEmpty } from '../connection/responses.ts'
import { addCommonOptions, addListOptions } from '../options.ts'
import { getRecord } from '../records.ts'
import {
  createCreateCommand,
  createDeleteCommand,
  createGetCommand,
  createListCommand,
  createUpdateCommand,
  showList,
  type ListFlags,
  type Operand,
  type CliResource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const triggerType: CliResource = {
  name: 'Trigger',
  pluralName: 'Triggers',
  path: '/triggertypes',
  columns: ['ref', 'pack', 'description'],
  order: ['id', 'uid', 'ref', 'pack', 'name', 'description', 'parameters_schema', 'payload_schema', 'tags'],
}
/** A trigger type with parameters. */
const trigger: CliResource = {
  name: 'Trigger',
  pluralName: 'Triggers',
  path: '/triggers',
  columns: ['ref', 'type', 'parameters', 'description'],
  order: [],
}
const types: Operand = ['<ref...>', 'references or ids']

export function createTriggerCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, triggerType, ({ pack }: ListFlags & { pack?: string }) => ({ pack }))
    .description('List trigger types: the kinds of events that rules react to.')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc trigger list -p core')

  const get = createGetCommand(context, triggerType, ...types)
    .description('Show trigger types with the schemas of their parameters and payloads.')
    .examples('svc trigger get core.svc.webhook')

  const create = createCreateCommand(context, triggerType)
    .description('Create a trigger type.')
    .examples('svc trigger create deployed.yaml')
    .sample(
      'deployed.yaml',
      `name: deployed
pack: shop
payload_schema: {type: object, properties: {version: {type: string}}}`,
    )

  const update = createUpdateCommand(context, triggerType, ['<ref>', 'reference or id'])
    .description('Replace a trigger type. Attributes that the definition omits get their defaults.')
    .examples('svc trigger update shop.deployed deployed.yaml')

  const remove = createDeleteCommand(context, triggerType, ...types)
    .description('Delete trigger types.')
    .examples('svc trigger delete shop.deployed')

  const specs = addListOptions(addCommonOptions(new CliCommand('getspecs')))
    .description('List the triggers of a trigger type with the parameters that rules use.')
    .argument('<ref>', 'reference or id of the trigger type')
    .notes(
      'Triggers with parameters, such as webhooks and timers, have generated names. This list shows their parameters.',
    )
    .examples('svc trigger getspecs core.svc.webhook')
    .action((ref: string, flags: ListFlags) => withSession(context, flags, (session) => listSpecs(session, ref, flags)))

  return new CliCommand('trigger')
    .addCommand(list)
    .addCommand(get)
    .addCommand(create)
    .addCommand(update)
    .addCommand(remove)
    .addCommand(specs)
}

async function listSpecs(session: Session, ref: string, flags: ListFlags): Promise<number> {
  const type = textOrEmpty((await getRecord(session, triggerType, ref))['ref'])
  return showList(session, trigger, { type }, flags)
}
