/** Which program listens on a port of this machine, as far as this account may see it. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { clip, escapeUnprintable } from '../lib/log/index.ts'
import { readRunFile } from './run-file.ts'

export interface PortHolder {
  pid: number
  /** Name of the program. */
  name: string
  /** Of a server of svc, as its run file says. */
  basePath: string | undefined
}

const LISTENING = '0A'
const MAX_NAME_LENGTH = 100
/** Folders of open files that are searched for a run file. */
const MAX_FOLDERS = 100

/** `process 4711 (nginx)`, `svc with the base path /srv/svc (process 4711)`, `a program of another account`. */
export function describeHolder(port: number): string {
  const holder = holderOf(port)
  if (holder === undefined) return 'a program of another account'
  const { pid, name, basePath } = holder
  return basePath === undefined ? `process ${pid} (${name})` : `svc with the base path ${basePath} (process ${pid})`
}

/** Undefined: nobody, or a process that this account cannot look into. */
export function holderOf(port: number): PortHolder | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = new Set(
    ['tcp', 'tcp6'].flatMap((table) =>
      readText(`/proc/net/${table}`)
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, , state]) => local?.endsWith(suffix) === true && state === LISTENING)
        .map((fields) => `socket:[${fields[9]}]`),
    ),
  )
  if (sockets.size === 0) return undefined
  for (const process of namesIn('/proc')) {
    if (!/^\d+$/.test(process)) continue
    const links = namesIn(`/proc/${process}/fd`).map((fd) => linkOf(`/proc/${process}/fd/${fd}`))
    if (!links.some((link) => sockets.has(link))) continue
    return { pid: Number(process), name: shown(nameOf(process)), basePath: basePathOf(Number(process), links) }
  }
  return undefined
}

/** A server has its database and its log files open, in its base path or in a folder of it. */
function basePathOf(pid: number, links: readonly string[]): string | undefined {
  const files = links.filter((link) => link.startsWith('/'))
  const folders = new Set(files.flatMap((file) => [dirname(file), dirname(dirname(file))]))
  const found = [...folders].slice(0, MAX_FOLDERS).find((folder) => readRunFile(folder)?.pid === pid)
  return found === undefined ? undefined : shown(found)
}

/** The name from the command line: Node calls its process MainThread. */
function nameOf(pid: string): string {
  const [program = ''] = readText(`/proc/${pid}/cmdline`).split('\0')
  return basename(program) || readText(`/proc/${pid}/comm`).trim()
}

const shown = (text: string): string => escapeUnprintable(clip(text, MAX_NAME_LENGTH))

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
