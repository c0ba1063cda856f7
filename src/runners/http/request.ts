/** Builds the request from the parameters of an http-request action (contract 02, 2.10; 03, 3.6 and 3.9). */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { isAbsolute, relative } from 'node:path'
import { readContainedBytes } from '../../lib/files/index.ts'
import { version } from '../../core/version.ts'
import type { RunContext } from '../runner.ts'
import { HttpProblem, shownUrl, type HttpRequest, type RequestProxy } from './exchange.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

/** Headers that describe the transfer; svc sets them itself. */
const OWN_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** @throws HttpProblem */
export async function buildRequest(context: RunContext, maxFileBytes: number): Promise<HttpRequest> {
  const parameters = { ...context.actionParameters, ...context.runnerParameters }
  const url = urlOf(parameters['url'], 'url')
  for (const [name, value] of entriesOf(parameters, 'params')) {
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, textOf(one))
  }
  const headers = new Map<string, string>([
    ['user-agent', `svc/${version}`],
    ['svc-action', context.actionRef],
  ])
  for (const [name, value] of entriesOf(parameters, 'headers')) setHeader(headers, name, textOf(value))
  setCookies(headers, parameters)
  setCredentials(headers, parameters, url)
  url.username = ''
  url.password = ''
  url.hash = ''

  const body = await bodyOf(context, parameters, headers, maxFileBytes)
  const method = textParameter(parameters, 'method')?.toUpperCase() ?? (body === undefined ? 'GET' : 'POST')
  if (!/^[A-Z]{1,20}$/.test(method) || method === 'CONNECT') {
    throw new HttpProblem('The parameter "method" is not a supported HTTP method')
  }
  const proxyOf = (name: string): RequestProxy | undefined => {
    const given = textParameter(parameters, name)
    return given === undefined ? undefined : { url: urlOf(given, name), isTrusted: false }
  }
  const proxies = { http: proxyOf('http_proxy'), https: proxyOf('https_proxy') }
  return {
    method,
    url,
    headers,
    body,
    followsRedirects: parameters['allow_redirects'] === true,
    verifiesCertificates: parameters['verify_ssl_cert'] !== false,
    proxyFor: ({ protocol }) => (protocol === 'https:' ? proxies.https : proxies.http),
    checkUrl: hostCheck(parameters),
  }
}

function urlOf(given: unknown, name: string): URL {
  if (typeof given !== 'string' || given === '')
    throw new HttpProblem(`The parameter "${name}" is missing; set it to a URL`)
  let url: URL
  try {
    url = new URL(given)
  } catch {
    throw new HttpProblem(`The parameter "${name}" is not a URL such as https://host/path`)
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new HttpProblem(`The parameter "${name}" must be an http or https URL, not ${url.protocol}`)
  }
  return url
}

// Hosts

function hostCheck(parameters: Parameters): (url: URL) => void {
  const blacklist = hostsOf(parameters, 'url_hosts_blacklist')
  const whitelist = hostsOf(parameters, 'url_hosts_whitelist')
  if (blacklist !== undefined && whitelist !== undefined) {
    throw new HttpProblem('"url_hosts_blacklist" and "url_hosts_whitelist" are mutually exclusive: give one of them')
  }
  return (url) => {
    const host = plainHost(url.hostname)
    if (blacklist?.has(host) === true) throw new HttpProblem(`URL ${shownUrl(url)} is blacklisted`)
    if (whitelist?.has(host) === false) throw new HttpProblem(`URL ${shownUrl(url)} is not whitelisted`)
  }
}

function hostsOf(parameters: Parameters, name: string): Set<string> | undefined {
  const given = parameters[name] ?? undefined
  if (given === undefined) return undefined
  if (!Array.isArray(given)) throw new HttpProblem(`The parameter "${name}" must be a list of hosts`)
  if (given.length === 0) return undefined
  return new Set(
    given.map((entry: unknown) => {
      const host = normalizedHost(textOf(entry))
      // An entry that never matches would allow what it is meant to block.
      if (host !== undefined) return host
      const shown = writeJson(textOf(entry).slice(0, 100))
      throw new HttpProblem(
        `The parameter "${name}" has the entry ${shown}; use host names and addresses without scheme, port and path`,
      )
    }),
  )
}

/** The host as in a URL: addresses in canonical form, names in lower case. @returns undefined when it is not a host */
function normalizedHost(host: string): string | undefined {
  const isAddress = (host.match(/:/g)?.length ?? 0) > 1 && !host.startsWith('[')
  const url = `http://${isAddress ? `[${host}]` : host}/`
  if (/[\s/\\?#@]/.test(host) || /:\d*$/.test(isAddress ? '' : host) || !URL.canParse(url)) return undefined
  return plainHost(new URL(url).hostname)
}

const MAPPED = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/

/** An IPv4 address mapped into IPv6 leads to the same host. */
function plainHost(host: string): string {
  const mapped = MAPPED.exec(host)
  if (mapped === null) return host.endsWith('.') ? host.slice(0, -1) : host
  const [high, low] = [parseInt(mapped[1] ?? '', 16), parseInt(mapped[2] ?? '', 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

// Headers

function setHeader(headers: Map<string, string>, given: string, value: string): void {
  const name = given.toLowerCase()
  try {
    validateHeaderName(name)
  } catch {
    throw new HttpProblem(
      `The parameter "headers" has the name ${writeJson(given.slice(0, 100))}, which is not a valid header name`,
    )
  }
  if (OWN_HEADERS.has(name)) return
  headers.set(name, checkedValue(name, value))
}

function checkedValue(name: string, value: string): string {
  try {
    validateHeaderValue(name, value)
  } catch {
    throw new HttpProblem(`The header "${name}" has a value with characters that headers cannot contain`)
  }
  return value
}

function setCookies(headers: Map<string, string>, parameters: Parameters): void {
  const cookies = entriesOf(parameters, 'cookies').map(([name, value]) => `${name}=${textOf(value)}`)
  if (cookies.length === 0) return
  if (cookies.some((cookie) => cookie.includes(';'))) {
    throw new HttpProblem('The parameter "cookies" has a name or value that contains a semicolon')
  }
  const before = headers.get('cookie')
  headers.set('cookie', checkedValue('cookie', [...(before === undefined ? [] : [before]), ...cookies].join('; ')))
}

/** `username` and `password`, else `auth` as `name:password`, else those in the URL. */
function setCredentials(headers: Map<string, string>, parameters: Parameters, url: URL): void {
  const username = textParameter(parameters, 'username')
  const password = textParameter(parameters, 'password')
  const auth = textParameter(parameters, 'auth')
  const inUrl =
    url.username === '' && url.password === '' ? undefined : `${decoded(url.username)}:${decoded(url.password)}`
  const credentials =
    username !== undefined || password !== undefined ? `${username ?? ''}:${password ?? ''}` : (auth ?? inUrl)
  if (credentials === undefined) return
  headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// Body

async function bodyOf(
  context: RunContext,
  parameters: Parameters,
  headers: Map<string, string>,
  maxFileBytes: number,
): Promise<HttpRequest['body']> {
  const fileName = textParameter(parameters, 'file_name')
  const content = textParameter(parameters, 'file_content')
  const path = textParameter(parameters, 'file_path')
  const given = parameters['body'] ?? undefined
  if (fileName === undefined && (content !== undefined || path !== undefined)) {
    throw new HttpProblem('The parameter "file_name" is missing: the name of the form field that holds the file')
  }
  if (fileName === undefined) {
    if (given === undefined || given === '') return undefined
    return isJson(headers.get('content-type')) ? jsonText(given) : plainBody(given, headers)
  }

  if (given !== undefined && given !== '') throw new HttpProblem('Give either "body" or a file, not both')
  if (content !== undefined && path !== undefined) {
    throw new HttpProblem('Give either "file_content" or "file_path", not both')
  }
  const { FormData } = await import('./client.ts')
  const type = textParameter(parameters, 'file_content_type')
  const bytes =
    path === undefined ? new TextEncoder().encode(content ?? '') : await readFile(context, path, maxFileBytes)
  const form = new FormData()
  form.append(fileName, new Blob([new Uint8Array(bytes)], type === undefined ? {} : { type }), fileName)
  // The header has to name the boundary.
  headers.delete('content-type')
  return form
}

function plainBody(given: unknown, headers: Map<string, string>): string {
  if (typeof given === 'string') return given
  if (!headers.has('content-type')) headers.set('content-type', 'application/json')
  return writeJson(given)
}

/** A text that is valid JSON stays unchanged. */
function jsonText(given: unknown): string {
  if (typeof given !== 'string') return writeJson(given)
  try {
    readJson(given)
    return given
  } catch {
    return writeJson(given)
  }
}

/** Only files of the action's own pack: a caller must not read other files of the server. */
async function readFile({ packFolder, pack }: RunContext, path: string, maxBytes: number): Promise<Uint8Array> {
  const inPack = isAbsolute(path) ? relative(packFolder, path) : path
  const read =
    packFolder === '' ? ({ problem: 'missing' } as const) : await readContainedBytes(packFolder, inPack, maxBytes)
  if ('bytes' in read) return read.bytes
  const why = {
    missing: 'the file does not exist',
    outside: 'it is outside of the pack',
    unreadable: 'the account of the server cannot read it',
    'not a file': 'it is not a file',
    'too large': `it is longer than http_runner.max_body_bytes (${maxBytes})`,
  }[read.problem]
  throw new HttpProblem(`The parameter "file_path" names a file of the pack "${pack}" that cannot be sent: ${why}`)
}

export function isJson(contentType: string | undefined): boolean {
  return contentType?.split(';')[0]?.trim().toLowerCase() === 'application/json'
}

// Parameters

type Parameters = Readonly<Record<string, unknown>>

/** Undefined when it is absent or empty. */
function textParameter(parameters: Parameters, name: string): string | undefined {
  const value = parameters[name] ?? ''
  return value === '' ? undefined : textOf(value)
}

/** The entries that are not null. */
function entriesOf(parameters: Parameters, name: string): [string, unknown][] {
  const given = parameters[name] ?? {}
  if (typeof given !== 'object' || Array.isArray(given))
    throw new HttpProblem(`The parameter "${name}" must be an object`)
  return Object.entries(given).filter(([, value]) => (value ?? null) !== null)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (writeJson(value) ?? '')
}
