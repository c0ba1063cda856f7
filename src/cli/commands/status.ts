/** `svc status`: how the server is. */
import { CliCommand } from '../command.ts'
import { recordIn, toList, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { addOperatorOptions, withOperatorSession, type OperatorFlags } from '../operator-session.ts'
import { size } from '../../lib/text/index.ts'
import { cellText, formatTime, renderTable, type Json } from '../output/print.ts'
import type { CommandContext, Session } from '../session.ts'

export function createStatusCommand(context: CommandContext): CliCommand {
  return addOperatorOptions(
    new CliCommand('status')
      .description('Show the server status and what needs attention.')
      .notes(
        'The output shows the components of the server, its queues, load, disk space and recent problems.',
        'The exit code is 0 when the server is healthy, and 1 when something needs attention or no server runs.',
        '`svcctl status`, kept for existing installations, shows only whether each component runs.',
        'For readiness checks by programs, use `/readyz` on any port of the server.',
      )
      .examples('svc status', 'svc status --config-file /etc/svc/svc.conf', 'svc status -j'),
  ).action((flags: OperatorFlags) =>
    withOperatorSession(context, flags, async (session) => {
      const status = recordIn(await session.client.call('GET', '/status'))
      if (session.form === 'human') await session.print(describe(status, session))
      else await session.printMachine(status)
      return status['status'] === 'ok' ? exitCodes.ok : exitCodes.failed
    }),
  )
}

function describe(status: Json, { settings, terminalWidth }: Session): string {
  const attention = Array.isArray(status['attention']) ? status['attention'].map(textOf) : []
  const gauge = gaugesOf(status)
  const { api, auth, stream } = toObject(status['urls'])
  const pairs: [string, string][] = [
    ['version', textOf(status['version'])],
    ['pid', textOf(status['pid'])],
    [
      'started',
      `${formatTime(status['started_at'], settings.timezone)}, ${duration(Number(status['uptime_seconds']))} ago`,
    ],
    ['listeners', `api ${textOf(api)}, auth ${textOf(auth)}, stream ${textOf(stream)}`],
    ...accountRow(toObject(status['command_account'])),
    ...figures(status, gauge),
  ]
  const width = Math.max(...pairs.map(([name]) => name.length))
  const tables = [
    renderTable(
      ['component', 'state', 'about'],
      toList(status['components']).map((each) => cells(each, ['name', 'state', 'about'])),
      { terminalWidth },
    ),
    renderTable(
      ['queue', 'messages', 'limit'],
      toList(status['queues']).map((each) => cells(each, ['name', 'length', 'limit'])),
      { terminalWidth },
    ),
  ]
  const problems = toList(status['problems']).map((each) => `  ${textOf(each['line'])}\n`)
  return [
    attention.length === 0 ? 'The server is healthy.\n' : 'Needs attention:\n',
    ...attention.map((sentence) => `  ${sentence}\n`),
    '\n',
    ...pairs.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`),
    '\n',
    ...tables,
    ...(problems.length === 0 ? [] : ['\nRecent warnings and errors:\n', ...problems.slice(-MAX_PROBLEMS)]),
  ].join('')
}

/** The rest is in `-j`. */
const MAX_PROBLEMS = 10

/** None of an older server. */
function accountRow({ user, is_root: isRoot, remedy }: Json): [string, string][] {
  if (typeof user !== 'string') return []
  return [['account', `commands run as ${textOf(user)}${isRoot === true ? `. ${textOf(remedy)}` : ''}`]]
}

type ReadGauge = (key: string) => number | undefined

function gaugesOf(status: Json): ReadGauge {
  const gauges = toObject(status['gauges'])
  return (key) => (typeof gauges[key] === 'number' ? gauges[key] : undefined)
}

function figures(status: Json, gauge: ReadGauge): [string, string][] {
  const loop = toObject(status['event_loop'])
  const disk = status['disk'] === null ? undefined : toObject(status['disk'])
  const rows: [string, string | undefined][] = [
    [
      'running',
      join(gauge('actionrunner.slots.used'), (used) => `${used} of ${gauge('actionrunner.slots.size')} slots`),
    ],
    ['pending', join(gauge('executions.pending'), (count) => `${count} executions wait for an inquiry response`)],
    ['open streams', join(gauge('stream.connections'), String)],
    [
      'event loop',
      `${textOf(loop['mean_ms'])} ms delay on average, p99 ${textOf(loop['p99_ms'])} ms, max ${textOf(loop['max_ms'])} ms`,
    ],
    [
      'memory',
      join(
        gauge('process.memory.resident_bytes'),
        (bytes) => `${size(bytes)} resident, ${size(gauge('process.memory.heap_bytes') ?? 0)} heap`,
      ),
    ],
    [
      'database',
      join(
        gauge('database.file_bytes'),
        (bytes) =>
          `${size(bytes)}, plus ${size(gauge('database.log_bytes') ?? 0)} of write-ahead log${shrinking(gauge('database.reclaiming_bytes'))}`,
      ),
    ],
    [
      'disk',
      join(disk, ({ free_bytes: free, total_bytes: total }) => `${size(Number(free))} of ${size(Number(total))} free`),
    ],
    ['last cleanup', join(gauge('garbagecollector.last_round_age_seconds'), (seconds) => `${duration(seconds)} ago`)],
    ['last backup', join(gauge('backup.last_age_seconds'), (seconds) => `${duration(seconds)} ago`)],
  ]
  return rows.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]))
}

const join = <T>(value: T | undefined, text: (value: T) => string): string | undefined =>
  value === undefined ? undefined : text(value)

const cells = (row: Json, names: readonly string[]): string[] => names.map((name) => textOf(row[name]))

const textOf = (value: unknown): string => cellText(value)

/** `2 d 3 h`: the two greatest units. */
function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [Math.floor(seconds) % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  if (first === -1) return '0 s'
  return parts
    .slice(first, first + 2)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}

function shrinking(bytes = 0): string {
  return bytes === 0 ? '' : `; shrinking, ${size(bytes)} still to return`
}
