/**
 * Where the tasks of a workflow are drawn: from top to bottom, each below all that lead to it. A transition that leads back
 * is drawn as a line upwards; one that passes other rows has a lane of its own beside their tasks. The same graph is always
 * drawn the same way.
 */

export const TASK_WIDTH = 192
export const TASK_HEIGHT = 66
const LANE_WIDTH = 8
const GAP = 22
const ROW_HEIGHT = TASK_HEIGHT + 42
const MARGIN = 24
/** More tasks of one layer stand in several rows. */
const MOST_IN_ROW = 6
const SWEEPS = 6
/** How much more it matters that a lane is straight than that a task is near to its neighbours. */
const LANE_WEIGHT = 1000
/** From the middle of a task to where lines leave and reach it that lead back. */
const BACK_PORT = TASK_WIDTH / 4
const ARROW = 5

export interface GraphEdge {
  from: string
  to: string
}

export interface PlacedTask {
  name: string
  /** From 0 at the top. */
  row: number
  /** Of the upper left corner. */
  x: number
  y: number
}

export interface DrawnEdge extends GraphEdge {
  /** Of an SVG path, with the head of the arrow. */
  path: string
  /** Whether it leads to a task that leads here, or to the same task. */
  isBack: boolean
}

export interface GraphLayout {
  /** Row by row, from left to right. */
  tasks: readonly PlacedTask[]
  /** In the given order. */
  edges: readonly DrawnEdge[]
  width: number
  height: number
}

/** A task, or a lane that lines take through a row. */
interface Item {
  name: string | undefined
  row: number
  width: number
  /** Of its middle. */
  x: number
  above: Item[]
  below: Item[]
}

/**
 * @param names of the tasks, each once, in the order of the definition
 * @param starts names of those that are to stand at the top
 * @param edges between these tasks, each pair once
 */
export function layOut(names: readonly string[], starts: readonly string[], edges: readonly GraphEdge[]): GraphLayout {
  const { order, isBack } = walk(names, starts, edges)
  const layers = findLayers(order, edges, isBack)
  const rows: Item[][] = []
  const tasks = new Map<string, Item>()
  for (const layer of groupByLayer(names, layers)) {
    for (const part of inRows(layer)) {
      const row = part.map((name) => newItem(name, rows.length))
      for (const item of row) tasks.set(item.name ?? '', item)
      rows.push(row)
    }
  }
  const lines = findLines(rows, tasks, edges, isBack)
  for (const row of rows) pack(row)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const row of rows) arrange(row, ({ above }) => above)
    for (const row of rows.toReversed()) arrange(row, ({ below }) => below)
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) align(row)
  }
  const { width, height } = moveIntoView(rows)
  return {
    tasks: rows.flatMap((row) =>
      row.flatMap(({ name, row: at, x }) =>
        name === undefined ? [] : [{ name, row: at, x: x - TASK_WIDTH / 2, y: topOf(at) }],
      ),
    ),
    edges: edges.map(({ from, to }, i) => ({
      from,
      to,
      isBack: isBack[i] === true,
      path: pathOf(lines[i] ?? [], isBack[i] === true),
    })),
    width,
    height,
  }
}

/** Depth first, without recursion. `order`: each task before all that it leads to, but for edges that lead back. */
function walk(
  names: readonly string[],
  starts: readonly string[],
  edges: readonly GraphEdge[],
): { order: string[]; isBack: boolean[] } {
  const outgoing = new Map<string, number[]>(names.map((name) => [name, []]))
  for (const [i, { from }] of edges.entries()) outgoing.get(from)?.push(i)
  const isBack = edges.map(() => false)
  const state = new Map<string, 'open' | 'done'>()
  const ended: string[] = []
  for (const root of [...starts, ...names]) {
    if (state.has(root)) continue
    state.set(root, 'open')
    const path = [{ name: root, next: 0 }]
    for (let visit = path.at(-1); visit !== undefined; visit = path.at(-1)) {
      const edge = outgoing.get(visit.name)?.[visit.next++]
      if (edge === undefined) {
        state.set(visit.name, 'done')
        ended.push(visit.name)
        path.pop()
        continue
      }
      const to = edges[edge]?.to ?? ''
      const seen = state.get(to)
      if (seen === 'open') isBack[edge] = true
      else if (seen === undefined) {
        state.set(to, 'open')
        path.push({ name: to, next: 0 })
      }
    }
  }
  return { order: ended.toReversed(), isBack }
}

/** By the longest path that leads to each task. */
function findLayers(
  order: readonly string[],
  edges: readonly GraphEdge[],
  isBack: readonly boolean[],
): Map<string, number> {
  const layers = new Map(order.map((name) => [name, 0]))
  const outgoing = new Map<string, string[]>(order.map((name) => [name, []]))
  for (const [i, { from, to }] of edges.entries()) if (isBack[i] !== true) outgoing.get(from)?.push(to)
  for (const name of order) {
    for (const to of outgoing.get(name) ?? [])
      layers.set(to, Math.max(layers.get(to) ?? 0, (layers.get(name) ?? 0) + 1))
  }
  return layers
}

function groupByLayer(names: readonly string[], layers: ReadonlyMap<string, number>): string[][] {
  const groups: string[][] = []
  for (const name of names) (groups[layers.get(name) ?? 0] ??= []).push(name)
  return groups
}

/** Rows of about the same length. */
function inRows(layer: readonly string[]): string[][] {
  const size = Math.ceil(layer.length / Math.ceil(layer.length / MOST_IN_ROW))
  const rows: string[][] = []
  for (let at = 0; at < layer.length; at += size) rows.push(layer.slice(at, at + size))
  return rows
}

function newItem(name: string | undefined, row: number): Item {
  return { name, row, width: name === undefined ? LANE_WIDTH : TASK_WIDTH, x: 0, above: [], below: [] }
}

/** What each line passes, from top to bottom. Lines that begin or end at the same task share its lanes. */
function findLines(
  rows: Item[][],
  tasks: ReadonlyMap<string, Item>,
  edges: readonly GraphEdge[],
  isBack: readonly boolean[],
): Item[][] {
  const ends = edges.map(({ from, to }, i) => {
    const [upper, lower] = isBack[i] === true ? [to, from] : [from, to]
    return { upper: tasks.get(upper), lower: tasks.get(lower) }
  })
  const long = new Map<Item, number>()
  for (const { upper, lower } of ends) {
    if (upper === undefined || lower === undefined || lower.row - upper.row < 2) continue
    for (const end of [upper, lower]) long.set(end, (long.get(end) ?? 0) + 1)
  }
  const lanes = new Map<string, Item>()
  const linked = new Set<string>()
  const numbers = new Map<Item, number>()
  const numberOf = (item: Item): number => {
    const number = numbers.get(item) ?? numbers.size
    numbers.set(item, number)
    return number
  }
  function link(above: Item, below: Item): void {
    const key = `${numberOf(above)} ${numberOf(below)}`
    if (linked.has(key)) return
    linked.add(key)
    above.below.push(below)
    below.above.push(above)
  }
  return ends.map(({ upper, lower }, i) => {
    if (upper === undefined || lower === undefined) return []
    if (upper === lower) return [upper]
    const owner = (long.get(lower) ?? 0) > (long.get(upper) ?? 0) ? lower : upper
    const line = [upper]
    for (let row = upper.row + 1; row < lower.row; row++) {
      const key = `${isBack[i] === true ? 'back' : 'on'} ${owner === upper ? 'from' : 'to'} ${numberOf(owner)} ${row}`
      let lane = lanes.get(key)
      if (lane === undefined) {
        lane = newItem(undefined, row)
        lanes.set(key, lane)
        rows[row]?.push(lane)
      }
      line.push(lane)
    }
    line.push(lower)
    for (const [at, item] of line.entries()) {
      const next = line[at + 1]
      if (next !== undefined) link(item, next)
    }
    return line
  })
}

/** Side by side, around the middle. */
function pack(row: readonly Item[]): void {
  let x = -(row.reduce((sum, { width }) => sum + width + GAP, 0) - GAP) / 2
  for (const item of row) {
    item.x = x + item.width / 2
    x += item.width + GAP
  }
}

/** Brings the items of a row into the order of what they are connected with. */
function arrange(row: Item[], neighbours: (item: Item) => readonly Item[]): void {
  const wanted = new Map(row.map((item) => [item, meanOf(neighbours(item)) ?? item.x]))
  row.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0))
  pack(row)
}

function meanOf(items: readonly Item[]): number | undefined {
  return items.length === 0 ? undefined : items.reduce((sum, { x }) => sum + x, 0) / items.length
}

/** Moves the items of a row as near to what they are connected with as their order and their widths allow. */
function align(row: readonly Item[]): void {
  interface Block {
    items: { item: Item; offset: number }[]
    /** Of its left end, as the weighted mean of what its items want. */
    wanted: number
    weight: number
  }
  const blocks: Block[] = []
  let offset = 0
  let previous: Item | undefined
  for (const item of row) {
    if (previous !== undefined) offset += (previous.width + item.width) / 2 + GAP
    previous = item
    const { x, weight } = wishOf(item)
    let block: Block = { items: [{ item, offset }], wanted: x - offset, weight }
    for (let before = blocks.at(-1); before !== undefined && before.wanted > block.wanted; before = blocks.at(-1)) {
      blocks.pop()
      const sum = before.weight + block.weight
      block = {
        items: [...before.items, ...block.items],
        wanted: (before.wanted * before.weight + block.wanted * block.weight) / sum,
        weight: sum,
      }
    }
    blocks.push(block)
  }
  for (const { items, wanted } of blocks) for (const each of items) each.item.x = wanted + each.offset
}

/** Lanes are straight: who could follow a line that makes room for each task on its way? */
function wishOf({ name, x, above, below }: Item): { x: number; weight: number } {
  const all = [...above, ...below]
  const lanes = name === undefined ? all.filter((other) => other.name === undefined) : []
  return { x: meanOf(lanes.length > 0 ? lanes : all) ?? x, weight: lanes.length > 0 ? LANE_WEIGHT : 1 }
}

function moveIntoView(rows: readonly Item[][]): { width: number; height: number } {
  const items = rows.flat()
  if (items.length === 0) return { width: 0, height: 0 }
  let [left, right] = [Infinity, -Infinity]
  for (const { x, width } of items) {
    left = Math.min(left, x - width / 2)
    right = Math.max(right, x + width / 2)
  }
  for (const item of items) item.x = Math.round(item.x - left + MARGIN)
  return { width: Math.ceil(right - left) + 2 * MARGIN, height: topOf(rows.length - 1) + TASK_HEIGHT + MARGIN }
}

const topOf = (row: number): number => MARGIN + row * ROW_HEIGHT

/** @param line from top to bottom; one item: a loop */
function pathOf(line: readonly Item[], isBack: boolean): string {
  const [first] = line
  if (first === undefined) return ''
  if (line.length === 1) {
    const [x, from, to] = [first.x + TASK_WIDTH / 2, topOf(first.row) + 20, topOf(first.row) + TASK_HEIGHT - 20]
    return `M${x} ${from}C${x + 20} ${from - 6} ${x + 20} ${to + 6} ${x} ${to}m${ARROW + 1} ${-ARROW + 1}l${-ARROW - 1} ${ARROW - 1}l${ARROW + 1} ${ARROW - 1}`
  }
  const steps = isBack ? line.toReversed() : line
  const sign = isBack ? -1 : 1
  const xOf = ({ name, x }: Item): number => (isBack && name !== undefined ? x + BACK_PORT : x)
  /** Where the line comes in, and where it goes out. */
  const into = ({ row }: Item): number => topOf(row) + (isBack ? TASK_HEIGHT : 0)
  const outOf = ({ row }: Item): number => topOf(row) + (isBack ? 0 : TASK_HEIGHT)
  let path = ''
  for (const [at, item] of steps.entries()) {
    const before = steps[at - 1]
    if (before === undefined) {
      path += `M${xOf(item)} ${outOf(item)}`
      continue
    }
    const [fromY, toY] = [outOf(before), into(item)]
    const middle = (fromY + toY) / 2
    path += `C${xOf(before)} ${middle} ${xOf(item)} ${middle} ${xOf(item)} ${toY}`
    if (item.name === undefined) path += `V${outOf(item)}`
  }
  return `${path}m${-ARROW} ${-sign * (ARROW + 1)}l${ARROW} ${sign * (ARROW + 1)}l${ARROW} ${-sign * (ARROW + 1)}`
}
