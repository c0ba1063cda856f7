/** Where the programs are that take mails. */
import { accessSync, constants } from 'node:fs'
import { basename, delimiter, isAbsolute, join } from 'node:path'

/** Programs with the interface of sendmail. Any other program would let a user who can only send mail run anything. */
export const MAIL_PROGRAMS = ['sendmail', 'msmtp', 'ssmtp', 'esmtp', 'exim', 'exim4', 'dma', 'nullmailer-inject']
const USUAL_FOLDERS = ['/usr/sbin', '/usr/lib', '/usr/bin', '/usr/local/sbin', '/usr/local/bin']

/**
 * @param given a name or an absolute path; empty: `sendmail`
 * @param searchPath `PATH`
 */
export function findMailProgram(
  given: string,
  searchPath: string,
): { path: string } | { problem: 'unknown' | 'missing'; name: string } {
  const name = given === '' ? 'sendmail' : basename(given)
  if (!MAIL_PROGRAMS.includes(name)) return { problem: 'unknown', name }
  const inPath = searchPath.split(delimiter).filter(isAbsolute)
  const candidates = isAbsolute(given) ? [given] : [...USUAL_FOLDERS, ...inPath].map((at) => join(at, name))
  const path = candidates.find(isExecutable)
  return path === undefined ? { problem: 'missing', name } : { path }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
