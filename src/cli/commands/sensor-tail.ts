/** `svc sensor tail`: prints the output of a sensor. */
import { InvalidArgumentError } from 'commander'
import { CliCommand } from '../command.ts'
import { foreignAnswer, listIn } from '../connection/responses.ts'
import { FIRST_POLL_MS, MAX_OUTAGE_MS, MAX_POLL_MS, mayPass, pause, POLL_GROWTH } from '../executions/calls.ts'
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

const MAX_RECORDS = 2_000
/** Seconds that the server waits for more. */
const WAIT_SECONDS = 30
/** Before the next request when the server does not wait. */
const PAUSE_MS = 1_000

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
  let last = 0
  let answeredAt: number | undefined
  let retryMs = FIRST_POLL_MS
  for (;;) {
    const begun = performance.now()
    const answer = await callOn(session, 'GET', subject, { query }).catch((error: unknown) => {
      // Without any answer before, waiting would only hide a wrong address.
      if (answeredAt === undefined || !mayPass(error) || begun - answeredAt > MAX_OUTAGE_MS) throw error
      return undefined
    })
    if (answer === undefined) {
      if (retryMs === FIRST_POLL_MS) session.warn('Connection lost; reconnecting.')
      await pause(session, retryMs)
      retryMs = Math.min(MAX_POLL_MS, retryMs * POLL_GROWTH)
      continue
    }
    answeredAt = performance.now()
    retryMs = FIRST_POLL_MS
    const lines = listIn(answer)
    for (const line of lines) {
      const { seq, data } = line
      // Without a number that rises, the same output would come for ever.
      if (typeof seq !== 'number' || seq <= last || typeof data !== 'string') throw foreignAnswer('output of a sensor')
      last = seq
      if (session.form === 'human') await session.print(printable(data))
      else await session.printRecordLine(line)
    }
    if (!flags.follow) return exitCodes.ok
    if (lines.length === 0 && performance.now() - begun < PAUSE_MS) await pause(session, PAUSE_MS)
    query = { after: last, wait: WAIT_SECONDS }
  }
}

function parseLast(text: string): number {
  const value = Number(text)
  if (!/^\d{1,4}$/.test(text) || value < 1 || value > MAX_RECORDS)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_RECORDS}.`)
  return value
}
