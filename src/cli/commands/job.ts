/** `svc job`: rules and how they do. */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type CliResource, type ListFlags } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const job: CliResource = {
  name: 'Job',
  pluralName: 'Jobs',
  path: '/jobs',
  columns: ['ref', 'enabled', 'last_status', 'last_success_timestamp', 'next_timestamp', 'late_since_timestamp'],
  order: [
    'id',
    'ref',
    'pack',
    'name',
    'description',
    'enabled',
    'trigger',
    'action',
    'fired_timestamp',
    'next_timestamp',
    'last_execution_id',
    'last_status',
    'last_end_timestamp',
    'last_success_timestamp',
    'expect',
    'expected_timestamp',
    'late_since_timestamp',
    'late_reason',
  ],
}

interface JobListFlags extends ListFlags {
  action?: string
  enabled?: boolean
  disabled?: boolean
  late?: boolean
  pack?: string
}

export function createJobCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, job, ({ action, enabled, disabled, late, pack }: JobListFlags) => ({
    action,
    late,
    pack,
    enabled: enabled ?? (disabled === true ? false : undefined),
  }))
    .description('List rules with their last and next runs.')
    .option('-c, --action <ref>', 'only rules that run this action')
    .addOption(new Option('--enabled', 'only enabled rules').conflicts('disabled'))
    .option('--disabled', 'only disabled rules')
    .option('--late', 'only rules that have not succeeded as they are expected to')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc job list --late', 'svc job list -p shop')

  const get = createGetCommand(context, job, '<ref...>', 'references or ids of rules')
    .description('Show the last and next runs of rules.')
    .examples('svc job get shop.backup')

  return new CliCommand('job').addCommand(list).addCommand(get)
}
