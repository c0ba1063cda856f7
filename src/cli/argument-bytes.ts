/** The bytes that the words of the command line were made of. */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { cliProcess } from './cli-process.ts'
import { exitCodes } from './exit-codes.ts'
import { CliFailure } from './failures.ts'

/** Stands for bytes that are not UTF-8 since Node began; but somebody may also have written it. */
const REPLACEMENT = '\ufffd'

/** @throws CliFailure (2) when an argument of this process has lost bytes */
export function checkArgumentBytes(): void {
  if (!cliProcess().argv.some((word) => word.includes(REPLACEMENT)) || isUtf8(commandLine())) return
  throw new CliFailure('An argument is not UTF-8; the server would get something else.', exitCodes.usage)
}

function commandLine(): Buffer {
  try {
    return readFileSync('/proc/self/cmdline')
  } catch {
    // Other systems than Linux have none.
    return Buffer.alloc(0)
  }
}
