/** What is equal stands together: `37 × core.local succeeded`, with what each of them has caused drawn once. */
import type { Forest, Member } from './forest.ts'
import { writeJson } from '../../json.ts'

export interface Drawn {
  /** Of the member, or of the first of a group. */
  key: string
  member: Member
  /** How many it stands for. */
  count: number
  /** Those that it stands for are siblings, so it can be opened. */
  canOpen: boolean
  /** Key of what is drawn as its cause. */
  parent: string | undefined
  depth: number
  /** How many more it has caused than are drawn. */
  hidden: number
}

export interface GroupOptions {
  /** Of a member: what it looks like besides its kind and its reference. */
  readonly statusOf: (member: Member) => string
  /** So many equal siblings become a group; undefined: none do. */
  groupFrom: number | undefined
  /** Keys of first members of groups that somebody has opened. */
  opened: ReadonlySet<string>
  /** So many are drawn at most. */
  most: number
}

export interface Drawing {
  /** Causes before what they cause, siblings in the order of time. */
  drawn: readonly Drawn[]
  /** Members that are neither drawn nor stand for others that are. */
  left: number
}

export function groupForest(forest: Forest, options: GroupOptions): Drawing {
  const { children, roots } = forest
  const shapes = options.groupFrom === undefined ? undefined : shapesOf(forest, options)
  const drawn = new Map<string, Drawn>()
  let shown = 0
  // Not by recursion: a rule that starts itself makes trees as deep as it likes.
  const stack: Drawn[] = siblings(roots, undefined, 0, 1).toReversed()
  while (stack.length > 0) {
    const next = stack.pop()
    if (next === undefined) break
    if (drawn.size >= options.most) {
      const parent = next.parent === undefined ? undefined : drawn.get(next.parent)
      if (parent !== undefined) parent.hidden += next.count
      continue
    }
    drawn.set(next.key, next)
    shown += next.count
    const below = siblings(children.get(next.key) ?? [], next.key, next.depth + 1, next.count)
    for (const child of below.toReversed()) stack.push(child)
  }
  return { drawn: [...drawn.values()], left: Math.max(0, forest.members.length - shown) }

  /** @param times how many causes the one that is drawn stands for: each of them has caused the same */
  function siblings(members: readonly Member[], parent: string | undefined, depth: number, times: number): Drawn[] {
    const single = (member: Member): Drawn => ({
      key: member.key,
      member,
      count: times,
      canOpen: false,
      parent,
      depth,
      hidden: 0,
    })
    if (shapes === undefined || members.length < (options.groupFrom ?? Infinity)) return members.map(single)
    const equal = Map.groupBy(members, ({ key }) => shapes.get(key) ?? 0)
    return [...equal.values()].flatMap((some) => {
      const [first] = some
      if (first === undefined) return []
      const isOpen = options.opened.has(first.key)
      if (some.length < (options.groupFrom ?? Infinity) || isOpen) return some.map(single)
      return [{ ...single(first), count: some.length * times, canOpen: true }]
    })
  }
}

/** Numbers that are the same for members that look the same, with all that they have caused. */
function shapesOf({ members, children }: Forest, { statusOf }: GroupOptions): Map<string, number> {
  const numbers = new Map<string, number>()
  const shapes = new Map<string, number>()
  // What is caused comes later.
  for (const member of members.toReversed()) {
    const below = (children.get(member.key) ?? []).map(({ key }) => shapes.get(key) ?? 0).toSorted((a, b) => a - b)
    const text = writeJson([member.kind, member.ref, statusOf(member), below])
    const number = numbers.get(text) ?? numbers.size + 1
    numbers.set(text, number)
    shapes.set(member.key, number)
  }
  return shapes
}
