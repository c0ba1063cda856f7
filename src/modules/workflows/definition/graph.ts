/** The graph of a definition: who leads where, computed once per definition, in time linear in its size. */

/** A transition between two tasks, named by their indexes. */
export interface Edge {
  readonly from: number
  readonly to: number
}

/** Python's order of text: by code point. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  for (let at = 0; ; at++) {
    const left = a.codePointAt(at)
    const right = b.codePointAt(at)
    if (left !== right) return (left ?? -1) - (right ?? -1)
    if (left !== undefined && left > 0xffff) at++
  }
}

/** Whether a walk along the edges from a start reaches each task. */
export function findReachable(starts: readonly number[], outgoing: readonly (readonly Edge[])[]): boolean[] {
  const isReached = outgoing.map(() => false)
  const open: number[] = []
  const reach = (index: number): void => {
    if (isReached[index] === true) return
    isReached[index] = true
    open.push(index)
  }
  starts.forEach(reach)
  for (let index = open.pop(); index !== undefined; index = open.pop())
    for (const { to } of outgoing[index] ?? []) reach(to)
  return isReached
}

/** Whether each task lies in a cycle. */
export function findCycles(outgoing: readonly (readonly Edge[])[]): boolean[] {
  const component = findComponents(outgoing)
  const sizes = new Map<number, number>()
  for (const number of component) sizes.set(number, (sizes.get(number) ?? 0) + 1)
  return outgoing.map(
    (edges, index) => (sizes.get(component[index] ?? 0) ?? 0) > 1 || edges.some(({ to }) => to === index),
  )
}

/**
 * The number of the strongly connected component of each task: those that share one lie in a cycle. A component has a
 * greater number than those that it leads to. Tarjan's algorithm, without recursion.
 */
export function findComponents(outgoing: readonly (readonly Edge[])[]): Int32Array {
  const count = outgoing.length
  const component = new Int32Array(count).fill(-1)
  const order = new Int32Array(count).fill(-1)
  const low = new Int32Array(count)
  const stack: number[] = []
  let next = 0
  let components = 0

  const enter = (index: number): { index: number; edge: number } => {
    order[index] = low[index] = next++
    stack.push(index)
    return { index, edge: 0 }
  }
  const leave = (index: number): void => {
    if (low[index] !== order[index]) return
    for (const member of stack.splice(stack.lastIndexOf(index))) component[member] = components
    components += 1
  }
  for (let root = 0; root < count; root++) {
    if (order[root] !== -1) continue
    const path = [enter(root)]
    for (let visit = path.at(-1); visit !== undefined; visit = path.at(-1)) {
      const { index } = visit
      const to = outgoing[index]?.[visit.edge++]?.to
      if (to === undefined) {
        leave(index)
        path.pop()
        const parent = path.at(-1)?.index
        if (parent !== undefined) low[parent] = Math.min(low[parent] ?? 0, low[index] ?? 0)
      } else if (order[to] === -1) path.push(enter(to))
      else if (component[to] === -1) low[index] = Math.min(low[index] ?? 0, order[to] ?? 0)
    }
  }
  return component
}
