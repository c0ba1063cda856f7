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
  const onHangUp = (): void => {
    setTimeout(() => {
      if (!hasTerminal()) return
      process.off('SIGHUP', onHangUp)
      process.kill(process.pid, 'SIGHUP')
    }, TERMINAL_GONE_MS).unref()
  }
  process.on('SIGHUP', onHangUp)
  return () => process.off('SIGHUP', onHangUp)
}

function usesTerminal(): boolean {
  return [0, 1, 2].some((descriptor) => isatty(descriptor))
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
