/** Signals processes of other users when the server is not root (contract 03, 3.8: "through sudo when needed"). */
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { Launcher } from './launcher.ts'
import type { ProcessRow } from './process-table.ts'

export interface SudoAccess {
  /** Absolute path of the sudo program. */
  program: string
  /** Environment for it. */
  env: Record<string, string>
  /** Sent on stdin when sudo asks; absent when it does not. */
  password?: string
  /** Account of the processes, tried when sudo refuses root. */
  user?: string
}

/** Time limit of one call of sudo; a refused password alone takes two seconds. */
const SUDO_LIMIT_MS = 5000
/** Keeps the argument list far below the system's limit. */
const MAX_PROCESSES_PER_CALL = 1000

/** Compares the start time (field 22 of stat) just before the signal, as the unprivileged path does. */
const KILL_SCRIPT = `
signal=$1
shift
for target; do
  read -r line < "/proc/\${target%%:*}/stat" || continue
  set -- \${line##*) }
  [ "\${20}" = "\${target##*:}" ] && kill -s "$signal" "\${target%%:*}"
done 2>/dev/null
exit 0
`

/** Signals each process that is still the same. Does not report success: the next look at `/proc` shows it. */
export async function killThroughSudo(
  launcher: Launcher,
  access: SudoAccess,
  signal: 'SIGTERM' | 'SIGKILL',
  rows: ProcessRow[],
): Promise<void> {
  for (let start = 0; start < rows.length; start += MAX_PROCESSES_PER_CALL) {
    const targets = rows.slice(start, start + MAX_PROCESSES_PER_CALL).map((row) => `${row.pid}:${row.startTime}`)
    await runSudo(launcher, access, ['/bin/sh', '-c', KILL_SCRIPT, 'sh', signal.slice(3), ...targets])
  }
}

/** Pid and marker of the processes that carry one of the values. */
export async function markersThroughSudo(
  launcher: Launcher,
  access: SudoAccess,
  pids: number[],
  name: string,
  values: string[],
): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  const patterns = values.flatMap((value) => ['-e', `${name}=${value}`])
  for (let start = 0; start < pids.length; start += MAX_PROCESSES_PER_CALL) {
    const files = pids.slice(start, start + MAX_PROCESSES_PER_CALL).map((pid) => `/proc/${pid}/environ`)
    const output = await runSudo(launcher, access, ['grep', '-zosHxF', ...patterns, '--', ...files])
    for (const match of output.split('\0')) {
      const [path, variable] = match.split(':', 2)
      if (path === undefined || variable === undefined) continue
      found.set(Number(path.split('/')[2]), variable.slice(name.length + 1))
    }
  }
  return found
}

/** Output of the command; empty when sudo refuses it. */
async function runSudo(launcher: Launcher, access: SudoAccess, command: string[]): Promise<string> {
  const asked = access.password === undefined ? ['-n'] : ['-k', '-S', '-p', '']
  for (const user of access.user === undefined ? [undefined] : [undefined, access.user]) {
    try {
      const child = await launcher.spawn({
        file: access.program,
        args: [...asked, ...(user === undefined ? [] : ['-u', user]), '--', ...command],
        env: access.env,
        ...(access.password === undefined ? {} : { stdin: Buffer.from(`${access.password}\n`) }),
      })
      child.stderr.resume()
      const finished = Promise.all([text(child.stdout), child.exited])
      const limit = new AbortController()
      const outcome = await Promise.race([
        finished.catch(() => undefined),
        setTimeout(SUDO_LIMIT_MS, undefined, { signal: limit.signal }).catch(() => undefined),
      ])
      limit.abort()
      child.stdout.destroy()
      child.stderr.destroy()
      if (outcome === undefined) continue
      const [output, exit] = outcome
      // Exit code 1 means "not found" for grep and "not allowed" for sudo; the output tells which.
      if (output !== '' || exit.code === 0) return output
    } catch {
      // The process could not start; the survivors are reported.
    }
  }
  return ''
}
