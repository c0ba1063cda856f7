/**
 * What happens, for the person who started the server at a terminal: a line when an execution starts, and one when it
 * ends. A flood of executions becomes a summary per second.
 */
import { styleText } from 'node:util'
import type { ExecutionStatus } from '../../core/execution-status.ts'
import { Lru } from '../../lib/cache/index.ts'
import { clip, escapeUnprintable } from '../../lib/log/index.ts'

/** Of an execution, what the lines show. */
export interface ShownExecution {
  id: string
  action_ref: string
  user: string
  parent: string | null
  status: ExecutionStatus
  elapsed_seconds: number | null
  origin: { rule: { ref?: string } } | null
  result?: unknown
}

export interface ExecutionLines {
  /** To be called with every change. @param from the previous status; undefined: the execution is new */
  readonly show: (execution: ShownExecution, from?: ExecutionStatus) => void
  /** Writes the summary that is due. */
  close(): void
}

/** Lines in one second; what happens beyond is only counted. Failures have some lines of their own. */
export const MAX_LINES_PER_SECOND = 20
export const MAX_FAILURES_PER_SECOND = 10
const WINDOW_MS = 1000
/** Executions whose children are known to be children. */
const MAX_DEPTHS = 10_000
const MAX_INDENTS = 4
const MAX_NAME_LENGTH = 120

type Ended = 'succeeded' | 'failed' | 'timeout' | 'canceled' | 'abandoned'
const endings: readonly Ended[] = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned']
type Counted = 'started' | Ended
const countedTexts: Readonly<Record<Counted, string>> = {
  started: 'started',
  succeeded: 'succeeded',
  failed: 'failed',
  timeout: 'timed out',
  canceled: 'canceled',
  abandoned: 'abandoned',
}

type Color = 'cyan' | 'green' | 'red' | 'yellow' | 'dim'
type Sign = 'start' | 'success' | 'failure' | 'wait' | 'more'
const signs: Readonly<Record<Sign, { fine: string; plain: string; color: Color }>> = {
  start: { fine: '▶', plain: '>', color: 'cyan' },
  success: { fine: '✔', plain: '+', color: 'green' },
  failure: { fine: '✖', plain: 'x', color: 'red' },
  wait: { fine: '…', plain: '.', color: 'yellow' },
  more: { fine: '…', plain: '.', color: 'dim' },
}

/**
 * @param write gets whole lines, with their ends
 * @param now milliseconds of a monotonic clock
 */
export function createExecutionLines(options: {
  write: (line: string) => void
  isColored: boolean
  /** Whether the terminal shows more than ASCII. */
  isUnicode: boolean
  now?: () => number
}): ExecutionLines {
  const { write, isColored, isUnicode, now = () => performance.now() } = options
  const depths = new Lru<string, number>(MAX_DEPTHS)
  const missed = new Map<Counted, number>()
  let windowBegan = -WINDOW_MS
  let linesInWindow = 0
  let timer: NodeJS.Timeout | undefined
  /** The execution whose start is the last line. */
  let lastStarted: string | undefined

  const paint = (color: Color, text: string): string =>
    isColored && text !== '' ? styleText(color, text, { validateStream: false }) : text
  const signOf = (sign: Sign): string => paint(signs[sign].color, isUnicode ? signs[sign].fine : signs[sign].plain)

  function line(counted: Counted | undefined, sign: Sign, depth: number, texts: readonly string[]): boolean {
    const at = now()
    if (at - windowBegan >= WINDOW_MS) {
      summarize()
      windowBegan = at
      linesInWindow = 0
    }
    const limit = sign === 'failure' ? MAX_LINES_PER_SECOND + MAX_FAILURES_PER_SECOND : MAX_LINES_PER_SECOND
    if (linesInWindow >= limit) {
      if (counted !== undefined) missed.set(counted, (missed.get(counted) ?? 0) + 1)
      timer ??= setTimeout(summarize, Math.max(0, windowBegan + WINDOW_MS - at)).unref()
      return false
    }
    linesInWindow += 1
    const indent = '  '.repeat(Math.min(depth, MAX_INDENTS))
    write(`${indent}${signOf(sign)} ${texts.filter((text) => text !== '').join('  ')}\n`)
    return true
  }

  function summarize(): void {
    clearTimeout(timer)
    timer = undefined
    if (missed.size === 0) return
    const counts = (['started', ...endings] as const)
      .filter((name) => missed.has(name))
      .map((name) => `${missed.get(name) ?? 0} ${countedTexts[name]}`)
    missed.clear()
    lastStarted = undefined
    write(`${signOf('more')} ${paint('dim', `${counts.join(', ')} more within a second`)}\n`)
  }

  function nameOf({ action_ref, id }: ShownExecution): string[] {
    return [shortText(action_ref), paint('dim', id)]
  }

  return {
    show(execution, from) {
      const { id, status, parent } = execution
      const isStart = status === 'running' && (from === 'requested' || from === 'scheduled')
      const ending = endings.find((name) => name === status)
      const isWaiting = status === 'pending' || status === 'paused'
      if (!isStart && ending === undefined && !isWaiting) return
      const depth = depths.get(id) ?? (parent === null ? 0 : (depths.get(parent) ?? 0) + 1)
      if (ending === undefined) depths.set(id, depth)
      else depths.delete(id)
      if (isStart) {
        const rule = execution.origin?.rule.ref
        const by = rule === undefined ? '' : paint('dim', `rule ${shortText(rule)}`)
        const isShown = line('started', 'start', depth, [...nameOf(execution), shortText(execution.user), by])
        if (isShown) lastStarted = id
        return
      }
      // Right below the line of its start the end need not say what has ended.
      const name = lastStarted === id ? [] : nameOf(execution)
      const isShown =
        ending === undefined
          ? line(undefined, 'wait', depth, [...name, paint('yellow', status)])
          : line(ending, ending === 'succeeded' ? 'success' : 'failure', depth, [
              ...name,
              paint('red', failureOf(ending, execution.result)),
              elapsedText(execution.elapsed_seconds),
            ])
      if (isShown) lastStarted = undefined
    },
    close: summarize,
  }
}

const shortText = (text: string): string => escapeUnprintable(clip(text, MAX_NAME_LENGTH))

/** Nothing of the result but numbers: its texts may be secret. Empty when it has succeeded. */
function failureOf(ending: Ended, result: unknown): string {
  if (ending === 'succeeded') return ''
  if (ending !== 'failed') return countedTexts[ending]
  const code = numberIn(result, 'return_code') ?? numberIn(result, 'exit_code')
  if (code !== undefined && code !== 0) return `exit ${code}`
  const status = numberIn(result, 'status_code')
  return status === undefined ? 'failed' : `failed: HTTP status ${status}`
}

function numberIn(result: unknown, name: string): number | undefined {
  if (typeof result !== 'object' || result === null || !Object.hasOwn(result, name)) return undefined
  const value: unknown = Reflect.get(result, name)
  return typeof value === 'number' ? value : undefined
}

/** `12 ms`, `0.1 s`, `12 s`, `3 min 5 s`, `2 h 4 min`. */
function elapsedText(seconds: number | null): string {
  if (seconds === null) return ''
  if (seconds < 0.095) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}
