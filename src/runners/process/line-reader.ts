/** Splits bytes into lines. A line longer than the limit is dropped, and said so. */
import { StringDecoder } from 'node:string_decoder'

export interface LineReader {
  /** Complete lines, without their line feeds; `undefined` in the place of one that was too long. */
  push(bytes: Buffer): (string | undefined)[]
  /** The last line, if it has no line feed; `undefined` if it was too long. */
  end(): (string | undefined)[]
}

/** @param maxBytes of one line */
export function createLineReader(maxBytes: number): LineReader {
  let pieces: Buffer[] = []
  let length = 0
  let isTooLong = false

  function add(bytes: Buffer): void {
    length += bytes.length
    if (length > maxBytes) {
      isTooLong = true
      pieces = []
    } else if (bytes.length > 0) {
      // A copy: the buffer belongs to a larger one that would stay in memory.
      pieces.push(Buffer.from(bytes))
    }
  }

  function take(): string | undefined {
    const line = isTooLong ? undefined : new StringDecoder('utf8').end(Buffer.concat(pieces)).replace(/\r$/, '')
    pieces = []
    length = 0
    isTooLong = false
    return line
  }

  return {
    push(bytes) {
      const lines: (string | undefined)[] = []
      let from = 0
      for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
        add(bytes.subarray(from, at))
        lines.push(take())
        from = at + 1
      }
      add(bytes.subarray(from))
      return lines
    },
    end: () => (length === 0 ? [] : [take()]),
  }
}
