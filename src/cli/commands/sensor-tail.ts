/** `svc sensor tail`: prints the output of a sensor. */
import { InvalidArgumentError } from 'commander'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { names } from '../names.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { callOn, subjectOf, type CliRecordKind } from '../records.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

interface TailFlags extends CommonFlags {
  last: number
  follow: boolean
}

interface OutputLine {
  seq: number
  timestamp: string
  type: string
  data: string
}

const MAX_RECORDS = 2_000
/** Seconds that the server waits for more. */
const WAIT_SECONDS = 30

export function createSensorTailCommand(context: CommandContext, sensor: CliRecordKind): CliCommand {
  return addCommonOptions(new CliCommand('tail'))
    .argument('<ref>', 'reference or id')
    .description('Print the newest output of a sensor, and what follows until you press Ctrl-C.')
    .option('-n, --last <n>', `records of output to begin with, at most ${MAX_RECORDS}`, parseLast, 100)
    .option('--no-follow', 'end after the output so far')
    .completions({ '<ref>': names.sensor })
    .examples('svc sensor tail examples.HeartbeatSensor')
    .action((ref: string, flags: TailFlags) =>
      withSession(context, flags, (session) => follow(session, sensor, ref, flags)),
    )
}

async function follow(session: Session, sensor: CliRecordKind, ref: string, flags: TailFlags): Promise<number> {
  const subject = { ...subjectOf(sensor, ref), part: '/output' }
  let query: Record<string, number> = { limit: flags.last }
  for (;;) {
    const { body } = await callOn(session, 'GET', subject, { query })
    const lines = Array.isArray(body) ? (body as OutputLine[]) : [] // as the server's description says
    for (const line of lines) {
      if (session.form === 'human') await session.print(printable(line.data))
      else await session.printRecordLine(line)
    }
    if (!flags.follow) return exitCodes.ok
    query = { after: lines.at(-1)?.seq ?? query['after'] ?? 0, wait: WAIT_SECONDS }
  }
}

function parseLast(text: string): number {
  const value = Number(text)
  if (!/^\d{1,4}$/.test(text) || value < 1 || value > MAX_RECORDS)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_RECORDS}.`)
  return value
}
