import { describe, expect, test } from 'vitest'
import { layOut, TASK_HEIGHT, TASK_WIDTH, type GraphEdge, type GraphLayout, type PlacedTask } from './layout.ts'

/** `a>b` */
const edgesOf = (...texts: string[]): GraphEdge[] =>
  texts.map((text) => {
    const [from = '', to = ''] = text.split('>')
    return { from, to }
  })

const rowsOf = ({ tasks }: GraphLayout): string[][] => {
  const rows: string[][] = []
  for (const { name, row } of tasks) (rows[row] ??= []).push(name)
  return rows
}

const backOf = ({ edges }: GraphLayout): string[] =>
  edges.filter(({ isBack }) => isBack).map(({ from, to }) => `${from}>${to}`)

function expectApart({ tasks, width, height }: GraphLayout): void {
  const isOutside = ({ x, y }: PlacedTask): boolean =>
    x < 0 || y < 0 || x + TASK_WIDTH > width || y + TASK_HEIGHT > height
  const overlapping = tasks.flatMap((a, i) =>
    tasks
      .slice(i + 1)
      .filter((b) => Math.abs(a.x - b.x) < TASK_WIDTH && Math.abs(a.y - b.y) < TASK_HEIGHT)
      .map((b) => `${a.name} and ${b.name}`),
  )
  expect({ outside: tasks.filter(isOutside), overlapping }).toEqual({ outside: [], overlapping: [] })
}

describe('the layout of a workflow', () => {
  test('places each task below all that lead to it', () => {
    const layout = layOut(['a', 'b', 'c', 'd'], ['a'], edgesOf('a>b', 'b>c', 'a>c', 'c>d', 'a>d'))
    expect(rowsOf(layout)).toEqual([['a'], ['b'], ['c'], ['d']])
    expect(backOf(layout)).toEqual([])
    expectApart(layout)
  })

  test('places what is between a fork and its join side by side', () => {
    const layout = layOut(['end', 'a', 'left', 'right'], ['a'], edgesOf('a>left', 'a>right', 'left>end', 'right>end'))
    expect(rowsOf(layout)).toEqual([['a'], ['left', 'right'], ['end']])
    const at = new Map(layout.tasks.map((task) => [task.name, task.x]))
    expect(at.get('a')).toBe(at.get('end'))
    expect(at.get('a')).toBe(((at.get('left') ?? 0) + (at.get('right') ?? 0)) / 2)
  })

  test('draws as leading back what closes a cycle, also of one task', () => {
    const layout = layOut(['a', 'b', 'c'], ['a'], edgesOf('a>b', 'b>c', 'c>a', 'b>b'))
    expect(rowsOf(layout)).toEqual([['a'], ['b'], ['c']])
    expect(backOf(layout)).toEqual(['c>a', 'b>b'])
    for (const { path } of layout.edges) expect(path).toMatch(/^M[-\d.]+ [-\d.]+C[-\d. CVlm]+$/)
  })

  test('draws cycles that nothing leads to', () => {
    const layout = layOut(['a', 'b', 'c'], ['a'], edgesOf('b>c', 'c>b'))
    expect(rowsOf(layout).map((row) => row.toSorted())).toEqual([['a', 'b'], ['c']])
    expect(backOf(layout)).toEqual(['c>b'])
  })

  test('places parts that have nothing to do with each other side by side', () => {
    const layout = layOut(['a', 'b', 'c', 'd'], ['a', 'c'], edgesOf('a>b', 'c>d'))
    expect(rowsOf(layout)).toEqual([
      ['a', 'c'],
      ['b', 'd'],
    ])
    expectApart(layout)
  })

  test('orders the tasks of a row so that lines need not cross', () => {
    const names = ['a', 'b', 'c', 'x', 'y', 'z']
    const layout = layOut(names, ['a', 'b', 'c'], edgesOf('a>z', 'b>y', 'c>x'))
    const at = new Map(layout.tasks.map((task) => [task.name, task.x]))
    const isLeft = (one: string, other: string): boolean => (at.get(one) ?? 0) < (at.get(other) ?? 0)
    expect(isLeft('a', 'b')).toBe(isLeft('z', 'y'))
    expect(isLeft('b', 'c')).toBe(isLeft('y', 'x'))
  })

  test('leads a line beside the tasks that it passes', () => {
    const layout = layOut(['a', 'b', 'c'], ['a'], edgesOf('a>b', 'b>c', 'a>c'))
    const b = layout.tasks.find(({ name }) => name === 'b')?.x ?? 0
    const [, at] = / (\S+) \S+V/.exec(layout.edges[2]?.path ?? '') ?? []
    const passing = Number(at)
    expect(passing < b || passing > b + TASK_WIDTH).toBe(true)
  })

  test('breaks wide layers into rows', () => {
    const names = Array.from({ length: 200 }, (_, i) => `t${i}`)
    const edges = names.flatMap((name) => edgesOf(`start>${name}`, `${name}>end`))
    const layout = layOut(['start', ...names, 'end'], ['start'], edges)
    const rows = rowsOf(layout)
    expect(Math.max(...rows.map(({ length }) => length))).toBeLessThanOrEqual(6)
    expect([rows[0], rows.at(-1)]).toEqual([['start'], ['end']])
    expect(layout.width).toBeLessThan(2000)
    expectApart(layout)
  })

  test('draws long sequences and dense graphs apart, and the same each time', () => {
    const names = Array.from({ length: 60 }, (_, i) => `t${i}`)
    const sequence = names.slice(1).map((name, i) => ({ from: `t${i}`, to: name }))
    // Each leads to some further ones, and every seventh back.
    const dense = names.flatMap((name, i) =>
      [i + 1, i * 2 + 1, i + 9, ...(i % 7 === 6 ? [i - 5] : [])]
        .filter((to, at, all) => to < names.length && all.indexOf(to) === at)
        .map((to) => ({ from: name, to: `t${to}` })),
    )
    for (const edges of [sequence, dense]) {
      const layout = layOut(names, ['t0'], edges)
      expectApart(layout)
      expect(layout.tasks).toHaveLength(names.length)
      expect(layOut(names, ['t0'], edges)).toEqual(layout)
    }
  })

  test('is empty without tasks', () => {
    expect(layOut([], [], [])).toEqual({ tasks: [], edges: [], width: 0, height: 0 })
  })
})
