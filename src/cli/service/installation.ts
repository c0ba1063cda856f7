/** Installs and removes the systemd service. */
import { lstatSync, readlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { programNames } from '../program-names.ts'
import type { Host } from './host.ts'
import { accountName, paths, unitName, unitText } from './unit.ts'

/** What happens to each part, in the order it happens. */
export type Report = (part: string, what: string) => void

export interface Installation {
  host: Host
  /** Of the executable that is copied; undefined: it is left alone. */
  executable: string | undefined
  configuration: string
  report: Report
}

/** Further names of the executable, which lie beside it. */
export const links: readonly string[] = programNames
  .map((name) => join(dirname(paths.program), name))
  .filter((path) => path !== paths.program)

/** Idempotent. @returns whether something changed that the running service does not know of yet @throws CliFailure */
export function install({ host, executable, configuration, report }: Installation): boolean {
  const isNew = (isWritten: boolean): string => (isWritten ? 'written' : 'unchanged')
  const hasExecutable = executable !== undefined && host.copy(executable, paths.program)
  if (executable !== undefined) report(paths.program, isNew(hasExecutable))
  for (const path of links) report(path, isNew(host.link(basename(paths.program), path)))

  const known = host.findAccount(accountName)
  if (known === undefined) host.makeAccount(accountName, paths.state)
  const account = known ?? host.findAccount(accountName)
  report(`account ${accountName}`, known === undefined ? 'created' : 'unchanged')

  if (lstatSync(host.at(paths.configuration), { throwIfNoEntry: false }) !== undefined) {
    report(paths.configuration, 'kept')
  } else {
    // The file may later hold passwords of directories, which the service must read.
    host.write(paths.configuration, configuration, 0o640, account?.gid)
    report(paths.configuration, 'written')
  }

  const hasUnit = host.write(paths.unit, unitText, 0o644)
  report(paths.unit, isNew(hasUnit))
  if (hasUnit && host.hasSystemd) host.systemctl('daemon-reload')
  return hasExecutable || hasUnit
}

/** Idempotent. Data stays unless it is purged. @throws CliFailure */
export function uninstall(host: Host, isPurge: boolean, report: Report): void {
  const remove = (path: string): void => report(path, host.remove(path) ? 'removed' : 'not found')
  if (host.hasSystemd) {
    const isStopped = host.systemctl('disable', '--now', unitName)
    report(`service ${unitName}`, isStopped ? 'stopped and disabled' : 'not found')
  }
  remove(paths.unit)
  if (host.hasSystemd) host.systemctl('daemon-reload')
  for (const path of links) if (isOurLink(host.at(path))) remove(path)
  remove(paths.program)
  const kept = [dirname(paths.configuration), paths.logs, paths.state]
  for (const path of kept) {
    if (isPurge) remove(path)
    else if (lstatSync(host.at(path), { throwIfNoEntry: false }) !== undefined) report(path, 'kept')
  }
  if (host.findAccount(accountName) === undefined) return
  if (isPurge) host.removeAccount(accountName)
  report(`account ${accountName}`, isPurge ? 'removed' : 'kept')
}

function isOurLink(path: string): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false })
  return there?.isSymbolicLink() === true && readlinkSync(path) === basename(paths.program)
}
