/** What `--debug` prints (contract 09, 9.1): each request as a curl command, each answer as comments; no secrets. */
import { escapeUnprintable, secretMask, type Redactor } from '../../lib/log/index.ts'
import { writeReplacedJson } from '../../lib/json/index.ts'
import { quote } from '../../lib/process/index.ts'
import { parseJson } from './responses.ts'
import { namesProxy, type Proxy } from './proxy.ts'
import type { Settings } from './settings.ts'

const MAX_LENGTH = 20_000

export interface ShownRequest {
  method: string
  /** Without secrets in its path. */
  url: string
  headers: Readonly<Record<string, string>>
  /** `user:password` */
  basicAuth: string | undefined
  /** What is sent as JSON; undefined: nothing. */
  body: unknown
  /** What is sent as it is; undefined: nothing. */
  bytes: Buffer | undefined
  proxy: Proxy | undefined
}

export interface DebugLines {
  /** A request as it would be typed. */
  ofRequest(request: ShownRequest): string
  /** A response as shell comments, so that the output can be pasted into a shell. @param text its body, possibly cut */
  ofAnswer(status: number, reason: string | undefined, text: string): string
  /** Values under these names are masked from now on. */
  maskNames(names: Iterable<string>): void
}

export function createDebugLines(
  { cacert, socket }: Pick<Settings, 'cacert' | 'socket'>,
  redactor: Redactor,
  env: NodeJS.ProcessEnv,
): DebugLines {
  const secretNames = new Set<string>()

  /** Without known field names, the whole body may be a secret. */
  function textOfBytes(bytes: Buffer): string {
    const parsed = parseJson(bytes.toString('utf8'))
    return parsed === undefined ? secretMask : writeReplacedJson(parsed.value, mask)
  }

  function mask(name: string, value: unknown): unknown {
    if (value === null || value === undefined) return value
    if (secretNames.has(name) || redactor.isSecret(name)) return secretMask
    // An inherited environment holds secrets under any name.
    if (name === 'env' && typeof value === 'object') {
      return Object.fromEntries(Object.keys(value).map((variable) => [variable, secretMask]))
    }
    if (typeof value === 'string') return value.replace(loginInUrl, `$1${secretMask}@`)
    // A parameter in the file of an action, say.
    const isSecretSchema = typeof value === 'object' && 'secret' in value && value.secret === true && 'default' in value
    return isSecretSchema ? { ...value, default: secretMask } : value
  }

  return {
    ofRequest({ method, url, headers, basicAuth, body, bytes, proxy }) {
      const parts = ['curl', '-X', method]
      if (socket !== undefined) parts.push('--unix-socket', quote(socket.path))
      if (url.startsWith('https:') && cacert === false) parts.push('-k')
      if (url.startsWith('https:') && typeof cacert === 'string') parts.push('--cacert', quote(cacert))
      if (proxy !== undefined) parts.push('-x', quote(proxy.shownUrl))
      else if (namesProxy(env)) parts.push('--noproxy', quote('*'))
      if (headers['Accept'] === 'text/event-stream') parts.push('-N')
      for (const [name, value] of Object.entries(headers)) {
        if (name === 'Content-Length' || (name === 'Authorization' && basicAuth !== undefined)) continue
        parts.push('-H', quote(`${name}: ${redactor.isSecret(name) ? secretMask : value}`))
      }
      if (basicAuth !== undefined) parts.push('-u', quote(`${basicAuth.split(':', 1)[0]}:${secretMask}`))
      if (body !== undefined) parts.push('--data-binary', quote(writeReplacedJson(body, mask)))
      if (bytes !== undefined) parts.push('--data-binary', quote(textOfBytes(bytes)))
      return escapeUnprintable([...parts, quote(redactor.maskUrl(url))].join(' '))
    },
    ofAnswer(status, reason, text) {
      const parsed = parseJson(text)
      const shown = parsed === undefined ? text : writeReplacedJson(parsed.value, mask)
      const cut = shown.length > MAX_LENGTH ? `${shown.slice(0, MAX_LENGTH)}…` : shown
      return [`${status} ${reason ?? ''}`, ...(cut === '' ? [] : cut.split('\n'))]
        .map((line) => `# ${escapeUnprintable(line)}`)
        .join('\n')
    },
    maskNames(names) {
      for (const name of names) secretNames.add(name)
    },
  }
}

/**
 * A login in an address, such as that of a repository, where the name alone may be a token. The usual name `git` is
 * none.
 */
const loginInUrl = /(:\/\/)(?!git@)[^/?#\s@]+@/g
