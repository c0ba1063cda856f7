/** `svc doctor`: checks the configuration and this machine. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Argument } from 'commander'
import { cliProcess, widthOf } from '../cli-process.ts'
import { accountOf, otherAccountOf } from '../../lib/process/index.ts'
import type { CheckContext, ConfigProblem, Finding } from '../../doctor/index.ts'
import type { RunFile } from '../../core/run-file.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toList, toObject } from '../connection/responses.ts'
import {
  FIRST_POLL_MS,
  getExecution,
  isFinalRecord,
  POLL_GROWTH,
  MAX_POLL_MS,
  recordStatusOf,
} from '../executions/calls.ts'
import { findServer } from '../control/server.ts'
import { exitCodes } from '../exit-codes.ts'
import { addServerConfigOption, loadServerSettings, withSocketSession } from '../operator-session.ts'
import { addCommonOptionsWithoutFile, type CommonFlags } from '../options.ts'
import { printable, renderTable, toJson } from '../output/print.ts'
import { withProgress } from '../output/progress.ts'
import { toYaml } from '../output/yaml.ts'
import { listRecords } from '../records.ts'
import type { CommandContext } from '../session.ts'

interface DoctorFlags extends Omit<CommonFlags, 'configFile'> {
  configFile?: string[]
  fromSt2?: string
}

/** Named here too, so that help and completion need not load the checks. */
export const checkNames = [
  'configuration',
  'settings',
  'server',
  'permissions',
  'account',
  'disk',
  'database',
  'clock',
  'listeners',
  'certificates',
  'open_files',
  'programs',
  'environments',
  'configurations',
  'locale',
  'time_zone',
  'execution',
] as const

/** An action that takes longer than this is reported as a failure. */
const PROBE_MS = 60_000
/** Whose configurations are looked at. */
const MAX_PACKS = 2_000

export function createDoctorCommand(context: CommandContext): CliCommand {
  const command = new CliCommand('doctor')
    .description('Check the configuration and this machine, and suggest fixes.')
    .addArgument(new Argument('[check...]', 'checks to run (default: all)').choices(checkNames))
    .option('--from-st2 <folder>', 'check a StackStorm installation instead, as svc migrate check does')
    .completions({ '--from-st2': 'file' })
  return addServerConfigOption(addCommonOptionsWithoutFile(command))
    .notes(
      'It checks the configuration for errors and unsafe settings. It also checks permissions, the account of commands, disks, the database, the clock, ports, certificates, limits, programs, Python environments and configurations of packs, the locale and the time zone. It works with and without a running server. If the server runs, it also runs a test execution of core.local.',
      'It changes nothing. Run it as root or as the account of the server; checks that need more permissions are skipped. It checks this machine only and ignores addresses and credentials.',
      'The exit code is 0 when all checks pass, and 1 otherwise.',
    )
    .examples('svc doctor', 'svc doctor disk clock -j')
    .action(async (names: string[], flags: DoctorFlags) => {
      const { fromSt2, configFile: _file, ...common } = flags
      if (fromSt2 !== undefined) return (await import('./migrate.ts')).checkFolder(context, fromSt2, common)
      const findings = await withProgress('Checking', () => find(context, names, flags))
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
  let loaded: CheckContext['loaded']
  try {
    loaded = await loadServerSettings(flags.configFile)
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error
    const remedy = 'Correct it; svc.conf.example documents every option. The other checks need a valid configuration.'
    return error.problems.map((message) => ({ check: 'configuration', state: 'problem', message, remedy }))
  }
  const { base_path: basePath } = loaded.config.system
  const running = findServer(basePath)
  const { runChecks } = await import('../../doctor/index.ts')
  const probe = (): ReturnType<CheckContext['probe']> => runProbe(context, flags, basePath)
  let status: ReturnType<CheckContext['status']> | undefined
  const askOnce = (): ReturnType<CheckContext['status']> => (status ??= readStatus(context, flags, basePath))
  const account = accountOfServer(running, basePath)
  const configProblems = (): ReturnType<CheckContext['configProblems']> => readConfigProblems(context, flags, basePath)
  const env = environmentOf(running)
  return runChecks(
    { loaded, running, env, account, probe, status: askOnce, configProblems, now: () => new Date() },
    names,
  )
}

function accountOfServer(running: RunFile | undefined, basePath: string): CheckContext['account'] {
  if (process.getuid?.() !== 0) return undefined
  return (running === undefined ? undefined : accountOf(running.pid)) ?? otherAccountOf(basePath)
}

/** The checks apply to the programs, locale and time zone of the server, not to those of this shell. */
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
): ReturnType<CheckContext['probe']> {
  let found: Awaited<ReturnType<CheckContext['probe']>> = { failure: 'the test did not run.' }
  try {
    await withSocketSession(context, flags, basePath, async (session) => {
      const begun = performance.now()
      const elapsed = (): number => Math.round(performance.now() - begun)
      const body = { action: 'core.local', parameters: { cmd: 'date -R' } }
      const { id } = recordIn(await session.client.call('POST', '/executions', { body }))
      let execution = await getExecution(session, textOrEmpty(id))
      for (let pause = FIRST_POLL_MS; !isFinalRecord(recordStatusOf(execution)) && elapsed() < PROBE_MS;) {
        await delay(pause)
        pause = Math.min(MAX_POLL_MS, pause * POLL_GROWTH)
        execution = await getExecution(session, textOrEmpty(id))
      }
      const isGood = toObject(execution['result'])['failed'] === false
      found = isGood
        ? { milliseconds: elapsed() }
        : { failure: `execution ${textOrEmpty(id)} is ${recordStatusOf(execution)}.` }
      return exitCodes.ok
    })
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) }
  }
  return found
}

async function readConfigProblems(
  context: CommandContext,
  { configFile: _file, ...flags }: DoctorFlags,
  basePath: string,
): ReturnType<CheckContext['configProblems']> {
  const found: ConfigProblem[] = []
  try {
    await withSocketSession(context, flags, basePath, async (session) => {
      const query = { include_attributes: 'config_problem' }
      const { records } = await listRecords(session, '/packs', query, MAX_PACKS)
      for (const { ref, config_problem: problem } of records)
        if (typeof problem === 'string') found.push({ pack: textOrEmpty(ref), problem })
      return exitCodes.ok
    })
  } catch {
    return undefined
  }
  return found
}

async function readStatus(
  context: CommandContext,
  { configFile: _file, ...flags }: DoctorFlags,
  basePath: string,
): ReturnType<CheckContext['status']> {
  let found: Awaited<ReturnType<CheckContext['status']>>
  try {
    await withSocketSession(context, flags, basePath, async (session) => {
      const status = recordIn(await session.client.call('GET', '/status'))
      const { 'database.reclaiming_bytes': bytes, 'rules.late': late } = toObject(status['gauges'])
      const { user, is_root: isRoot, remedy } = toObject(status['command_account'])
      found = {
        notReady: toList(status['not_ready']).map(({ reason, problem }) => ({
          reason: textOrEmpty(reason),
          problem: textOrEmpty(problem),
        })),
        reclaimingBytes: typeof bytes === 'number' ? bytes : 0,
        lateRules: typeof late === 'number' ? late : 0,
        growingTraces: toList(status['growing_traces']).map(({ id }) => textOrEmpty(id)),
        cutTraces: toList(status['cut_traces']).map(({ id, rule }) => ({
          id: textOrEmpty(id),
          rule: textOrEmpty(rule),
        })),
        commandAccount:
          typeof user === 'string' ? { user, isRoot: isRoot === true, remedy: textOrEmpty(remedy) } : undefined,
      }
      return exitCodes.ok
    })
  } catch {
    // Another check covers whether it answers.
    return undefined
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
  const verdict = count === 0 ? 'No problems found.' : count === 1 ? '1 problem found.' : `${count} problems found.`
  return `${table}${verdict}\n`
}

/** Without a terminal. */
const PLAIN_WIDTH = 120
