/**
 * Where the members of a trace are drawn: time goes from left to right, what is caused stands to the right of its cause, and
 * siblings stand below each other in the order of time. Trees need no more than one look at each node for that.
 */
import type { Drawn } from './groups.ts'

export const NODE_WIDTH = 188
export const NODE_HEIGHT = 62
const COLUMN = NODE_WIDTH + 36
const ROW = NODE_HEIGHT + 14
const TREE_GAP = 14
export const MARGIN = 20

export interface Placed {
  node: Drawn
  x: number
  y: number
}

export interface Edge {
  from: string
  to: string
  /** Of an SVG path. */
  path: string
}

export interface Layout {
  nodes: readonly Placed[]
  edges: readonly Edge[]
  width: number
  height: number
}

/** @param drawn causes before what they cause, each followed by all that it has caused */
export function layOut(drawn: readonly Drawn[]): Layout {
  const places = new Map<string, Placed>()
  const edges: Edge[] = []
  let y = MARGIN
  let right = 0
  let previous: Drawn | undefined
  for (const node of drawn) {
    // The first that something causes stands beside it, each further one begins a row.
    const isBeside = previous !== undefined && node.parent === previous.key
    if (previous !== undefined && !isBeside) y += node.parent === undefined ? ROW + TREE_GAP : ROW
    const placed = { node, x: MARGIN + node.depth * COLUMN, y }
    places.set(node.key, placed)
    right = Math.max(right, placed.x + NODE_WIDTH)
    const parent = node.parent === undefined ? undefined : places.get(node.parent)
    if (parent !== undefined) edges.push({ from: parent.node.key, to: node.key, path: pathBetween(parent, placed) })
    previous = node
  }
  const isEmpty = drawn.length === 0
  return {
    nodes: [...places.values()],
    edges,
    width: isEmpty ? 0 : right + MARGIN,
    height: isEmpty ? 0 : y + NODE_HEIGHT + MARGIN,
  }
}

function pathBetween(from: Placed, to: Placed): string {
  const [startX, startY] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2]
  const [endX, endY] = [to.x, to.y + NODE_HEIGHT / 2]
  if (startY === endY) return `M${startX} ${startY}H${endX}`
  const middle = startX + (endX - startX) / 2
  const bend = 10
  return `M${startX} ${startY}H${middle - bend}Q${middle} ${startY} ${middle} ${startY + bend}V${endY - bend}Q${middle} ${endY} ${middle + bend} ${endY}H${endX}`
}
