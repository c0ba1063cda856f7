/**
 * How the files that the process may have open are shared out. Without shares, clients could take them all, and no action
 * could be started any more.
 */
import { readFileSync } from 'node:fs'
import type { Config } from '../config/index.ts'
import type { Log } from '../lib/log/index.ts'
import { surplusOf } from './admission.ts'

/** For the database, the log, waiting interpreters, reading packs, and threads, of which there are more at times. */
const OWN_FILES = 96
/** The most that an action needs: its three streams, its report, its process, and as much again while it is started. */
const FILES_PER_ACTION = 8
/** There always are so many, if need be with too few files for everything at once. */
const MIN_CONNECTIONS = 8

export interface Shares {
  connections: number
  /** That run at the same time. */
  actions: number
}

/**
 * Gives actions what they want, up to a half; connections have what is left.
 *
 * @param limit of open files
 * @param surplusOf connections that are open besides so many
 */
export function shareFiles(limit: number, wanted: Shares, surplusOf: (connections: number) => number): Shares {
  const free = Math.max(0, limit - OWN_FILES)
  const actions = Math.min(wanted.actions, Math.max(1, Math.floor(free / 2 / FILES_PER_ACTION)))
  const left = free - actions * FILES_PER_ACTION
  const connections = Math.min(wanted.connections, Math.max(MIN_CONNECTIONS, left - surplusOf(left)))
  return { connections, actions }
}

/** The limit of open files of this process, which Node has raised as far as it may; unknown: `Infinity`. */
export function readFileLimit(): number {
  try {
    const [, soft] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined || soft === 'unlimited' ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}

/** How many connections and actions the server has at a time, as far as files can be opened for them; less is logged. */
export function shareFilesOf({ system, actionrunner }: Pick<Config, 'system' | 'actionrunner'>, log: Log): Shares {
  const wanted = { connections: system.max_connections, actions: actionrunner.actions_pool_size }
  const limit = readFileLimit()
  const shares = shareFiles(limit, wanted, surplusOf)
  if (shares.connections < wanted.connections || shares.actions < wanted.actions) {
    log.warning(
      'files.limited',
      `The limit of open files (${limit}) leaves room for ${shares.connections} connections and ${shares.actions} actions at a time; raise it with ulimit -n or LimitNOFILE, or lower system.max_connections and actionrunner.actions_pool_size`,
    )
  }
  return shares
}
