/** Lines that are pointed at, as they stand in an address: `1234`, or `10-20`. */
export interface LineRange {
  first: number
  last: number
}

export function readLineRange(text: string | null | undefined): LineRange | undefined {
  const match = /^([1-9]\d{0,11})(?:-([1-9]\d{0,11}))?$/.exec(text ?? '')
  if (match?.[1] === undefined) return undefined
  return rangeOf(Number(match[1]), Number(match[2] ?? match[1]))
}

/** From one to the other, whichever comes first. */
export function rangeOf(one: number, other: number): LineRange {
  return { first: Math.min(one, other), last: Math.max(one, other) }
}

export function writeLineRange({ first, last }: LineRange): string {
  return first === last ? String(first) : `${first}-${last}`
}

export function isWithin(range: LineRange | undefined, line: number): boolean {
  return range !== undefined && line >= range.first && line <= range.last
}
