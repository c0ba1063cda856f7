import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Test files run side by side, and apt-get gives up at once when another one is at work. */
const LOCK = '/tmp/svc-test-apt.lock'

/** The lists on a fresh machine are empty or old. An index of manual pages would take longer than the program. */
const SCRIPT = `[ -e "$2" ] && exit 0
install() {
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 \
    -o 'DPkg::Options::=--path-exclude=/usr/share/man/*' "$1"
}
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

const EXTRACT = `[ -e "$2" ] && exit 0
mkdir -p "$3.new" && cd "$3.new" && rm -f ./*.deb
download() { apt-get download -qq -o DPkg::Lock::Timeout=300 "$1"; }
download "$1" || { apt-get update -qq && download "$1"; }
dpkg-deb -x ./*.deb . && rm -rf "$3" && mv "$3.new" "$3"`

/**
 * One program out of a Debian package that is not installed for it, because with what it depends on it is large, or because
 * it would start servers.
 *
 * @param path in the package, such as `usr/bin/promtool`
 * @returns where it is
 */
export async function extractDebianProgram(name: string, path: string): Promise<string> {
  const folder = `/tmp/svc-test-${name}`
  const program = join(folder, path)
  if (existsSync(program)) return program
  try {
    await run('flock', [LOCK, 'sh', '-ec', EXTRACT, 'sh', name, program, folder], { maxBuffer: 16 * 1024 * 1024 })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`These tests need ${path} of the package "${name}", which apt-get could not download: ${why}`, {
      cause: error,
    })
  }
  return program
}
