/** `svc execution grep`: finds executions by their output, newest first, as the server searches it. */
import { styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { executionStatuses } from '../../core/execution-status.ts'
import { readDuration } from '../../lib/calendar/index.ts'
import { CliCommand } from '../command.ts'
import { listIn, textOrEmpty, toList } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addCommonOptions, parseLast, type CommonFlags } from '../options.ts'
import { attributeOf, printable, type Json } from '../output/print.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const PAGE_SIZE = 100
const DEFAULT_COUNT = 50
const DEFAULT_LINES = 5
const MAX_LINES = 20

interface GrepFlags extends CommonFlags {
  ignoreCase?: boolean
  count?: boolean
  last?: number
  lines: number
  action?: string
  status?: string
  user?: string
  rule?: string
  since?: string
  until?: string
}

export function createExecutionGrepCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('grep'))
    .description('Find executions by a text in their output, newest first.')
    .argument('<text>', 'text in a line of stdout or stderr')
    .option('-i, --ignore-case', 'find upper and lower case')
    .option('-c, --count', 'print only the number of executions, of all without -n')
    .option('-n, --last <count>', `number of items to print; -1: all (default: ${DEFAULT_COUNT})`, parseLast)
    .option('--lines <count>', `matching lines of each execution, 1 to ${MAX_LINES}`, parseLines, DEFAULT_LINES)
    .option('--action <ref>', 'only executions of this action')
    .option('--status <status>', `only executions in this status: ${executionStatuses.join(', ')}`)
    .completions({ '--status': executionStatuses })
    .option('--user <name>', 'only executions of this user')
    .option('--rule <ref>', 'only executions that this rule started')
    .option('--since <time>', 'only executions since this time, or within a duration such as 90m or 7d')
    .option('--until <time>', 'only executions before this time, or before a duration')
    .notes(
      'Each line is the id, the action and a matching line, without control sequences of terminals. The text is taken as it is, not as a pattern. Masked secrets are not found, nor output that retention has removed.',
      'The exit code is 0 when an execution was found, and 1 otherwise, as that of grep.',
      'The server searches some hundred thousand executions in a second. --action, --status, --user, --rule and --since narrow the search first.',
      'With `-j` and `-y` the command prints records with `id`, `action`, `status`, `start_timestamp` and `output_matches`; `svc execution tail <id>` prints the whole output.',
    )
    .examples(
      "svc execution grep 'connection refused'",
      'svc execution grep -i error --action shop.deploy --since 7d',
      "svc execution grep -c 'out of memory' --status failed",
    )
    .action((text: string, flags: GrepFlags) => withSession(context, flags, (session) => grep(session, text, flags)))
}

function parseLines(text: string): number {
  const count = Number(text)
  if (!/^\d{1,2}$/.test(text) || count < 1 || count > MAX_LINES) {
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_LINES}.`)
  }
  return count
}

async function grep(session: Session, text: string, flags: GrepFlags): Promise<number> {
  if (text === '') throw new CliFailure('The text to find is empty.', exitCodes.usage)
  const isCounting = flags.count === true
  const most = flags.last ?? (isCounting ? -1 : DEFAULT_COUNT)
  const query = {
    output: text,
    ...(flags.ignoreCase === true ? { output_ignore_case: 'true' } : {}),
    action: flags.action,
    status: flags.status,
    user: flags.user,
    rule: flags.rule,
    timestamp_gt: timeOf('--since', flags.since),
    timestamp_lt: timeOf('--until', flags.until),
    include_attributes: isCounting ? 'id' : 'id,action.ref,status,start_timestamp',
    ...(isCounting ? {} : { include_matches: flags.lines }),
  }
  const records: Json[] = []
  let found = 0
  let searched = 0
  let cursor: string | undefined
  const progress = session.progress('Searching')
  do {
    const limit = most === -1 ? PAGE_SIZE : Math.min(PAGE_SIZE, most - found)
    const answer = await session.client.call('GET', '/executions', {
      query: { ...query, limit, output_cursor: cursor },
    })
    const searchedNow = Number(answer.headers['x-output-searched'] ?? NaN)
    if (Number.isNaN(searchedNow)) throw new CliFailure('This server does not search outputs: it is older.')
    const page = listIn(answer)
    found += page.length
    searched += searchedNow
    progress.update(`Searching: ${searched.toLocaleString('en-US')} executions, ${found} found`)
    if (!isCounting && session.form === 'human')
      await session.print(page.map((record) => linesOf(record, session)).join(''))
    else if (!isCounting) records.push(...page)
    const next = answer.headers['x-output-cursor']
    if (next !== undefined && next === cursor) throw new CliFailure('The search of the server does not go on.')
    cursor = typeof next === 'string' ? next : undefined
  } while (cursor !== undefined && (most === -1 || found < most))
  progress.stop()
  if (isCounting)
    await (session.form === 'human' ? session.print(`${found}\n`) : session.printMachine({ count: found }))
  else if (session.form !== 'human') await session.printMachine(records)
  else if (cursor !== undefined && flags.last === undefined) {
    session.note(`The newest ${found} are shown. -n -1 shows all.\n`)
  }
  return found > 0 ? exitCodes.ok : exitCodes.failed
}

/** A line for each match: `id  action  line`. */
function linesOf(record: Json, { isColored }: Session): string {
  const name = `${printable(textOrEmpty(record['id']))}  ${printable(textOrEmpty(attributeOf(record, 'action.ref')))}`
  return toList(record['output_matches'])
    .map(({ before, match, after }) => {
      const [first, middle, last] = [before, match, after].map((part) => printable(textOrEmpty(part)))
      const marked = isColored ? styleText('red', middle ?? '', { validateStream: false }) : middle
      return `${name}  ${first}${marked}${last}\n`
    })
    .join('')
}

/** A time on the wire. @throws CliFailure (2) */
function timeOf(option: string, given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  const duration = readDuration(given)
  if (!('problem' in duration)) return new Date(Date.now() - duration.seconds * 1000).toISOString()
  const time = Date.parse(given)
  if (Number.isNaN(time)) {
    throw new CliFailure(
      `${option} ${printable(given)}: this is neither a time, such as 2030-01-01T00:00:00Z, nor a duration, such as 90m or 7d.`,
      exitCodes.usage,
    )
  }
  return new Date(time).toISOString()
}
