import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Makes sure that a program from Debian's packages is there: installs it when it is missing.
 *
 * Throws, rather than skipping what needs it, when it cannot; the message says what to install.
 */
export async function ensureDebianPackage(name: string, program: string): Promise<void> {
  if (existsSync(program)) return
  const todo = `These tests need ${program}; install the package "${name}" and run them again.`
  if (process.getuid?.() !== 0) throw new Error(`${todo} Only root can do that from here.`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = ['install', '-y', '-qq', '--no-install-recommends', name]
  try {
    // The lists on a fresh machine are empty or old.
    await run('apt-get', install, { env }).catch(async () => {
      await run('apt-get', ['update', '-qq'], { env })
      await run('apt-get', install, { env })
    })
  } catch (error) {
    throw new Error(`${todo} apt-get could not: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
  if (!existsSync(program)) throw new Error(`The package "${name}" is installed, but there is no ${program}.`)
}
