/** The terminal that a program was started from. */
import { closeSync, constants, openSync } from 'node:fs'
import { cliProcess } from './cli-process.ts'

export interface Terminal {
  /** Whether there was one at the start, and is none any more: nobody can press Ctrl-C. */
  isGone(): boolean
}

/**
 * Looks for the terminal now. A program that reads and writes files alone, as under `nohup`, has none that it would miss.
 */
export function findTerminal(): Terminal {
  const existed = usesTerminal() && hasTerminal()
  return { isGone: () => existed && !hasTerminal() }
}

/** The kernel tells of a terminal's end a moment before it takes the terminal away. */
export const TERMINAL_GONE_MS = 1000

/**
 * Has a program that neither reads from its terminal nor writes to it outlive that, as under `nohup`: Node undoes that it
 * was started to ignore SIGHUP. One that is not about the terminal ends it as ever.
 *
 * @returns ends that
 */
export function outliveTerminal(): () => void {
  if (usesTerminal() || !hasTerminal()) return () => undefined
  const ownProcess = cliProcess()
  const onHangUp = (): void => {
    setTimeout(() => {
      if (!hasTerminal()) return
      ownProcess.off('SIGHUP', onHangUp)
      ownProcess.kill('SIGHUP')
    }, TERMINAL_GONE_MS).unref()
  }
  ownProcess.on('SIGHUP', onHangUp)
  return () => ownProcess.off('SIGHUP', onHangUp)
}

function usesTerminal(): boolean {
  const { isTerminal } = cliProcess()
  return isTerminal(0) || isTerminal(1) || isTerminal(2)
}

function hasTerminal(): boolean {
  try {
    // A modem line may otherwise wait for its carrier.
    closeSync(openSync('/dev/tty', constants.O_RDONLY | constants.O_NOCTTY | constants.O_NONBLOCK))
    return true
  } catch {
    return false
  }
}
