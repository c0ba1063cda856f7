/** Splits bytes into lines. A line longer than the limit is dropped, and said so. */

export interface LineReader {
  /**
   * Complete lines, without their line feeds; `undefined` in the place of one that was too long. Each line is made when
   * it is taken; take all of them before the next call.
   */
  push(bytes: Buffer): Generator<string | undefined, void>
  /** The last line, if it has no line feed; `undefined` if it was too long. */
  end(): Generator<string | undefined, void>
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
      pieces.push(bytes)
    }
  }

  function take(): string | undefined {
    const [first, ...others] = pieces
    const whole = others.length === 0 ? first : Buffer.concat(pieces)
    const text = whole?.toString('utf8') ?? ''
    const line = isTooLong ? undefined : text.endsWith('\r') ? text.slice(0, -1) : text
    pieces = []
    length = 0
    isTooLong = false
    return line
  }

  return {
    *push(bytes) {
      let from = 0
      for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
        add(bytes.subarray(from, at))
        yield take()
        from = at + 1
      }
      // A copy: the buffer belongs to a larger one that would stay in memory.
      add(Buffer.from(bytes.subarray(from)))
    },
    *end() {
      if (length > 0) yield take()
    },
  }
}
