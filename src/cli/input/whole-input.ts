/** All of standard input, where a command takes it in place of a file. */
import { addAbortListener } from 'node:events'
import { cliProcess } from '../cli-process.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, Interrupted } from '../failures.ts'
import type { Session } from '../session.ts'

/** @throws CliFailure (2) when there is more, Interrupted */
export async function readWholeInput({ interrupted }: Pick<Session, 'interrupted'>, maxBytes: number): Promise<Buffer> {
  const { stdin } = cliProcess()
  const listener = addAbortListener(interrupted, () => stdin.destroy())
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) {
        throw new CliFailure(`Standard input holds more than ${maxBytes} bytes.`, exitCodes.usage)
      }
      chunks.push(chunk)
    }
  } catch (error) {
    if (!interrupted.aborted) throw error
  } finally {
    listener[Symbol.dispose]()
  }
  if (interrupted.aborted) throw new Interrupted()
  return Buffer.concat(chunks)
}
