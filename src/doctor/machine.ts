/** The environment of the server: open files, programs, locale, time zone. */
import { accessSync, constants, readFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isUtf8Locale, localeOf } from '../lib/process/index.ts'
import { isTimeZone, machineTimeZone } from '../lib/calendar/index.ts'
import { ok, failedCheck, programOptions, warning, type HealthCheck, type CheckContext, type Result } from './check.ts'

const run = promisify(execFile)

/** For the server and some clients (docs/limits.md). */
const BASE_FILES = 512
/** Pipes and other descriptors of a running action. */
const FILES_PER_ACTION = 8

export const openFiles: HealthCheck = {
  name: 'open_files',
  run({ loaded: { config }, running }) {
    const limits = readFileSync(`/proc/${running?.pid ?? 'self'}/limits`, 'utf8')
    const [, text = ''] = /^Max open files\s+(\S+)/m.exec(limits) ?? []
    const needed = BASE_FILES + FILES_PER_ACTION * config.actionrunner.actions_pool_size
    const whose = running === undefined ? 'A server started from here' : 'The server'
    if (text === 'unlimited' || Number(text) >= needed) return [ok(`${whose} can open ${text} files.`)]
    return [
      warning(
        `${whose} can open ${text} files; ${config.actionrunner.actions_pool_size} running actions may need ${needed}.`,
        'Raise the limit before the start: LimitNOFILE=65536 in the systemd unit, or "ulimit -n 65536".',
      ),
    ]
  },
}

const TIMEOUT_MS = 10_000
/** As in `find-python.ts`. */
const MIN_PYTHON = [3, 8] as const

export const checkedPrograms: HealthCheck = {
  name: 'programs',
  async run(context) {
    const {
      loaded: { config },
      env,
    } = context
    const found: Result[] = []
    if (!isExecutable('/bin/sh')) {
      found.push(failedCheck('/bin/sh is missing, which runs commands.', 'Install a shell as /bin/sh.'))
    }
    found.push(...(await checkPython(config.actionrunner.python_binary || 'python3', context)))
    if (!isInPath('git', env)) {
      found.push(
        warning('git is not in the PATH of the server: it cannot install packs from repositories.', 'Install git.'),
      )
    }
    return found.length === 0 ? [ok('Shell, Python and git are available.')] : found
  },
}

async function checkPython(program: string, context: CheckContext): Promise<Result[]> {
  const remedy = 'Install Python 3 (on Debian: python3 python3-venv), or set actionrunner.python_binary.'
  const question = 'import sys; print("%d.%d" % sys.version_info[:2]); import venv, ensurepip'
  try {
    const { stdout } = await run(program, ['-c', question], programOptions(context, TIMEOUT_MS))
    const version = String(stdout).trim()
    const [major = 0, minor = 0] = version.split('.').map(Number)
    if (major === MIN_PYTHON[0] && minor >= MIN_PYTHON[1]) return []
    return [failedCheck(`${program} is Python ${version}; actions need ${MIN_PYTHON.join('.')} or newer.`, remedy)]
  } catch (error) {
    const hasAnswered = error instanceof Error && 'stdout' in error && /^3\.\d/.test(String(error.stdout))
    if (hasAnswered) {
      return [
        warning(`${program} has no venv module: the server cannot install packs that need Python libraries.`, remedy),
      ]
    }
    return [
      failedCheck(`Python actions cannot run: ${program} is not in the PATH of the server, or does not work.`, remedy),
    ]
  }
}

function isInPath(name: string, { PATH: path = '' }: NodeJS.ProcessEnv): boolean {
  return path.split(':').some((folder) => folder.startsWith('/') && isExecutable(join(folder, name)))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export const locale: HealthCheck = {
  name: 'locale',
  run({ env }) {
    if (isUtf8Locale(env)) return [ok(`The locale is ${localeOf(env)}.`)]
    return [
      warning(
        `The locale is ${localeOf(env)}: programs that actions run may fail on non-ASCII text.`,
        'Set LANG=C.UTF-8 in the environment of the server (systemd unit: Environment=LANG=C.UTF-8).',
      ),
    ]
  },
}

export const timeZone: HealthCheck = {
  name: 'time_zone',
  run({ loaded: { config }, env }) {
    const { TZ: given = '' } = env
    const name = given.replace(/^:/, '')
    if (name !== '' && !name.startsWith('/') && !isTimeZone(name)) {
      return [
        warning(
          `TZ is ${name}, which is not a time zone: programs that actions run use UTC.`,
          'Set TZ to a name such as Europe/Berlin, or unset it.',
        ),
      ]
    }
    const { local_timezone: configured } = config.timersengine
    const here = machineTimeZone()
    return [
      ok(
        configured === ''
          ? `Default time zone of timers: ${here}, that of this machine.`
          : `Default time zone of timers: ${configured} (timersengine.local_timezone). Time zone of this machine: ${here}.`,
      ),
    ]
  },
}
