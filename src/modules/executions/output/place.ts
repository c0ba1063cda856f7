/** Counts the lines and bytes before a place in an output. Counts every byte of output once, at 1 GB/s or more. */
import type { OutputPlace, OutputRecord } from '../types.ts'

export const noPlace: Readonly<OutputPlace> = {
  stdout_lines: 0,
  stderr_lines: 0,
  other_lines: 0,
  stdout_bytes: 0,
  stderr_bytes: 0,
  other_bytes: 0,
}

export function placeBehind({ output_type: type, data }: OutputRecord, before: OutputPlace): OutputPlace {
  const place = {
    stdout_lines: before.stdout_lines,
    stderr_lines: before.stderr_lines,
    other_lines: before.other_lines,
    stdout_bytes: before.stdout_bytes,
    stderr_bytes: before.stderr_bytes,
    other_bytes: before.other_bytes,
  }
  place[`${type}_lines`] += countLineEnds(data)
  place[`${type}_bytes`] += Buffer.byteLength(data)
  return place
}

/** Lines that are shorter on average are counted byte by byte. */
const SHORT_LINE_LENGTH = 16
const FEW_LINES = 32
const scratch = Buffer.allocUnsafe(65_536)
/** UTF-16 units that always fit into `scratch`. */
const PIECE_LENGTH = scratch.length / 4

export function countLineEnds(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
    count += 1
    // A search costs as much as comparing some twenty bytes.
    if (count === FEW_LINES && at < FEW_LINES * SHORT_LINE_LENGTH) return countByBytes(text)
  }
  return count
}

function countByBytes(text: string): number {
  let count = 0
  for (let start = 0; start < text.length; start += PIECE_LENGTH) {
    // A split surrogate pair becomes replacement characters, never a line end.
    const length = scratch.write(text.slice(start, start + PIECE_LENGTH), 'utf8')
    for (let i = 0; i < length; i++) if (scratch[i] === 10) count += 1
  }
  return count
}
