/** What the machine gives to the server: open files, programs, language, time zone. */
import { accessSync, constants, readFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isUtf8Locale, localeOf } from '../lib/process/index.ts'
import { isTimeZone } from '../lib/calendar/index.ts'
import { ok, problem, programOptions, warning, type Check, type Patient, type Result } from './check.ts'

const run = promisify(execFile)

/** For the server itself, and for some clients (docs/limits.md). */
const BASE_FILES = 512
/** Pipes of a running action, and what else it needs. */
const FILES_PER_ACTION = 8

export const openFiles: Check = {
  name: 'open_files',
  look({ loaded: { config }, running }) {
    const limits = readFileSync(`/proc/${running?.pid ?? 'self'}/limits`, 'utf8')
    const [, text = ''] = /^Max open files\s+(\S+)/m.exec(limits) ?? []
    const needed = BASE_FILES + FILES_PER_ACTION * config.actionrunner.actions_pool_size
    const whose = running === undefined ? 'A server started from here' : 'The server'
    if (text === 'unlimited' || Number(text) >= needed) return [ok(`${whose} may have ${text} files open.`)]
    return [
      warning(
        `${whose} may have ${text} files open; with ${config.actionrunner.actions_pool_size} running actions it may need ${needed}.`,
        'Raise the limit before it is started: LimitNOFILE=65536 in its unit of systemd, or "ulimit -n 65536".',
      ),
    ]
  },
}

const ASK_MS = 10_000
/** As in `find-python.ts`. */
const LEAST_PYTHON = [3, 8] as const

export const programs: Check = {
  name: 'programs',
  async look(patient) {
    const {
      loaded: { config },
      env,
    } = patient
    const found: Result[] = []
    if (!isExecutable('/bin/sh')) {
      found.push(problem('There is no /bin/sh, which runs commands.', 'Install a shell there.'))
    }
    found.push(...(await lookAtPython(config.actionrunner.python_binary || 'python3', patient)))
    if (!isInPath('git', env)) {
      found.push(
        warning(
          'There is no git in the PATH of the server: packs cannot be installed from repositories.',
          'Install git.',
        ),
      )
    }
    return found.length === 0 ? [ok('Shell, Python and git are there.')] : found
  },
}

async function lookAtPython(program: string, patient: Patient): Promise<Result[]> {
  const remedy = 'Install Python 3 (on Debian: python3 python3-venv), or set actionrunner.python_binary.'
  const question = 'import sys; print("%d.%d" % sys.version_info[:2]); import venv, ensurepip'
  try {
    const { stdout } = await run(program, ['-c', question], programOptions(patient, ASK_MS))
    const version = String(stdout).trim()
    const [major = 0, minor = 0] = version.split('.').map(Number)
    if (major === LEAST_PYTHON[0] && minor >= LEAST_PYTHON[1]) return []
    return [problem(`${program} is Python ${version}; actions need ${LEAST_PYTHON.join('.')} or newer.`, remedy)]
  } catch (error) {
    const hasAnswered = error instanceof Error && 'stdout' in error && /^3\.\d/.test(String(error.stdout))
    if (hasAnswered) {
      return [warning(`${program} has no venv: packs that need Python libraries cannot be installed.`, remedy)]
    }
    return [
      problem(
        `Python actions cannot run: there is no ${program} in the PATH of the server, or it does not answer.`,
        remedy,
      ),
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

export const locale: Check = {
  name: 'locale',
  look({ env }) {
    if (isUtf8Locale(env)) return [ok(`The locale is ${localeOf(env)}.`)]
    return [
      warning(
        `The locale is ${localeOf(env)}: programs that actions run may not understand text beyond ASCII.`,
        'Start the server with LANG=C.UTF-8 in its environment (in a unit of systemd: Environment=LANG=C.UTF-8).',
      ),
    ]
  },
}

export const timeZone: Check = {
  name: 'time_zone',
  look({ loaded: { config }, env }) {
    const { TZ: given = '' } = env
    const name = given.replace(/^:/, '')
    if (name !== '' && !name.startsWith('/') && !isTimeZone(name)) {
      return [
        warning(
          `TZ is ${name}, which is no time zone: programs that actions run go by UTC.`,
          'Set TZ to a name such as Europe/Berlin, or leave it out.',
        ),
      ]
    }
    const here = Intl.DateTimeFormat().resolvedOptions().timeZone
    return [
      ok(
        `Timers that name no time zone go by ${config.timersengine.local_timezone} (timersengine.local_timezone), this machine by ${here}.`,
      ),
    ]
  },
}
