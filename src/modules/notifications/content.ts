/** What a notification tells of the end of an execution: bounded texts, from what is stored masked. Pure functions. */
import { isObject } from '../../lib/schema/index.ts'
import type { Execution, ExecutionStatus } from '../executions/types.ts'
import { cutStart, oneLine, plainLines } from './channels/index.ts'
import type { Condition, Content } from './types.ts'

const MAX_STDERR_LINES = 20
const MAX_STDERR_CHARS = 2000
const MAX_ERROR_CHARS = 500

/** What the status of an ended execution means to people; undefined: nothing, as of what was canceled. */
export function conditionOf(
  status: ExecutionStatus,
): Extract<Condition, 'failed' | 'timeout' | 'succeeded'> | undefined {
  switch (status) {
    case 'failed':
    case 'abandoned':
      return 'failed'
    case 'timeout':
      return 'timeout'
    case 'succeeded':
      return 'succeeded'
    default:
      return undefined
  }
}

export function contentOf(execution: Execution, attempt: number): Content {
  const { action_ref: action, user, status, elapsed_seconds: elapsed, end_timestamp: end } = execution
  return {
    action,
    user,
    outcome: status,
    ...(attempt > 1 ? { attempt } : {}),
    ...(elapsed === null ? {} : { elapsed }),
    at: end ?? execution.start_timestamp,
    ...(status === 'succeeded' ? {} : failureOf(execution.result)),
  }
}

/** Exit code, error and the end of the standard error, wherever a runner puts them. */
function failureOf(result: unknown): Pick<Content, 'exit_code' | 'error' | 'stderr'> {
  const found = partWithFailure(result)
  if (found === undefined) return {}
  const { part, host } = found
  const code = part['exit_code'] ?? part['return_code']
  const error = errorOf(part)
  const stderr = typeof part['stderr'] === 'string' ? endOf(part['stderr']) : ''
  const where = host === undefined ? '' : `${oneLine(host).slice(0, 100)}: `
  return {
    ...(typeof code === 'number' ? { exit_code: code } : {}),
    ...(error === '' ? {} : { error: where + error }),
    ...(stderr === '' ? {} : { stderr }),
  }
}

/** Results of several hosts have one part per host: the first that failed. */
function partWithFailure(result: unknown): { part: Record<string, unknown>; host?: string } | undefined {
  if (!isObject(result)) return undefined
  if (['stderr', 'error', 'errors', 'exit_code', 'return_code'].some((name) => name in result)) return { part: result }
  for (const [host, part] of Object.entries(result).slice(0, 1000)) {
    if (isObject(part) && (part['failed'] === true || part['succeeded'] === false)) return { part, host }
  }
  return undefined
}

/** The error of a run, or the first one of a workflow. */
function errorOf(part: Record<string, unknown>): string {
  const [first] = Array.isArray(part['errors']) ? (part['errors'] as unknown[]) : []
  const ofWorkflow = isObject(first) ? [first['task_id'], first['message']].filter(isText).join(': ') : ''
  const text = isText(part['error']) ? part['error'] : ofWorkflow
  const line = oneLine(text.slice(0, 4 * MAX_ERROR_CHARS))
  return line.length <= MAX_ERROR_CHARS ? line : `${line.slice(0, MAX_ERROR_CHARS)}…`
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

function endOf(text: string): string {
  const end = plainLines(cutStart(text.slice(-8 * MAX_STDERR_CHARS).trimEnd(), 2 * MAX_STDERR_CHARS))
  return cutStart(end.split('\n').slice(-MAX_STDERR_LINES).join('\n').trim(), MAX_STDERR_CHARS)
}
