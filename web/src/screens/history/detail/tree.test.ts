import { expect, test } from 'vitest'
import type { ExecutionSummary } from '../../../api/execution-summary.ts'
import type { ExecutionStatus } from '../../../api/records.ts'
import { branchesOf, emptyTree, MAX_NODES, withExecutions, type TreeNode } from './tree.ts'

const make = (id: string, parent: string, ...statuses: ExecutionStatus[]): ExecutionSummary => ({
  id,
  parent,
  status: statuses.at(-1) ?? 'requested',
  start_timestamp: '',
  log: statuses.map((status) => ({ status, timestamp: '' })),
  action: { ref: 'a.b', name: 'b', pack: 'a' },
  runner: { name: 'noop' },
  context: { user: 'ada' },
  liveaction: { id: 'l', runner_info: {} },
})
const shapeOf = (nodes: readonly TreeNode[]): unknown =>
  nodes.map(({ execution, children }) => (children.length === 0 ? execution.id : [execution.id, shapeOf(children)]))

test('children stand below their parents, the oldest first', () => {
  const tree = withExecutions(
    emptyTree,
    [make('b', 'root'), make('a', 'root'), make('ab', 'a'), make('aa', 'a'), make('aab', 'aa')],
    'root',
  )
  expect(shapeOf(branchesOf(tree, 'root'))).toEqual([['a', [['aa', ['aab']], 'ab']], 'b'])
})

test('executions of others are none of it', () => {
  const tree = withExecutions(emptyTree, [make('x', 'other'), make('y', 'x')], 'root')
  expect(tree).toEqual(emptyTree)
})

test('what happens changes a node, and adds to it, but never takes anything back', () => {
  let tree = withExecutions(emptyTree, [make('a', 'root', 'requested', 'running')], 'root')
  tree = withExecutions(tree, [make('a', 'root', 'requested'), make('aa', 'a', 'requested')], 'root')
  expect([tree.nodes.get('a')?.status, tree.nodes.get('aa')?.status]).toEqual(['running', 'requested'])
  tree = withExecutions(tree, [make('a', 'root', 'requested', 'running', 'failed')], 'root')
  expect(tree.nodes.get('a')?.status).toBe('failed')
})

test('it has a bound, and says so', () => {
  const many = Array.from({ length: MAX_NODES + 5 }, (_, i) => make(`c${String(i).padStart(5, '0')}`, 'root'))
  const tree = withExecutions(emptyTree, many, 'root')
  expect([tree.nodes.size, tree.isCut]).toEqual([MAX_NODES, true])
  expect(branchesOf(tree, 'root')).toHaveLength(MAX_NODES)
})
