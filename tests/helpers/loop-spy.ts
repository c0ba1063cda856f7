/**
 * Loaded into a server by `--import`: measures the turns of its event loop, in processor time of the main thread, so that
 * other processes of the machine do not count. The first SIGWINCH begins, the next one prints what was measured.
 */
import { performance } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/** What a request has cost. */
export interface LoopCost {
  /** Processor time of the longest turn, in milliseconds. */
  longestMs: number
  /** As long as the longest turn has taken by the clock, which includes waiting for a processor. */
  longestDelayMs: number
  /** Processor time of all turns. */
  totalMs: number
}

let isOn = false
let beganAt = 0
let turnAt = 0
let turnOnClock = 0
let longest = 0
let longestDelay = 0

/** Microseconds. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

function look(): void {
  const now = processorTime()
  const clock = performance.now()
  longest = Math.max(longest, now - turnAt)
  longestDelay = Math.max(longestDelay, clock - turnOnClock)
  turnAt = now
  turnOnClock = clock
  // Every turn of the loop reaches this phase once.
  if (isOn) setImmediate(look)
}

if (isMainThread) {
  process.on('SIGWINCH', () => {
    if (isOn) {
      isOn = false
      look()
      const cost: LoopCost = {
        longestMs: longest / 1000,
        longestDelayMs: longestDelay,
        totalMs: (processorTime() - beganAt) / 1000,
      }
      process.stdout.write(`LOOP ${JSON.stringify(cost)}\n`)
      return
    }
    isOn = true
    longest = 0
    longestDelay = 0
    beganAt = turnAt = processorTime()
    turnOnClock = performance.now()
    setImmediate(look)
    process.stdout.write('LOOP on\n')
  })
}
