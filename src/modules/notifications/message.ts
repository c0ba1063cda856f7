/** The message of a notification: its words, from the facts in its row. */
import { formatDuration } from '../../lib/calendar/index.ts'
import { isAppError } from '../../core/errors.ts'
import { createRenderer, findTemplates } from '../../core/template-values.ts'
import { executionAddress } from '../../core/web-address.ts'
import { oneLine, plainLines, type Level, type Notice } from './channels/index.ts'
import type { MissReason } from '../rules/types.ts'
import type { Content, Notification, Occasion } from './types.ts'

const MAX_TEXT_CHARS = 8000

const words: Readonly<Record<Occasion, string>> = {
  failed: 'Failed',
  timeout: 'Timed out',
  recovered: 'Recovered',
  succeeded: 'Succeeded',
  missed: 'Missed',
  digest: 'Several jobs',
  test: 'Test',
}

const reasons: Readonly<Record<MissReason, string>> = {
  not_started: 'it did not start',
  failed: 'it failed',
  still_running: 'it still runs',
  skipped: 'it was skipped, because the run before went on',
  server_down: 'the server did not run',
}

const levels: Readonly<Record<Occasion, Level>> = {
  failed: 'error',
  timeout: 'error',
  recovered: 'success',
  succeeded: 'success',
  missed: 'warning',
  digest: 'error',
  test: 'info',
}

/** First line. */
export function titleOf({ occasion, job, content, destination }: Notification): string {
  switch (occasion) {
    case 'digest': {
      const count = (content.items?.length ?? 0) + (content.more ?? 0)
      return `${count} notifications of svc`
    }
    case 'test':
      return `Test of the destination ${destination}`
    default:
      return `${words[occasion]}: ${oneLine(job)}`
  }
}

/**
 * The message.
 *
 * @param template text of the rule's author or of the destination; undefined: the default text
 * @param warn called when the template fails; the default text takes its place
 */
export function noticeOf(
  notification: Notification,
  { webUrl, template, warn }: { webUrl: string; template: string | undefined; warn: (error: Error) => void },
): Notice {
  const { id, occasion, job, execution, content } = notification
  const title = titleOf(notification)
  const link = execution === null || webUrl === '' ? '' : executionAddress(webUrl, execution)
  const data = dataOf(notification, title, link)
  return {
    id,
    condition: occasion,
    level: levels[occasion],
    job,
    title,
    text: template === undefined || occasion === 'digest' ? '' : rendered(template, data, warn),
    facts: factsOf(notification),
    output: outputOf(content),
    link,
    timestamp: content.at,
    to: content.to ?? [],
    data,
  }
}

/** For programs, and what templates read. */
function dataOf({ occasion, job, rule, execution, content }: Notification, title: string, link: string) {
  const { action, user, outcome, attempt, elapsed, at, exit_code, error, stderr, due, expect, last_success, reason } =
    content
  const all: Record<string, unknown> = {
    condition: occasion,
    title,
    job: job === '' ? undefined : job,
    rule: rule ?? undefined,
    action,
    execution: execution ?? undefined,
    user,
    status: outcome,
    attempt: outcome === undefined ? undefined : (attempt ?? 1),
    elapsed_seconds: elapsed,
    at,
    exit_code,
    error,
    stderr,
    due,
    expect,
    last_success,
    reason,
    web_url: link === '' ? undefined : link,
    notifications: content.items,
    more: content.more,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

const names = ['title', 'job', 'rule', 'action', 'execution', 'user', 'status', 'attempt', 'elapsed_seconds']
const others = ['exit_code', 'error', 'stderr', 'web_url', 'condition', 'at', 'due', 'expect', 'last_success', 'reason']

/** Templates read the facts and nothing else: neither the datastore nor parameters. */
function rendered(template: string, data: Readonly<Record<string, unknown>>, warn: (error: Error) => void): string {
  const found = findTemplates(template)
  if (found === undefined) return plainLines(template)
  const variables = new Map<string, unknown>([...names, ...others].map((name) => [name, data[name] ?? '']))
  try {
    const renderer = createRenderer(found)
    const value = renderer.render('message', template, variables)
    const text = typeof value === 'string' ? value : String(renderer.print('message', value))
    return plainLines(text.slice(0, MAX_TEXT_CHARS))
  } catch (error) {
    if (!isAppError(error)) throw error
    warn(error)
    return ''
  }
}

function factsOf({ occasion, rule, content }: Notification): [string, string][] {
  const { action, user, outcome, attempt, elapsed, at, exit_code: code, error, due, last_success: success } = content
  const facts: [string, string | undefined][] = [
    ['Rule', rule ?? undefined],
    ['Action', action],
    ['Status', outcome === 'abandoned' ? 'abandoned: the server stopped while it ran' : undefined],
    ['Exit code', code === undefined || outcome === 'succeeded' ? undefined : String(code)],
    ['Error', error],
    ['Due', due],
    ['Reason', content.reason === undefined ? undefined : reasons[content.reason]],
    ['Last success', due === undefined ? undefined : (success ?? 'never')],
    ['User', user],
    ['Attempt', attempt === undefined ? undefined : String(attempt)],
    ['Elapsed', elapsed === undefined ? undefined : formatDuration(Math.round(elapsed * 10) / 10)],
    ['Time', occasion === 'digest' ? undefined : at],
  ]
  return facts
    .filter((fact): fact is [string, string] => fact[1] !== undefined)
    .map(([label, value]) => [label, oneLine(value)])
}

function outputOf({ stderr, items, more }: Content): string {
  if (items === undefined) return stderr ?? ''
  const lines = items.map(({ condition, job, at }) => `${at.slice(0, 19)}Z  ${words[condition]}: ${oneLine(job)}`)
  if (more !== undefined && more > 0) lines.push(`and ${more} more`)
  return lines.join('\n')
}
