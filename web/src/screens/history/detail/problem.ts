/** What went wrong in an execution, from the result that its runner has left (contract 03, 3.8 and 3.9). */
import type { ExecutionRecord } from '../../../api/records.ts'
import { isObject, writeJson } from '../../../json.ts'

export interface Problem {
  /** One sentence. */
  title: string
  /** What it said: the end of it. */
  text?: string
  /** Where it was raised, for programmers. */
  traceback?: string
}

/** Of what was said, the end tells what went wrong. */
const MAX_TEXT = 4000
const MAX_TITLE = 500
const MAX_HOSTS = 20

type Failed = Pick<ExecutionRecord, 'status' | 'result' | 'context'>

/** Undefined: nothing did, or it has not ended. */
export function problemOf(execution: Failed): Problem | undefined {
  const { status, result, context } = execution
  if (!['failed', 'timeout', 'abandoned', 'canceled'].includes(status)) return undefined
  const parts = isObject(result) ? result : {}
  const error = textOf(parts['error'])
  const traceback = textOf(parts['traceback'])
  const more = traceback === undefined || traceback === error ? {} : { traceback }
  if (status === 'canceled') {
    const by = textOf(parts['user']) ?? textOf(context['cancelled_by'])
    const policy = textOf(parts['policy'])
    const whom = policy !== undefined ? `the policy ${policy}` : by
    return { title: whom === undefined ? 'Canceled' : `Canceled by ${short(whom)}` }
  }
  const hosts = hostProblems(parts)
  if (hosts.length > 0) return { title: hostsTitle(hosts), text: hosts.slice(0, MAX_HOSTS).join('\n\n'), ...more }
  const said = saidBy(parts)
  if (error !== undefined) {
    const [first = '', ...others] = error.split('\n')
    const rest = others.join('\n').trim()
    const text = [rest, said ?? ''].filter((part) => part !== '').join('\n\n')
    return { title: short(first), ...(text !== '' && { text: endOf(text) }), ...more }
  }
  return { title: titleOf(status, parts), ...(said !== undefined && { text: endOf(said) }), ...more }
}

function titleOf(status: string, parts: Record<string, unknown>): string {
  if (status === 'abandoned') return 'Abandoned: the server stopped while it ran'
  if (status === 'timeout') return 'Timed out'
  const code = parts['return_code'] ?? parts['exit_code']
  const line = lastLineOf(textOf(parts['stderr']))
  // The last line of a traceback is the exception.
  if ('exit_code' in parts && line !== undefined && /^[\w.]+(Error|Exception|Exit|Interrupt)\b/.test(line))
    return short(line)
  if (typeof code === 'number') return `Failed: exit code ${code}${meaningOf(code)}`
  if (typeof parts['status_code'] === 'number') return `Failed: HTTP status ${parts['status_code']}`
  const message = textOf(parts['message'])
  return message === undefined ? 'Failed' : short(message)
}

/** What shells mean by it. */
function meaningOf(code: number): string {
  if (code === 126) return ' (command not executable)'
  if (code === 127) return ' (command not found)'
  if (code > 128 && code <= 192) return ` (signal ${code - 128})`
  return ''
}

function saidBy({ stderr, stdout, body, errors }: Record<string, unknown>): string | undefined {
  const workflow = Array.isArray(errors)
    ? errors.map((one) => (isObject(one) ? textOf(one['message']) : textOf(one))).filter((one) => one !== undefined)
    : []
  if (workflow.length > 0) return workflow.slice(0, MAX_HOSTS).join('\n')
  return textOf(stderr) ?? textOf(stdout) ?? textOf(body)
}

/** Of runs on several hosts, each as a text. */
function hostProblems(result: Record<string, unknown>): string[] {
  const hosts = Object.entries(result)
  if (hosts.length === 0 || !hosts.every(([, host]) => isObject(host) && 'return_code' in host)) return []
  return hosts.flatMap(([name, host]) => {
    if (!isObject(host) || host['succeeded'] === true) return []
    const said = textOf(host['error']) ?? textOf(host['stderr']) ?? `exit code ${String(host['return_code'])}`
    return [`${name}: ${endOf(said, MAX_TEXT / 4)}`]
  })
}

function hostsTitle(hosts: readonly string[]): string {
  if (hosts.length > MAX_HOSTS) return `Failed on ${hosts.length} hosts, the first ${MAX_HOSTS} shown`
  return hosts.length === 1 ? 'Failed on 1 host' : `Failed on ${hosts.length} hosts`
}

/** Undefined when there is nothing to read. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  const text = typeof value === 'string' ? withoutEscapes(value) : writeJson(value)
  return text.trim() === '' ? undefined : text.trim()
}

function lastLineOf(text: string | undefined): string | undefined {
  return text
    ?.slice(-MAX_TITLE * 2)
    .split('\n')
    .at(-1)
}

function endOf(text: string, max = MAX_TEXT): string {
  return text.length <= max ? text : `… ${text.slice(-max)}`
}

function short(text: string): string {
  return text.length <= MAX_TITLE ? text : `${text.slice(0, MAX_TITLE)}…`
}

/** Without the colours and movements that a terminal would make of it. */
export function withoutEscapes(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what is to go
  return text.replace(/\u001b(\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)?|[@-Z\\-_])/g, '')
}
