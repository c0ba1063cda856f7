/** Decodes bytes in pieces, with the same result as decoding them at once. */

/**
 * Invalid bytes become U+FFFD; pieces never split a character. `TextDecoder` does the same but drops a byte order mark
 * and costs more than the rest of a short command's output handling.
 */
export class Utf8Decoder {
  #held: Buffer = Buffer.alloc(0)

  /** The complete characters; at most three bytes wait for the next piece. */
  decode(bytes: Buffer): string {
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    const complete = all.length - incompleteTail(all)
    this.#held = complete === all.length ? Buffer.alloc(0) : Buffer.from(all.subarray(complete))
    return all.toString('utf8', 0, complete)
  }

  /** The text of bytes still held back at the end of the input. */
  end(): string {
    const rest = this.#held.toString('utf8')
    this.#held = Buffer.alloc(0)
    return rest
  }
}

/** Length of the incomplete character at the end: a first byte that announces more bytes than follow it. */
function incompleteTail(bytes: Buffer): number {
  const last = bytes[bytes.length - 1]
  if (last === undefined || last < 0x80) return 0
  for (let tail = 1; tail <= 3 && tail <= bytes.length; tail++) {
    const byte = bytes[bytes.length - tail] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) {
      const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return tail < wanted ? tail : 0
    }
  }
  return 0
}

/** The longest prefix of a text that takes at most `maxBytes` in UTF-8, cut between characters. */
export function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
