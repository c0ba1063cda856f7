/** The parameter `hosts`: a comma list of `host`, `host:port` and `[v6]:port`. */
import { writeJson } from '../../lib/json/index.ts'

export interface HostAddress {
  host: string
  port: number | undefined
  /** Key of the result: the host without its port, unless an earlier entry has the same host with another port. */
  label: string
}

/** Each host keeps a connection open during the execution. */
export const MAX_HOSTS = 1000

const BRACKETED = /^\[([^[\]]+)\](?::(\d{1,5}))?$/
const PLAIN = /^([^:[\]]+)(?::(\d{1,5}))?$/
/** More than one colon and no brackets: an IPv6 address without a port. */
const BARE_V6 = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%\w]*$/
/** No characters with a special meaning to other readers of the name: the known hosts file, other programs. */
const NAME = /^[\p{L}\p{N}_.:%-]+$/u

/** @returns a problem as a sentence, or the distinct hosts */
export function parseHosts(text: string): { hosts: HostAddress[] } | { problem: string } {
  const found = new Map<string, HostAddress>()
  const labels = new Set<string>()
  for (const item of text.split(',').map((part) => part.trim())) {
    if (item === '') continue
    const address = parseHost(item)
    if (address === undefined) {
      const form = 'use "host", "host:port" or "[address]:port", separated by commas'
      return {
        problem: `The parameter "hosts" has an entry ${writeJson(item.slice(0, 200))} that is no host; ${form}.`,
      }
    }
    const { host, port } = address
    const key = `${host.toLowerCase()} ${port ?? ''}`
    if (found.has(key)) continue
    if (found.size === MAX_HOSTS) return { problem: `The parameter "hosts" names more than ${MAX_HOSTS} hosts.` }
    const shown = host.includes(':') ? `[${host}]` : host
    const label = labels.has(host) ? `${shown}:${port ?? 22}` : host
    labels.add(host)
    found.set(key, { host, port, label })
  }
  return { hosts: [...found.values()] }
}

/** Parses one entry; undefined when it is not a host. */
export function parseHost(item: string): { host: string; port: number | undefined } | undefined {
  const match = BRACKETED.exec(item) ?? PLAIN.exec(item) ?? (BARE_V6.test(item) ? [item, item] : undefined)
  const host = match?.[1]
  if (host === undefined || host.startsWith('-') || !NAME.test(host)) return undefined
  const port = match?.[2] === undefined ? undefined : Number(match[2])
  return port !== undefined && (port < 1 || port > 65_535) ? undefined : { host, port }
}
