/** The progress line at the bottom of a terminal: the current task and the elapsed time. */
import { readFileSync } from 'node:fs'
import { cliProcess } from '../cli-process.ts'
import { displayWidth, printable } from './print.ts'

const FRAME_MS = 100
/** Shorter tasks show no progress line. */
const FIRST_FRAME_MS = 200
const CLEAR = '\r\u001b[K'
const DEFAULT_COLUMNS = 80

/** Something that takes its time. */
export interface Progress {
  /** Replaces the text. */
  update(text: string): void
  stop(): void
}

export interface ProgressLine {
  /** @param text the current task; the line shows the elapsed time after it */
  start(text: string): Progress
  /** To be called before anything else is written to the terminal. @param text what that is */
  makeWay(text: string): void
  /** Ends everything that has been started. */
  close(): void
}

/** What is read of standard error. */
export type ProgressStream = Pick<NodeJS.WriteStream, 'write'> & Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>>

/** Whether a line can be drawn again and again on this stream. */
export function canShowProgress(stream: ProgressStream, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

/** Shows the task that started last and still runs; nothing without a terminal. */
export function createProgressLine(stream: ProgressStream, env: NodeJS.ProcessEnv): ProgressLine {
  const isShown = canShowProgress(stream, env)
  const ownProcess = cliProcess()
  const frames = framesFor(env)
  const tasks: { text: string; startedAt: number }[] = []
  let timer: NodeJS.Timeout | undefined
  let frame = 0
  let isDrawn = false
  /** The cursor is behind other text, which must not be overwritten. */
  let isTaken = false

  function draw(): void {
    const task = tasks.at(-1)
    if (task === undefined || isTaken || !isInForeground()) return
    const since = formatElapsed(performance.now() - task.startedAt)
    // The last column stays free: some terminals wrap there.
    const columns = (stream.columns ?? 0) > 0 ? Number(stream.columns) : DEFAULT_COLUMNS
    const text = cut(`${frames[frame % frames.length] ?? ''} ${oneLine(task.text)}`, columns - displayWidth(since) - 2)
    frame += 1
    isDrawn = true
    stream.write(`${CLEAR}${cut(`${text} ${since}`, columns - 1)}`)
  }

  function clear(): void {
    if (isDrawn) stream.write(CLEAR)
    isDrawn = false
  }

  function tick(): void {
    draw()
    timer = setTimeout(tick, FRAME_MS)
    timer.unref()
  }

  function begin(): void {
    timer = setTimeout(tick, FIRST_FRAME_MS)
    timer.unref()
    ownProcess.on('exit', clear)
  }

  function end(): void {
    clearTimeout(timer)
    timer = undefined
    ownProcess.off('exit', clear)
    clear()
  }

  return {
    start(text) {
      const task = { text, startedAt: performance.now() }
      if (!isShown) return { update: () => undefined, stop: () => undefined }
      tasks.push(task)
      if (timer === undefined) begin()
      return {
        update(next) {
          task.text = next
        },
        stop() {
          const index = tasks.indexOf(task)
          if (index === -1) return
          tasks.splice(index, 1)
          if (tasks.length === 0) end()
        },
      }
    },
    makeWay(text) {
      clear()
      if (text !== '') isTaken = !text.endsWith('\n')
    },
    close() {
      tasks.length = 0
      end()
    },
  }
}

/** How far something is, such as `12,300 of 1,000,000`. */
export function progressText(done: number, total: number): string {
  const withCommas = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return `${withCommas(done)} of ${withCommas(total)}`
}

/** A time such as `(9s)`, `(2m 05s)` or `(1h 02m)`. */
export function formatElapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const pad = (count: number): string => String(count).padStart(2, '0')
  if (seconds < 60) return `(${seconds}s)`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `(${minutes}m ${pad(seconds % 60)}s)`
  return `(${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m)`
}

/** The console of Linux, and terminals of other encodings, lack the finer ones. */
function framesFor(env: NodeJS.ProcessEnv): string {
  const encoding = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return /utf-?8/i.test(encoding) && env['TERM'] !== 'linux' ? '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏' : '|/-\\'
}

function oneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' '))
}

function cut(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  let kept = ''
  let width = 0
  for (const character of text) {
    width += displayWidth(character)
    if (width > columns) break
    kept += character
  }
  return kept
}

/**
 * Whether this process has its terminal for itself. One that was sent to the background must not draw over what is typed in
 * the foreground, and is stopped when it asks for keys.
 */
export function isInForeground(): boolean {
  try {
    // The name in parentheses may hold anything; after it: state, parent, group, session, terminal, its foreground group.
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return foreground === '-1' || foreground === group
  } catch {
    return true
  }
}

/** Shows progress on standard error, for commands without a session. */
export async function withProgress<T>(text: string, work: () => Promise<T>): Promise<T> {
  const { stderr, env } = cliProcess()
  const line = createProgressLine(stderr, env)
  line.start(text)
  try {
    return await work()
  } finally {
    line.close()
  }
}
