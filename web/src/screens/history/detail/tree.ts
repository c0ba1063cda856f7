/** The executions that one has started, and those that they have: nodes by their parents. */
import { laterOf, type ExecutionSummary } from '../../../api/execution-summary.ts'

export interface TreeNode {
  execution: ExecutionSummary
  children: TreeNode[]
}

/** The most that are shown; the list shows more. */
export const MAX_NODES = 500

export interface Tree {
  /** By id. */
  nodes: ReadonlyMap<string, ExecutionSummary>
  /** Some are not among the nodes. */
  isCut: boolean
}

export const emptyTree: Tree = { nodes: new Map(), isCut: false }

/** Answers and events in any order: the later one counts, and statuses never go back. */
export function withExecutions(tree: Tree, executions: Iterable<ExecutionSummary>, rootId: string): Tree {
  const nodes = new Map(tree.nodes)
  let { isCut } = tree
  for (const execution of executions) {
    const { id, parent } = execution
    const before = nodes.get(id)
    if (before !== undefined) nodes.set(id, laterOf(before, execution))
    else if (parent !== undefined && (parent === rootId || nodes.has(parent))) {
      if (nodes.size < MAX_NODES) nodes.set(id, execution)
      else isCut = true
    }
  }
  return { nodes, isCut }
}

/** The children of the root, oldest first, each with its own. */
export function branchesOf({ nodes }: Tree, rootId: string): TreeNode[] {
  const byParent = new Map<string, TreeNode[]>()
  const ordered = [...nodes.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  for (const execution of ordered) {
    const { parent = '' } = execution
    const siblings = byParent.get(parent)
    const node = { execution, children: [] }
    if (siblings === undefined) byParent.set(parent, [node])
    else siblings.push(node)
  }
  for (const siblings of byParent.values()) {
    for (const node of siblings) node.children = byParent.get(node.execution.id) ?? []
  }
  return byParent.get(rootId) ?? []
}
