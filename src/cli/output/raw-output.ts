/** Prints files of the server: byte for byte to a file or a pipe, escaped on a terminal and in machine output. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { cliProcess } from '../cli-process.ts'
import { CliFailure, ConnectionFailure, HttpFailure } from '../failures.ts'
import { printable, type Json } from './print.ts'
import type { Session } from '../session.ts'

/** No server sends larger ones (contract 02, 2.8). */
const MAX_BYTES = 16 * 1024 * 1024

/** @param whenMissing makes the failure for a 404 with this code and message */
export async function openFile(
  session: Session,
  path: string,
  whenMissing: (code: string, message: string) => CliFailure,
): Promise<IncomingMessage> {
  try {
    return await session.client.openText(path, {})
  } catch (error) {
    const isAboutFile = error instanceof HttpFailure && error.status === 404 && error.code !== 'ROUTE_UNKNOWN'
    throw isAboutFile ? whenMissing(error.code, error.message) : error
  }
}

/** @throws CliFailure for a file that is too large; ConnectionFailure when the connection is lost */
export async function readFile(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > MAX_BYTES) throw new CliFailure('The server sent a file larger than 16 MiB.')
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof CliFailure) throw error
    throw new ConnectionFailure(
      `The download was interrupted: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  return Buffer.concat(chunks)
}

/**
 * @param about attributes that stand before the content in machine output
 * @throws CliFailure for binary content where text is needed; ConnectionFailure when the connection is lost
 */
export async function printFile(session: Session, response: IncomingMessage, about: Json): Promise<void> {
  // Printed only when complete: an error must not end up in the middle of the file.
  const bytes = await readFile(response)
  const { stdout } = cliProcess()
  if (session.form === 'human' && stdout.isTTY !== true) {
    if (!stdout.write(bytes)) await once(stdout, 'drain')
    return
  }
  const content = textOf(bytes)
  if (session.form !== 'human') await session.printMachine({ ...about, content })
  else await session.print(content === '' || content.endsWith('\n') ? printable(content) : `${printable(content)}\n`)
}

function textOf(bytes: Buffer): string {
  try {
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Said below.
  }
  throw new CliFailure('The file is not text. Redirect the output to a file, such as > icon.png.')
}
