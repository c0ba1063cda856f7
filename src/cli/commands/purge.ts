/** `svc purge`, also called `svc-purge-executions` and so on: deletes old records (contract 10, 10.5). */
import { Argument, InvalidArgumentError, Option } from 'commander'
import { recordKinds, type RecordKind } from '../../core/retention.ts'
import { formatMicros, nowMicros, parseTimestamp } from '../../core/time.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty } from '../connection/responses.ts'
import { segment } from '../connection/client.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addOperatorOptions, withOperatorSession, type OperatorFlags } from '../operator-session.ts'
import type { CommandContext, Session } from '../session.ts'

interface PurgeFlags extends OperatorFlags {
  before?: string
  timestamp?: string
  /** Seconds. */
  olderThan?: number
  actionRef?: string
  purgeIncomplete?: boolean
  dryRun?: boolean
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

export function createPurgeCommand(context: CommandContext): CliCommand {
  const command = new CliCommand('purge')
    .description('Delete old executions, output and other records.')
    .addArgument(new Argument('<kind>', 'kind of records to delete').choices(recordKinds))
    .option('--before <time>', 'delete records older than this UTC time, such as 2030-01-01T00:00:00Z', parseTime)
    .option('--older-than <duration>', 'delete records older than this: 90m, 12h, 30d, 8w', parseDuration)
    .addOption(new Option('--timestamp <time>', 'same as --before').argParser(parseTime).hideHelp())
    .option('--action-ref <ref>', 'executions only: delete only executions of this action')
    .option('--purge-incomplete', 'executions only: cancel unfinished executions; a later purge deletes them')
    .option('--dry-run', 'count the records, and delete nothing')
    .notes(
      'Deleting an execution also deletes its output and result. Unfinished work stays: running executions, trigger instances that are still pending, and traces with either.',
      'Deleting workflows deletes their tasks, variables and errors; their executions stay. Such a workflow cannot be explained or re-run from tasks.',
      'The server keeps working during a purge. Ctrl-C stops the purge; records deleted until then stay deleted. Afterwards the server returns the free space to the disk.',
      'The section garbagecollector of the configuration sets how long the server keeps records before it deletes them itself.',
      'Also called svc-purge-executions, svc-purge-trigger-instances, svc-purge-traces, svc-purge-rule-enforcements, svc-purge-tokens, svc-purge-workflows and svc-purge-task-executions, which is the same. --timestamp is another name of --before.',
    )
    .examples('svc purge executions --older-than 30d --dry-run', 'svc purge output --before 2030-01-01T00:00:00Z')
  return addOperatorOptions(command).action((kind: RecordKind, flags: PurgeFlags) =>
    withOperatorSession(context, flags, (session) => purge(session, kind, flags)),
  )
}

function parseTime(text: string): string {
  const time = parseTimestamp(text)
  if (time === undefined) throw new InvalidArgumentError('It must be a UTC time such as 2030-01-01T00:00:00Z.')
  return time
}

function parseDuration(text: string): number {
  const [, count, unit = ''] = /^(\d{1,7})([smhdw])$/.exec(text) ?? []
  const seconds = unitSeconds[unit]
  if (count === undefined || seconds === undefined) {
    throw new InvalidArgumentError('It must be a number followed by s, m, h, d or w, such as 30d.')
  }
  return Number(count) * seconds
}

async function purge(session: Session, kind: RecordKind, flags: PurgeFlags): Promise<number> {
  const { actionRef, purgeIncomplete, dryRun = false } = flags
  const before = timeOf(flags)
  const done = { records: 0, canceled: 0 }
  const progress = session.progress(dryRun ? 'Counting' : 'Purging')
  for (let after: string | null = ''; after !== null;) {
    const answer = recordIn(
      await session.client.call('POST', `/purge/${segment(kind)}`, {
        body: {
          before,
          after,
          dry_run: dryRun,
          ...(actionRef === undefined ? {} : { action_ref: actionRef }),
          ...(purgeIncomplete === undefined ? {} : { incomplete: purgeIncomplete }),
        },
      }),
    )
    done.records += Number(answer['records'])
    done.canceled += Number(answer['canceled'])
    progress.update(`${dryRun ? 'Counting' : 'Purging'}: ${done.records}`)
    after = answer['next'] === null ? null : textOrEmpty(answer['next'])
  }
  progress.stop()
  if (session.form !== 'human') {
    await session.printMachine({ kind, before, dry_run: dryRun, ...done })
    return exitCodes.ok
  }
  const name = kind.replace('-', ' ')
  const count = `${done.records} ${done.records === 1 ? 'record' : 'records'}`
  await session.print(
    dryRun
      ? `Would delete ${count} (${name}) from before ${before}.\n`
      : `Deleted ${count} (${name}) from before ${before}.\n`,
  )
  if (done.canceled > 0) {
    const which = `${done.canceled} unfinished ${done.canceled === 1 ? 'execution' : 'executions'}`
    await session.print(
      dryRun
        ? `${which} would be canceled.\n`
        : `${which} ${has(done.canceled)} been canceled; the next purge deletes those that were running.\n`,
    )
  }
  return exitCodes.ok
}

const has = (count: number): string => (count === 1 ? 'has' : 'have')

/** @throws CliFailure */
function timeOf({ before, timestamp, olderThan }: PurgeFlags): string {
  const given = [before ?? timestamp, olderThan === undefined ? undefined : formatMicros(nowMicros() - olderThan * 1e6)]
  const [time, other] = given.filter((each) => each !== undefined)
  if (time === undefined) {
    throw new CliFailure('No age given. Add --older-than 30d or --before 2030-01-01T00:00:00Z.')
  }
  if (other !== undefined) throw new CliFailure('Use either --older-than or --before, not both.')
  return time
}
