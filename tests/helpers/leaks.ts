/**
 * Setup of every test file: fails the file that leaves a child process, thread, socket, timer or process listener behind.
 *
 * Files share a process (`isolate: false`), so what one of them leaves would disturb the next; those that run beside it have
 * another and are not seen.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { afterAll, beforeAll } from 'vitest'

/** Closing a socket or reaping a child takes a few turns of the loop, and longer on a busy machine. */
const PATIENCE_MILLISECONDS = 20_000
const POLL_MILLISECONDS = 10

type Counts = Map<string, number>

/** Kernel name of this thread, such as `/proc/71/task/72`; undefined where there is no `/proc`. */
function findThreadFolder(): string | undefined {
  try {
    return `/proc/${readlinkSync('/proc/thread-self')}`
  } catch {
    return undefined
  }
}

const threadFolder = findThreadFolder()
const workers = new Set<Worker>()

function addWorker(worker: Worker): void {
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
}

function describeChild(pid: string): string {
  try {
    return `${pid} (${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()})`
  } catch {
    return pid
  }
}

function childPids(): string[] {
  if (threadFolder === undefined) return []
  return readFileSync(`${threadFolder}/children`, 'utf8').split(' ').filter(Boolean)
}

function countResources(): Counts {
  const counts: Counts = new Map()
  const add = (name: string, amount: number): unknown => counts.set(name, (counts.get(name) ?? 0) + amount)
  for (const kind of process.getActiveResourcesInfo()) add(kind, 1)
  for (const name of process.eventNames()) add(`process.on('${String(name)}')`, process.listenerCount(name))
  return counts
}

/**
 * Timers that earlier files of this process were already blamed for. This module is loaded anew for each file, so only the
 * global object can carry it over; its type knows no such key.
 */
const blamed: { timers?: number } = ((globalThis as Record<symbol, object>)[Symbol.for('svc.leaks')] ??= {})

let before: Counts = new Map()
let childrenBefore: string[] = []

function findLeaks(): string[] {
  const leaks: string[] = []
  for (const [kind, count] of countResources()) {
    const excess = count - (before.get(kind) ?? 0)
    if (excess > 0) leaks.push(`${excess} more ${kind}`)
  }
  for (const pid of childPids()) if (!childrenBefore.includes(pid)) leaks.push(`child process ${describeChild(pid)}`)
  if (workers.size > 0) leaks.push(`${workers.size} worker thread(s)`)
  return leaks
}

beforeAll(() => {
  process.on('worker', addWorker)
  before = countResources()
  // The runner has a timer of its own under way at this moment, which is gone a little later.
  before.set('Timeout', blamed.timers ?? 0)
  childrenBefore = childPids()
})

afterAll(async () => {
  const deadline = performance.now() + PATIENCE_MILLISECONDS
  let leaks = findLeaks()
  while (leaks.length > 0 && performance.now() < deadline) {
    await delay(POLL_MILLISECONDS)
    leaks = findLeaks()
  }
  process.off('worker', addWorker)
  workers.clear()
  if (leaks.length === 0) return
  blamed.timers = countResources().get('Timeout') ?? 0
  throw new Error(`This test file leaves behind: ${leaks.join('; ')}`)
})
