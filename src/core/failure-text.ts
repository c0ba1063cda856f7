/** Why an execution has failed, in one line. */
import { isObject } from '../lib/schema/index.ts'
import { cutText, withoutControlSequences } from '../lib/text/index.ts'

/** UTF-16 units. */
export const MAX_FAILURE_LENGTH = 500
/** Of the end of an output that can have 20 MB: its last line is looked for in there. */
const MAX_LINE_LENGTH = 4096
/** Hosts of a remote result that are looked at. */
const MAX_HOSTS = 1000

/**
 * What a result says about a failure: its error, else the exit code and the last line of stderr.
 *
 * @param status final status of the execution
 * @param result without secrets
 * @returns one line of at most 500 characters; null when it has not failed
 */
export function failureText(status: string, result: unknown): string | null {
  const byItself = textOfStatus[status]
  if (byItself === undefined) return null
  const line = oneLine(reasonIn(result) ?? byItself)
  return line.length <= MAX_FAILURE_LENGTH ? line : `${cutText(line, MAX_FAILURE_LENGTH - 1)}…`
}

const textOfStatus: Readonly<Record<string, string>> = {
  failed: 'It failed, and its result does not say why.',
  timeout: 'It took too long.',
  abandoned: 'It was abandoned: the server that ran it stopped.',
}

function reasonIn(result: unknown): string | undefined {
  return ownReason(result) ?? reasonOfHost(result)
}

function ownReason(result: unknown): string | undefined {
  if (!isObject(result)) return undefined
  const { error, errors, message, return_code: code, exit_code: exit, status_code: http, stderr } = result
  const said = textIn(error) ?? reasonOfErrors(errors)
  if (said !== undefined) return said
  const number = code ?? exit
  if (typeof number === 'number' && number !== 0) {
    const line = typeof stderr === 'string' ? lastLine(stderr) : ''
    return line === '' ? `exit code ${number}` : `exit code ${number}: ${line}`
  }
  if (typeof http === 'number' && http >= 400) return `HTTP status ${http}`
  return textIn(message)
}

/** The first error of a workflow. */
function reasonOfErrors(errors: unknown): string | undefined {
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  if (!isObject(first)) return undefined
  const task = textIn(first['task_id'])
  const inside = ownReason(first['result'])
  const message = inside ?? textIn(first['message'])
  if (message === undefined) return task === undefined ? undefined : `task ${task} failed`
  return task === undefined ? message : `task ${task}: ${message}`
}

/** The first host of a remote action that has failed. */
function reasonOfHost(result: unknown): string | undefined {
  if (!isObject(result)) return undefined
  for (const [host, own] of Object.entries(result).slice(0, MAX_HOSTS)) {
    if (!isObject(own) || own['failed'] !== true) continue
    const reason = ownReason(own)
    return reason === undefined ? `${host} failed` : `${host}: ${reason}`
  }
  return undefined
}

const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.slice(0, MAX_LINE_LENGTH) : undefined

function lastLine(text: string): string {
  const end = text.slice(-MAX_LINE_LENGTH).trimEnd()
  return end.slice(Math.max(end.lastIndexOf('\n'), end.lastIndexOf('\r')) + 1)
}

/** Without colours of terminals and other control characters. */
function oneLine(text: string): string {
  return withoutControlSequences(text)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}
