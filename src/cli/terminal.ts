/** The terminal that a program was started from. */
import { closeSync, constants, openSync } from 'node:fs'
import { isatty } from 'node:tty'

export interface Terminal {
  /** Whether there was one at the start, and is none any more: nobody can press Ctrl-C. */
  isGone(): boolean
}

/**
 * Looks for the terminal now. A program that reads and writes files alone, as under `nohup`, has none that it would miss.
 */
export function findTerminal(): Terminal {
  const existed = [0, 1, 2].some((descriptor) => isatty(descriptor)) && hasTerminal()
  return { isGone: () => existed && !hasTerminal() }
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
