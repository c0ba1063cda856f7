/** The raw bytes of the command line. */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { cliProcess } from './cli-process.ts'
import { exitCodes } from './exit-codes.ts'
import { CliFailure } from './failures.ts'

/** Node replaces bytes that are not UTF-8 with this character; the user may also have typed it. */
const REPLACEMENT = '\ufffd'

/** @throws CliFailure (2) when an argument of this process has lost bytes */
export function checkArgumentBytes(): void {
  if (!cliProcess().argv.some((word) => word.includes(REPLACEMENT)) || isUtf8(commandLine())) return
  throw new CliFailure('An argument is not valid UTF-8. Use a UTF-8 locale or correct the argument.', exitCodes.usage)
}

function commandLine(): Buffer {
  try {
    return readFileSync('/proc/self/cmdline')
  } catch {
    // Other systems than Linux have none.
    return Buffer.alloc(0)
  }
}
