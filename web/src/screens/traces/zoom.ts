/** How large a drawing is shown, and where to scroll so that what somebody points at stays there. */

export const MIN_SCALE = 0.1
export const MAX_SCALE = 2
/** Smaller, and nobody could read it: rather a part of it. */
const MIN_READABLE = 0.7
const STEP = 1.25

export interface Size {
  width: number
  height: number
}

export function clampScale(scale: number): number {
  return Math.min(MAX_SCALE, Math.max(MIN_SCALE, scale))
}

export function zoomedIn(scale: number): number {
  return clampScale(scale * STEP)
}

export function zoomedOut(scale: number): number {
  return clampScale(scale / STEP)
}

/** Shows the whole graph, never larger than drawn. */
export function fitScale(drawing: Size, view: Size): number {
  if (drawing.width === 0 || drawing.height === 0 || view.width === 0 || view.height === 0) return 1
  return clampScale(Math.min(1, view.width / drawing.width, view.height / drawing.height))
}

/** At which it is shown first: all of it when that can be read. */
export function firstScale(drawing: Size, view: Size): number {
  const fits = fitScale(drawing, view)
  if (fits >= MIN_READABLE) return fits
  // A long list of short cascades is read from its beginning.
  const inWidth = fitScale({ ...drawing, height: 1 }, view)
  return Math.max(MIN_READABLE, inWidth)
}

/**
 * Where to scroll to, one dimension of it.
 *
 * @param pointed distance from the edge of the view of what is to stay
 */
export function scrollAfterZoom(scroll: number, pointed: number, before: number, after: number): number {
  return ((scroll + pointed) / before) * after - pointed
}
