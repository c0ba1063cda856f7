/** `svc rule`: what shall run when something happens (contract 09, 9.3). */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import type { Query } from '../connection/client.ts'
import { textOf } from '../connection/answers.ts'
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
  type Resource,
} from '../resources.ts'
import { maskSecretsOf } from '../rule-secrets.ts'
import { onOrder } from '../reference/samples.ts'
import type { CommandContext, Session } from '../session.ts'
import { createRuleTestCommand } from './rule-test.ts'

const rule: Resource = {
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
    .option('-c, --action <ref>', 'only those that run this action')
    .option('-g, --trigger <ref>', 'only those of this trigger')
    .addOption(new Option('--enabled', 'only those that are enabled').conflicts('disabled'))
    .option('--disabled', 'only those that are not')
    .option('--iftt', 'if which trigger, then which action')
    .option('-p, --pack <pack>', 'only those of this pack')
    .examples('svc rule list --enabled --iftt')

  const get = createGetCommand(context, rule, ...rules)
    .description('Show rules.')
    .examples('svc rule get default.on_order')

  const create = createCreateCommand(context, rule, tellDisabled)
    .description('Make a rule. It is disabled unless its definition says "enabled: true".')
    .examples('svc rule create on_order.yaml')
    .sample(onOrder.name, onOrder.text)

  const update = createUpdateCommand(context, rule, ['<ref>', 'reference or id'], tellDisabled)
    .description('Replace a rule: what the definition leaves out has its default from now on.')
    .examples('svc rule update default.on_order on_order.yaml')

  const remove = createDeleteCommand(context, rule, ...rules)
    .description('Delete rules. What they have caused stays known.')
    .examples('svc rule delete default.on_order')

  const enable = createSwitchCommand(context, rule, 'enable', ...rules)
    .description('Let rules react to what happens from now on.')
    .examples('svc rule enable default.on_order')

  const disable = createSwitchCommand(context, rule, 'disable', ...rules)
    .description('Let rules react to nothing until they are enabled.')
    .examples('svc rule disable default.on_order')

  return new CliCommand('rule')
    .addCommand(list)
    .addCommand(get)
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

function tellDisabled(session: Session, written: Json): void {
  if (written['enabled'] !== false) return
  session.note(`Note: The rule is disabled; enable it with: svc rule enable ${printable(textOf(written['ref']))}\n`)
}
