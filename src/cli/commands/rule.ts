/** `svc rule`: lists, shows, changes and tests rules (contract 09, 9.3). */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import type { Query } from '../connection/client.ts'
import { textOrEmpty } from '../connection/responses.ts'
import { printable, type Json } from '../output/print.ts'
import {
  createCreateCommand,
  createDeleteCommand,
  createGetCommand,
  createListCommand,
  createSwitchCommand,
  createUpdateCommand,
  type ListFlags,
  type Operand,
  type CliResource,
} from '../resources.ts'
import { maskSecretsOf } from '../rule-secrets.ts'
import { onOrder } from '../reference/samples.ts'
import type { CommandContext, Session } from '../session.ts'
import { createRuleNewCommand } from './rule-new.ts'
import { createRuleTestCommand } from './rule-test.ts'

const rule: CliResource = {
  name: 'Rule',
  pluralName: 'Rules',
  path: '/rules',
  columns: ['ref', 'pack', 'description', 'enabled'],
  order: [
    'id',
    'uid',
    'ref',
    'pack',
    'name',
    'description',
    'enabled',
    'type',
    'trigger',
    'criteria',
    'action',
    'expect',
    'keep',
    'tags',
  ],
  beforeSending: maskSecretsOf,
}
const ifThenColumns = ['ref', 'trigger.ref', 'action.ref', 'enabled']
const rules: Operand = ['<ref...>', 'references or ids']

interface RuleListFlags extends ListFlags {
  action?: string
  trigger?: string
  enabled?: boolean
  disabled?: boolean
  iftt?: boolean
  pack?: string
}

export function createRuleCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, rule, queryOf, {
    columns: ({ iftt }) => (iftt === true ? ifThenColumns : undefined),
  })
    .description('List rules.')
    .option('-c, --action <ref>', 'only rules that run this action')
    .option('-g, --trigger <ref>', 'only rules of this trigger')
    .addOption(new Option('--enabled', 'only enabled rules').conflicts('disabled'))
    .option('--disabled', 'only disabled rules')
    .option('--iftt', 'print the trigger and the action of each rule')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc rule list --enabled --iftt')

  const get = createGetCommand(context, rule, ...rules)
    .description('Show rules.')
    .examples('svc rule get default.on_order')

  const create = createCreateCommand(context, rule, noteDisabled)
    .description('Create a rule. It is disabled unless its definition has "enabled: true".')
    .examples('svc rule create on_order.yaml')
    .sample(onOrder.name, onOrder.text)

  const update = createUpdateCommand(context, rule, ['<ref>', 'reference or id'], noteDisabled)
    .description('Replace a rule. Attributes that the definition omits get their defaults.')
    .examples('svc rule update default.on_order on_order.yaml')

  const remove = createDeleteCommand(context, rule, ...rules)
    .description('Delete rules. Their enforcements and executions stay.')
    .examples('svc rule delete default.on_order')

  const enable = createSwitchCommand(context, rule, 'enable', ...rules)
    .description('Enable rules: they react to new events.')
    .examples('svc rule enable default.on_order')

  const disable = createSwitchCommand(context, rule, 'disable', ...rules)
    .description('Disable rules: they react to no events.')
    .examples('svc rule disable default.on_order')

  return new CliCommand('rule')
    .addCommand(list)
    .addCommand(get)
    .addCommand(createRuleNewCommand(context))
    .addCommand(create)
    .addCommand(update)
    .addCommand(remove)
    .addCommand(enable)
    .addCommand(disable)
    .addCommand(createRuleTestCommand(context))
}

function queryOf({ action, trigger, enabled, disabled, pack }: RuleListFlags): Query {
  return { action, trigger, pack, enabled: enabled ?? (disabled === true ? false : undefined) }
}

function noteDisabled(session: Session, written: Json): void {
  if (written['enabled'] !== false) return
  session.note(`Note: The rule is disabled. To enable it: svc rule enable ${printable(textOrEmpty(written['ref']))}\n`)
}
