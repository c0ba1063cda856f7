/**
 * Which rows of a long list are visible. Only those are in the document, so that ten million cost as much as fifty.
 *
 * Browsers know no element higher than some ten million pixels. A list that would be higher is drawn on a canvas of that
 * height, on which its rows keep their distance: wheel, keys and fingers move it row by row. A leap, such as the scroll bar
 * makes, which has more rows than pixels, leads to that share of the list. Where rows are drawn and where the scroll bar is
 * then drift apart, which is put right when nothing moves.
 */
export const MAX_HEIGHT = 8_000_000
/** At both ends of the canvas there are as many pixels as the rows have, so that the ends are reached row by row. */
const END_HEIGHT = 1_000_000
/** Of the height that is seen. Keys and wheels move by less, and one pixel of the scroll bar is more. */
const LEAP = 3

export interface ListSize {
  count: number
  /** Pixels, as everything here. */
  rowHeight: number
  /** That is seen. */
  height: number
}

export interface ScrollPlace {
  scrollTop: number
  /** Where the first row would be, from the top of the canvas. */
  origin: number
}

export interface DrawnRows {
  /** First row that is drawn. */
  first: number
  /** Behind the last one. */
  end: number
  /** Where the first row is drawn, from the top of the canvas. */
  offset: number
}

export const startPlace: ScrollPlace = { scrollTop: 0, origin: 0 }

export function canvasHeight({ count, rowHeight }: Pick<ListSize, 'count' | 'rowHeight'>): number {
  return Math.min(count * rowHeight, MAX_HEIGHT)
}

/** @param overscan rows drawn beyond both edges, so that scrolling shows no gaps */
export function drawnRowsAt(place: ScrollPlace, size: ListSize, overscan = 10): DrawnRows {
  const { count, rowHeight, height } = size
  const top = clamp(topRowOf(place, size), 0, lastTopRow(size))
  const first = Math.max(0, Math.floor(top) - overscan)
  const end = Math.min(count, Math.ceil(top + height / rowHeight) + overscan)
  return { first, end, offset: place.origin + first * rowHeight }
}

/** The row at the upper edge, with the share of it that is scrolled away. */
export function topRowOf({ scrollTop, origin }: ScrollPlace, { rowHeight }: Pick<ListSize, 'rowHeight'>): number {
  return (scrollTop - origin) / rowHeight
}

/** Where the list is once the browser, or the list itself, has scrolled. */
export function scrolledTo(scrollTop: number, before: ScrollPlace, size: ListSize): ScrollPlace {
  if (isNatural(size)) return { scrollTop, origin: 0 }
  const isLeap = Math.abs(scrollTop - before.scrollTop) > LEAP * size.height
  return within({ scrollTop, origin: isLeap ? originOf(rowAt(scrollTop, size), scrollTop, size) : before.origin }, size)
}

/** The same rows at the same place, where the scroll bar is at their share of the list. */
export function settledPlace(place: ScrollPlace, size: ListSize): ScrollPlace {
  if (isNatural(size)) return place
  const row = clamp(topRowOf(place, size), 0, lastTopRow(size))
  // Whole pixels, so that nothing that is seen moves by less than one.
  const move = Math.round(scrollTopAt(row, size) - place.scrollTop)
  return within({ scrollTop: place.scrollTop + move, origin: place.origin + move }, size)
}

/** Whether scrolling cannot go on although there are more rows. */
export function isStuck(place: ScrollPlace, size: ListSize): boolean {
  if (isNatural(size)) return false
  const row = topRowOf(place, size)
  return place.scrollTop <= 0 ? row > 0 : place.scrollTop >= MAX_HEIGHT - size.height && row < lastTopRow(size)
}

/** With a row at the upper edge, or as near to it as the end of the list lets it. */
export function placeOfRow(row: number, size: ListSize): ScrollPlace {
  const top = clamp(row, 0, lastTopRow(size))
  if (isNatural(size)) return { scrollTop: top * size.rowHeight, origin: 0 }
  const scrollTop = Math.round(scrollTopAt(top, size))
  return within({ scrollTop, origin: originOf(top, scrollTop, size) }, size)
}

function isNatural(size: ListSize): boolean {
  return size.count * size.rowHeight <= MAX_HEIGHT
}

function lastTopRow({ count, rowHeight, height }: ListSize): number {
  return Math.max(0, count - height / rowHeight)
}

function originOf(row: number, scrollTop: number, { rowHeight }: ListSize): number {
  return Math.round(scrollTop - row * rowHeight)
}

/** No emptiness before the first row or behind the last one. */
function within({ scrollTop, origin }: ScrollPlace, size: ListSize): ScrollPlace {
  const top = clamp(scrollTop, 0, MAX_HEIGHT - size.height)
  const lowest = top + size.height - size.count * size.rowHeight
  return { scrollTop, origin: clamp(origin, lowest, top) }
}

/** Pixels and rows of the ends, and of what is between them. */
function sections(size: ListSize): { end: number; endRows: number; way: number; rows: number } {
  const whole = MAX_HEIGHT - size.height
  const end = Math.min(END_HEIGHT, whole / 4)
  const endRows = end / size.rowHeight
  return { end, endRows, way: whole - 2 * end, rows: lastTopRow(size) - 2 * endRows }
}

function rowAt(scrollTop: number, size: ListSize): number {
  const { end, endRows, way, rows } = sections(size)
  if (scrollTop <= end) return scrollTop / size.rowHeight
  if (scrollTop <= end + way) return endRows + ((scrollTop - end) / way) * rows
  return endRows + rows + (scrollTop - end - way) / size.rowHeight
}

function scrollTopAt(row: number, size: ListSize): number {
  const { end, endRows, way, rows } = sections(size)
  if (row <= endRows) return row * size.rowHeight
  if (row <= endRows + rows) return end + ((row - endRows) / rows) * way
  return end + way + (row - endRows - rows) * size.rowHeight
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}
