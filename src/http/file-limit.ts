/**
 * Divides the file descriptors of the process between connections and actions. Without shares, clients could use them
 * all and no action could start.
 */
import { readFileSync } from 'node:fs'
import type { Config } from '../config/index.ts'
import type { Log } from '../lib/log/index.ts'
import { surplusOf } from './admission.ts'

/** For the database, the log, idle interpreters, reading packs, and threads. */
const OWN_FILES = 96
/** The most that an action needs: its three streams, its report, its process, and as many again while it starts. */
const FILES_PER_ACTION = 8
/** The least number of connections, even when there are too few descriptors for everything. */
const MIN_CONNECTIONS = 8
/** With fewer, something may fail for want of a descriptor. */
const MIN_FILES = OWN_FILES + FILES_PER_ACTION + MIN_CONNECTIONS

export interface Shares {
  connections: number
  /** Actions that run at the same time. */
  actions: number
}

/**
 * Gives actions what they want, up to half of the descriptors, and connections the rest.
 *
 * @param limit of open files
 * @param surplusOf connections that stay open above a number of connections
 */
export function shareFiles(limit: number, wanted: Shares, surplusOf: (connections: number) => number): Shares {
  const free = Math.max(0, limit - OWN_FILES)
  const actions = Math.min(wanted.actions, Math.max(1, Math.floor(free / 2 / FILES_PER_ACTION)))
  const left = free - actions * FILES_PER_ACTION
  const connections = Math.min(wanted.connections, Math.max(MIN_CONNECTIONS, left - surplusOf(left)))
  return { connections, actions }
}

/** What is wrong with a limit of open files; undefined: it is enough to run at all. */
export function tooFewFiles(limit: number): string | undefined {
  if (limit >= MIN_FILES) return undefined
  return `The limit of open files (${limit}) is below ${MIN_FILES}: actions and requests may fail. Raise it with ulimit -n or LimitNOFILE`
}

/** The limit of open files of this process, which Node raises to the hard limit; unknown: `Infinity`. */
export function readFileLimit(): number {
  try {
    const [, soft] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined || soft === 'unlimited' ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}

/**
 * The number of connections and actions that the descriptors allow. Logs a warning when that is fewer than configured.
 */
export function shareFilesOf({ system, actionrunner }: Pick<Config, 'system' | 'actionrunner'>, log: Log): Shares {
  const wanted = { connections: system.max_connections, actions: actionrunner.actions_pool_size }
  const limit = readFileLimit()
  const shares = shareFiles(limit, wanted, surplusOf)
  const problem = tooFewFiles(limit)
  if (problem !== undefined) log.warning('files.too_few', problem)
  else if (shares.connections < wanted.connections || shares.actions < wanted.actions) {
    log.warning(
      'files.limited',
      `The limit of open files (${limit}) leaves room for ${shares.connections} connections and ${shares.actions} actions at a time; raise it with ulimit -n or LimitNOFILE, or lower system.max_connections and actionrunner.actions_pool_size`,
    )
  }
  return shares
}
