/** Reads server-sent events (contract 04, 4.1). */
import type { Readable } from 'node:stream'
import { CliFailure, ConnectionFailure } from '../failures.ts'

/** A longer event does not come from an svc server. */
const MAX_EVENT_LENGTH = 64 * 1024 * 1024

export interface ServerEvent {
  name: string
  data: string
  /** Of this or the last event that had one; empty when none did. */
  id: string
}

/** Ends when the stream ends. @throws ConnectionFailure, and what the stream fails with */
export async function* readEvents(stream: Readable): AsyncGenerator<ServerEvent> {
  /** Of a line that has no end yet; joined once that is there, because a line may come in very many parts. */
  let parts: string[] = []
  let length = 0
  let name = ''
  let data: string[] = []
  let id = ''
  for await (const chunk of readText(stream)) {
    length += chunk.length
    if (length > MAX_EVENT_LENGTH) throw new ConnectionFailure('The stream sent an event that is too long.')
    const isContinued = parts.at(-1)?.endsWith('\r') !== true && !/[\r\n]/.test(chunk)
    parts.push(chunk)
    if (isContinued) continue
    // A carriage return at the end may be the first half of a line break.
    const lines = parts.join('').split(/\r\n|\n|\r(?!$)/)
    const rest = lines.pop() ?? ''
    parts = rest === '' ? [] : [rest]
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { name: name || 'message', data: data.join('\n'), id }
        name = ''
        data = []
        length = rest.length
        continue
      }
      const colon = line.indexOf(':')
      const field = colon === -1 ? line : line.slice(0, colon)
      const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'event') name = value
      else if (field === 'data') data.push(value)
      else if (field === 'id') id = value
    }
  }
}

/** The UTF-8 text of a body as it comes. @throws ConnectionFailure when it breaks off */
export async function* readText(stream: Readable): AsyncGenerator<string> {
  stream.setEncoding('utf8')
  try {
    yield* stream as AsyncIterable<string> // its encoding is set
  } catch (error) {
    if (error instanceof CliFailure) throw error
    throw new ConnectionFailure(`The stream was interrupted: ${error instanceof Error ? error.message : String(error)}`)
  }
}
