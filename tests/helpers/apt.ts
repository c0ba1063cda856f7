import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Test files run side by side, and apt-get gives up at once when another one is at work. */
const LOCK = '/tmp/svc-test-apt.lock'

/** The lists on a fresh machine are empty or old. */
const SCRIPT = `[ -e "$2" ] && exit 0
install() { apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$1"; }
install "$1" || { apt-get update -qq && install "$1"; }`

/**
 * Makes sure that a program from Debian's packages is there: installs it when it is missing.
 *
 * Throws, rather than skipping what needs it, when it cannot; the message says what to install.
 */
export async function ensureDebianPackage(name: string, program: string): Promise<void> {
  if (existsSync(program)) return
  const todo = `These tests need ${program}; install the package "${name}" and run them again.`
  if (process.getuid?.() !== 0) throw new Error(`${todo} Only root can do that from here.`)
  try {
    await run('flock', [LOCK, 'sh', '-c', SCRIPT, 'sh', name, program], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      maxBuffer: 16 * 1024 * 1024,
    })
  } catch (error) {
    throw new Error(`${todo} apt-get could not: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
  if (!existsSync(program)) throw new Error(`The package "${name}" is installed, but there is no ${program}.`)
}
