/** `svc timer`: the timers of rules (contract 09, 9.3; contract 05, 5.8). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type ListFlags, type CliResource } from '../resources.ts'
import { ruleColumn } from '../rule-column.ts'
import { formatTime, type Json } from '../output/print.ts'
import type { CommandContext } from '../session.ts'
import { createTimerNextCommand } from './timer-next.ts'

const timer: CliResource = {
  name: 'Timer',
  pluralName: 'Timers',
  path: '/timers',
  columns: ['id', 'type', 'parameters', 'next', 'previous', 'rule'],
  addColumns: (record, timezone) => ({
    ...ruleColumn(record),
    next: inBothZones(record, 'next_run', timezone),
    previous: inBothZones(record, 'previous_run', timezone),
  }),
  order: [
    'id',
    'uid',
    'ref',
    'pack',
    'name',
    'type',
    'parameters',
    'timezone',
    'next_run',
    'next_runs',
    'previous_run',
    'next_timestamp',
    'fired_timestamp',
    'rules',
    'description',
  ],
}

/** A time as the viewer's clocks show it, and below it as those of the timer do. */
function inBothZones(record: Json, name: string, viewer: string): string | undefined {
  const { [name]: time, timezone } = record
  if (time === undefined) return undefined
  const zones = [viewer, ...(typeof timezone === 'string' ? [timezone] : [])]
  return [...new Set(zones.map((zone) => formatTime(time, zone)))].join('\n')
}

interface TimerListFlags extends ListFlags {
  timerType?: string
}

export function createTimerCommand(context: CommandContext): CliCommand {
  const queryOf = ({ timerType }: TimerListFlags) => ({ timer_type: timerType })
  const list = createListCommand(context, timer, queryOf)
    .shortNames({ '-ty': '--timer-type' })
    .description('List the timers of rules, and when they run in your time zone and in their own.')
    .option('--timer-type <ref>', 'only timers of this type, such as core.svc.CronTimer')
    .completions({ '--timer-type': ['core.svc.IntervalTimer', 'core.svc.DateTimer', 'core.svc.CronTimer'] })
    .examples('svc timer list -ty core.svc.IntervalTimer', 'svc timer list -a uid ref fired_timestamp')

  const get = createGetCommand(context, timer, '<ref...>', 'references or ids')
    .description('Show timers.')
    .examples('svc timer get 6000000000000000000000aa')

  return new CliCommand('timer').addCommand(list).addCommand(get).addCommand(createTimerNextCommand(context, timer))
}
