/**
 * Which rows of a long list are to be seen. Only those are in the document, so that ten million cost as much as fifty.
 *
 * Browsers know no element higher than some ten million pixels. A list that would be higher is drawn on a canvas of that
 * height: the scroll bar then stands for a share of the list, and rows keep their distance around the place that is looked at.
 */
export const MAX_HEIGHT = 8_000_000

export interface Viewport {
  scrollTop: number
  height: number
}

export interface Rows {
  /** Height of what is scrolled. */
  totalHeight: number
  /** First row that is drawn. */
  first: number
  /** Behind the last one. */
  end: number
  /** Where the first row is drawn, from the top of what is scrolled. */
  offset: number
}

/** @param overscan rows drawn beyond both edges, so that scrolling shows no gaps */
export function rowsOf(count: number, rowHeight: number, { scrollTop, height }: Viewport, overscan = 10): Rows {
  const natural = count * rowHeight
  const totalHeight = Math.min(natural, MAX_HEIGHT)
  const top = clamp(scrollTop, 0, Math.max(0, totalHeight - height))
  const position = topRowOf(count, rowHeight, { scrollTop: top, height })
  const first = Math.max(0, Math.floor(position) - overscan)
  const end = Math.min(count, Math.ceil(position + height / rowHeight) + overscan)
  return { totalHeight, first, end, offset: top - (position - first) * rowHeight }
}

/** The row at the upper edge, with the share of it that is scrolled away. */
export function topRowOf(count: number, rowHeight: number, { scrollTop, height }: Viewport): number {
  const natural = count * rowHeight
  if (natural <= MAX_HEIGHT) return scrollTop / rowHeight
  const way = MAX_HEIGHT - height
  const share = way <= 0 ? 0 : clamp(scrollTop / way, 0, 1)
  return share * (count - height / rowHeight)
}

/** Where to scroll to for a row to be at the upper edge, or as near to it as the end of the list lets it. */
export function scrollTopOf(row: number, count: number, rowHeight: number, height: number): number {
  const natural = count * rowHeight
  if (natural <= MAX_HEIGHT) return clamp(row * rowHeight, 0, Math.max(0, natural - height))
  const rows = count - height / rowHeight
  return rows <= 0 ? 0 : clamp(row / rows, 0, 1) * (MAX_HEIGHT - height)
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}
