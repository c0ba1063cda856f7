/** `svc doctor`: what should be changed on this machine. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Argument } from 'commander'
import { cliProcess, widthOf } from '../cli-process.ts'
import { accountOf, otherAccountOf } from '../../lib/process/index.ts'
import type { Finding, Patient } from '../../doctor/index.ts'
import type { RunFile } from '../../core/run-file.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOf, toObject } from '../connection/answers.ts'
import { FIRST_POLL_MS, getExecution, isFinal, POLL_GROWTH, SLOWEST_POLL_MS, statusOf } from '../executions/calls.ts'
import { findServer } from '../control/server.ts'
import { exitCodes } from '../exit-codes.ts'
import { addServerConfigOption, loadServerSettings, withSocketSession } from '../operator-session.ts'
import { addCommonOptionsWithoutFile, type CommonFlags } from '../options.ts'
import { printable, renderTable, toJson } from '../output/print.ts'
import { withProgress } from '../output/progress.ts'
import { toYaml } from '../output/yaml.ts'
import type { CommandContext } from '../session.ts'

interface DoctorFlags extends Omit<CommonFlags, 'configFile'> {
  configFile?: string[]
}

/** Named here too, so that help and completion need not load the checks. */
export const checkNames = [
  'configuration',
  'settings',
  'server',
  'permissions',
  'disk',
  'database',
  'clock',
  'listeners',
  'certificates',
  'open_files',
  'programs',
  'locale',
  'time_zone',
  'execution',
] as const

/** Somebody waits, and an action that has not ended by then is an answer too. */
const PROBE_MS = 60_000

export function createDoctorCommand(context: CommandContext): CliCommand {
  const command = new CliCommand('doctor')
    .description('Look for what should be changed on this machine, and tell what to do about it.')
    .addArgument(new Argument('[check...]', 'only these (default: all)').choices(checkNames))
  return addServerConfigOption(addCommonOptionsWithoutFile(command))
    .notes(
      'It looks at the configuration and what in it is not safe, permissions, disks, the database, the clock, ports, certificates, limits, programs, locale and time zone, before the server is started as well as while it runs. Of a server that runs it also has the action core.local executed.',
      'It changes nothing. Run it as root or as the account of the server; what another account may not see is skipped. It looks at this machine alone: addresses and credentials are not used.',
      'It ends with 0 when nothing has to be changed, and with 1 otherwise.',
    )
    .examples('svc doctor', 'svc doctor disk clock -j')
    .action(async (names: string[], flags: DoctorFlags) => {
      const findings = await withProgress('Looking', () => find(context, names, flags))
      const toBeChanged = findings.filter(({ state }) => state === 'warning' || state === 'problem')
      const status = toBeChanged.length === 0 ? 'ok' : 'attention'
      const answer = { status, findings }
      if (flags.json === true) cliProcess().stdout.write(`${toJson(answer)}\n`)
      else if (flags.yaml === true) cliProcess().stdout.write(`---\n${toYaml(answer, { sortKeys: true })}`)
      else cliProcess().stdout.write(describe(findings, toBeChanged.length))
      context.setExitCode(toBeChanged.length === 0 ? exitCodes.ok : exitCodes.failed)
    })
}

async function find(context: CommandContext, names: readonly string[], flags: DoctorFlags): Promise<Finding[]> {
  const { ConfigProblems } = await import('../../config/load.ts')
  let loaded: Patient['loaded']
  try {
    loaded = await loadServerSettings(flags.configFile)
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error
    const remedy = 'Correct it; svc.conf.example tells about every option. Without it nothing else can be looked at.'
    return error.problems.map((message) => ({ check: 'configuration', state: 'problem', message, remedy }))
  }
  const { base_path: basePath } = loaded.config.system
  const running = findServer(basePath)
  const { examine } = await import('../../doctor/index.ts')
  const probe = (): ReturnType<Patient['probe']> => runProbe(context, flags, basePath)
  const account = accountOfServer(running, basePath)
  return examine({ loaded, running, env: environmentOf(running), account, probe, now: () => new Date() }, names)
}

function accountOfServer(running: RunFile | undefined, basePath: string): Patient['account'] {
  if (process.getuid?.() !== 0) return undefined
  return (running === undefined ? undefined : accountOf(running.pid)) ?? otherAccountOf(basePath)
}

/** Its programs, its locale and its time zone are what counts, not those of whoever looks. */
function environmentOf(running: RunFile | undefined): NodeJS.ProcessEnv {
  if (running === undefined) return cliProcess().env
  try {
    const lines = readFileSync(`/proc/${running.pid}/environ`, 'utf8').split('\0')
    return Object.fromEntries(lines.flatMap((line) => (line.includes('=') ? [splitOnce(line)] : [])))
  } catch {
    return cliProcess().env
  }
}

function splitOnce(line: string): [string, string] {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}

async function runProbe(
  context: CommandContext,
  { configFile: _file, ...flags }: DoctorFlags,
  basePath: string,
): ReturnType<Patient['probe']> {
  let found: Awaited<ReturnType<Patient['probe']>> = { failure: 'nobody has asked.' }
  try {
    await withSocketSession(context, flags, basePath, async (session) => {
      const begun = performance.now()
      const elapsed = (): number => Math.round(performance.now() - begun)
      const body = { action: 'core.local', parameters: { cmd: 'date -R' } }
      const { id } = recordIn(await session.client.call('POST', '/executions', { body }))
      let execution = await getExecution(session, textOf(id))
      for (let pause = FIRST_POLL_MS; !isFinal(statusOf(execution)) && elapsed() < PROBE_MS;) {
        await delay(pause)
        pause = Math.min(SLOWEST_POLL_MS, pause * POLL_GROWTH)
        execution = await getExecution(session, textOf(id))
      }
      const isGood = toObject(execution['result'])['failed'] === false
      found = isGood ? { milliseconds: elapsed() } : { failure: `execution ${textOf(id)} is ${statusOf(execution)}.` }
      return exitCodes.ok
    })
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) }
  }
  return found
}

function describe(findings: readonly Finding[], count: number): string {
  const rows = findings.map(({ check, state, message, remedy }) => [
    check,
    state,
    printable(remedy === undefined ? message : `${message}\n→ ${remedy}`),
  ])
  const terminalWidth = widthOf(cliProcess().stdout) ?? PLAIN_WIDTH
  const table = renderTable(['check', 'state', 'finding'], rows, { terminalWidth })
  const verdict =
    count === 0
      ? 'Nothing has to be changed.'
      : count === 1
        ? 'One thing should be changed.'
        : `${count} things should be changed.`
  return `${table}${verdict}\n`
}

/** Where there is no terminal. */
const PLAIN_WIDTH = 120
