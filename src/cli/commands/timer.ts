/** `svc timer`: the timers of rules (contract 09, 9.3; contract 05, 5.8). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type ListFlags, type CliResource } from '../resources.ts'
import { ruleColumn } from '../rule-column.ts'
import type { CommandContext } from '../session.ts'

const timer: CliResource = {
  name: 'Timer',
  pluralName: 'Timers',
  path: '/timers',
  columns: ['id', 'type', 'parameters', 'next_timestamp', 'rule'],
  addColumns: ruleColumn,
  order: [
    'id',
    'uid',
    'ref',
    'pack',
    'name',
    'type',
    'parameters',
    'next_timestamp',
    'fired_timestamp',
    'rules',
    'description',
  ],
}

interface TimerListFlags extends ListFlags {
  timerType?: string
}

export function createTimerCommand(context: CommandContext): CliCommand {
  const queryOf = ({ timerType }: TimerListFlags) => ({ timer_type: timerType })
  const list = createListCommand(context, timer, queryOf)
    .shortNames({ '-ty': '--timer-type' })
    .description('List the timers of rules.')
    .option('--timer-type <ref>', 'only timers of this type, such as core.svc.CronTimer')
    .completions({ '--timer-type': ['core.svc.IntervalTimer', 'core.svc.DateTimer', 'core.svc.CronTimer'] })
    .examples('svc timer list -ty core.svc.IntervalTimer', 'svc timer list -a uid ref fired_timestamp')

  const get = createGetCommand(context, timer, '<ref...>', 'references or ids')
    .description('Show timers.')
    .examples('svc timer get 6000000000000000000000aa')

  return new CliCommand('timer').addCommand(list).addCommand(get)
}
