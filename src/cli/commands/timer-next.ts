/** `svc timer next`: when a crontab expression, a timer or the timer of a rule fires. */
import { InvalidArgumentError } from 'commander'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, NotFound } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { formatTime, printable, type Json } from '../output/print.ts'
import { callOn, createRecord, getRecord, printList, subjectOf, type CliRecordKind } from '../records.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

interface NextFlags extends CommonFlags {
  timezone?: string
  count: number
}

/** As the server has it. */
const MAX_COUNT = 50

const rule: CliRecordKind = { name: 'Rule', path: '/rules' }

export function createTimerNextCommand(context: CommandContext, timer: CliRecordKind): CliCommand {
  return addCommonOptions(new CliCommand('next'))
    .argument('<schedule>', 'crontab expression in quotes, or the reference or id of a timer or rule')
    .description('Show when a crontab expression, a timer or the timer of a rule fires next.')
    .option('--timezone <name>', 'time zone of the expression, such as Europe/Berlin; default: that of the server')
    .option('-n, --count <n>', `how many times, at most ${MAX_COUNT}`, parseCount, 5)
    .notes('The times are those of cli.timezone, and beside them those of the time zone of the timer.')
    .examples('svc timer next "*/5 8-18 * * mon-fri" --timezone Europe/Berlin', 'svc timer next default.nightly -n 10')
    .action((schedule: string, flags: NextFlags) =>
      withSession(context, flags, async (session) => {
        const isExpression = /\s|^@|^$/.test(schedule)
        const found = isExpression
          ? await preview(session, schedule, flags)
          : await timesOf(session, timer, schedule, flags)
        await show(session, found)
        return exitCodes.ok
      }),
    )
}

function preview(session: Session, cron: string, { timezone, count }: NextFlags): Promise<Json> {
  const parameters = { cron, ...(timezone === undefined ? {} : { timezone }) }
  return createRecord(session, '/timers/preview', { type: 'core.svc.CronTimer', parameters, count })
}

async function timesOf(
  session: Session,
  timer: CliRecordKind,
  ref: string,
  { timezone, count }: NextFlags,
): Promise<Json> {
  if (timezone !== undefined) {
    throw new CliFailure('--timezone is for an expression: a timer has its own time zone.', exitCodes.usage)
  }
  const query = { next_runs: count }
  try {
    return recordIn(await callOn(session, 'GET', subjectOf(timer, ref), { query }))
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
  }
  const trigger = await triggerOf(session, ref)
  try {
    return recordIn(await callOn(session, 'GET', subjectOf(timer, textOrEmpty(trigger['ref'])), { query }))
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
    throw new CliFailure(
      `The rule "${ref}" has no timer: its trigger is ${textOrEmpty(trigger['type'])}.`,
      exitCodes.usage,
    )
  }
}

/** The trigger of a rule. @throws NotFound */
async function triggerOf(session: Session, ref: string): Promise<Json> {
  try {
    return toObject((await getRecord(session, rule, ref))['trigger'])
  } catch (error) {
    throw error instanceof NotFound ? new NotFound('Timer or rule', ref) : error
  }
}

async function show(session: Session, found: Json): Promise<void> {
  const { next_runs: given, next_timestamp: unused } = found
  const runs = Array.isArray(given) ? given : []
  if (session.form !== 'human') return session.printMachine({ timezone: found['timezone'], next_runs: runs })
  if (runs.length === 0) {
    const why = unused === undefined ? 'no future time matches, or timers are off' : 'no enabled rule uses the timer'
    return session.print(`It does not fire: ${why}.\n`)
  }
  const own = printable(textOrEmpty(found['timezone']))
  const zones = [...new Set([session.settings.timezone, own])]
  const rows = runs.map((run) => Object.fromEntries(zones.map((zone) => [zone, formatTime(run, zone)])))
  await printList(session, rows, { columns: zones, name: 'time', pluralName: 'times' })
}

function parseCount(text: string): number {
  const count = Number(text)
  if (!/^\d{1,9}$/.test(text) || count < 1 || count > MAX_COUNT) {
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_COUNT}.`)
  }
  return count
}
