/** Decides once, at start, under which account commands run (contract 03, 3.7). */
import { accessSync, constants } from 'node:fs'
import { userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Launcher } from './launcher.ts'

export interface SystemUserDecision {
  /**
   * `direct`: the server runs as the system user already. `sudo`: commands reach the system user through sudo.
   * `process-user`: the system user is out of reach, commands run as the server does.
   */
  mode: 'direct' | 'sudo' | 'process-user'
  systemUser: string
  /** The account of the server. */
  processUser: string
  isRoot: boolean
  doesSystemUserExist: boolean
  /** Absolute path of sudo; absent when it is not installed. */
  sudoProgram?: string
  /** Why commands run as the process user, for a WARNING; only with mode `process-user`. */
  reason?: string
}

/** The account that local commands run as. */
export interface CommandAccount {
  user: string
  /** Whether it may do everything on this machine. */
  isRoot: boolean
  /** How to change that; empty when it is not root. */
  remedy: string
}

export function commandAccountOf(decision: SystemUserDecision): CommandAccount {
  const { mode, systemUser, processUser } = decision
  const user = mode === 'sudo' ? systemUser : processUser
  const isRoot = mode === 'sudo' ? systemUser === 'root' : decision.isRoot
  return { user, isRoot, remedy: isRoot ? remedyOf(decision) : '' }
}

function remedyOf({ mode, systemUser, doesSystemUserExist, sudoProgram }: SystemUserDecision): string {
  const other = 'set system_user.user to an account without privileges'
  if (mode !== 'process-user') return `Set system_user.user to an account without privileges, and restart the server.`
  if (!doesSystemUserExist)
    return `Create the account (useradd --system --create-home ${systemUser}) or ${other}, and restart the server.`
  if (sudoProgram === undefined) return `Install sudo, or start the server as "${systemUser}".`
  return `Let root use sudo for "${systemUser}" without a password, or start the server as "${systemUser}".`
}

/** A sudo that blocks, such as on a directory server that does not answer, must not keep the server from starting. */
const PROBE_LIMIT_MS = 5000

export async function decideSystemUser(
  launcher: Launcher,
  systemUser: string,
  env: Record<string, string>,
  processUser: string = processUserName(),
): Promise<SystemUserDecision> {
  const isRoot = process.getuid?.() === 0
  const sudoProgram = findProgram('sudo', env['PATH'])
  const base = {
    systemUser,
    processUser,
    isRoot,
    ...(sudoProgram === undefined ? {} : { sudoProgram }),
  }
  if (processUser === systemUser) return { ...base, mode: 'direct', doesSystemUserExist: true }
  const idProgram = findProgram('id', env['PATH'])
  const doesSystemUserExist =
    idProgram !== undefined && (await exitCodeOf(launcher, idProgram, ['-u', '--', systemUser], env)) === 0
  const refuse = (reason: string): SystemUserDecision => ({
    ...base,
    mode: 'process-user',
    doesSystemUserExist,
    reason,
  })

  if (!doesSystemUserExist) return refuse(`The account "${systemUser}" does not exist on this host`)
  if (sudoProgram === undefined)
    return refuse(`sudo is not installed, so commands cannot switch to the account "${systemUser}"`)
  const code = await exitCodeOf(
    launcher,
    sudoProgram,
    ['-n', '-E', '-H', '-u', systemUser, '--', 'bash', '-c', ':'],
    env,
  )
  if (code === 0) return { ...base, mode: 'sudo', doesSystemUserExist }
  return refuse(`sudo does not let "${processUser}" run bash as "${systemUser}" without a password`)
}

/** Whether sudo runs bash without asking for a password now. */
export async function isSudoPasswordless(
  launcher: Launcher,
  sudoProgram: string,
  user: string | undefined,
  env: Record<string, string>,
): Promise<boolean> {
  // -k ignores cached credentials.
  const args = ['-n', '-k', '-E', ...(user === undefined ? [] : ['-u', user]), '--', 'bash', '-c', ':']
  return (await exitCodeOf(launcher, sudoProgram, args, env)) === 0
}

function processUserName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run under a uid without an account.
    return String(process.getuid?.() ?? '')
  }
}

/** Searches the usual directories too: a service may start with a minimal PATH. */
function findProgram(name: string, path: string | undefined): string | undefined {
  const folders = [...(path ?? '').split(delimiter), '/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']
  for (const folder of folders) {
    if (!folder.startsWith('/')) continue
    const candidate = join(folder, name)
    try {
      accessSync(candidate, constants.X_OK)
      return candidate
    } catch {
      continue
    }
  }
  return undefined
}

async function exitCodeOf(
  launcher: Launcher,
  file: string,
  args: string[],
  env: Record<string, string>,
): Promise<number | null> {
  try {
    const child = await launcher.spawn({ file, args, env })
    child.stdout.resume()
    child.stderr.resume()
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, PROBE_LIMIT_MS, undefined)
    })
    const exit = await Promise.race([child.exited, limit])
    clearTimeout(timer)
    child.stdout.destroy()
    child.stderr.destroy()
    return exit?.code ?? null
  } catch {
    return null
  }
}
