/** The members of a trace as what they are: each has one cause at most, so together they are trees. */
import type { CausedBy, TraceMemberRecord } from '../../api/records.ts'

export interface Member {
  /** Tells it from all others of the trace; what it causes names it so. */
  key: string
  kind: TraceMemberRecord['kind']
  /** Of the execution, the rule or the trigger instance. */
  id: string
  ref: string
  /** Wire timestamp of when it was added. */
  at: string
  seq: number
  /** Its `id` is the key of a member, which need not be among the others. */
  cause: CausedBy | undefined
}

export interface Forest {
  /** In the order in which they were added. */
  members: readonly Member[]
  byKey: ReadonlyMap<string, Member>
  /** Members without a cause among the others. */
  roots: readonly Member[]
  /** What each has caused, in the order in which it was added; nothing where there is none. */
  children: ReadonlyMap<string, readonly Member[]>
  /** Steps from a root. */
  depth: ReadonlyMap<string, number>
}

export function memberOf(record: TraceMemberRecord): Member {
  const { seq, kind, object_id: id, ref, updated_at: at, caused_by: given } = record
  const cause = isCause(given) ? given : undefined
  return {
    // A rule is a member once for each trigger instance, and its executions name both.
    key: kind === 'rule' ? `${id}:${cause?.id ?? ''}` : id,
    kind,
    id,
    ref,
    at,
    seq,
    cause,
  }
}

function isCause(cause: TraceMemberRecord['caused_by']): cause is CausedBy {
  return 'id' in cause
}

export function buildForest(records: readonly TraceMemberRecord[]): Forest {
  const byKey = new Map<string, Member>()
  for (const record of records) {
    const member = memberOf(record)
    // Each is added once; should it not be so, the first counts.
    if (!byKey.has(member.key)) byKey.set(member.key, member)
  }
  const members = [...byKey.values()]
  const roots: Member[] = []
  const children = new Map<string, Member[]>()
  for (const member of members) {
    const parent = member.cause === undefined ? undefined : byKey.get(member.cause.id)
    // What caused something was there before it, so that there are no circles.
    if (parent === undefined || parent.seq >= member.seq) roots.push(member)
    else {
      const siblings = children.get(parent.key)
      if (siblings === undefined) children.set(parent.key, [member])
      else siblings.push(member)
    }
  }
  const depth = new Map<string, number>(roots.map(({ key }) => [key, 0]))
  for (const { key } of members) {
    const below = (depth.get(key) ?? 0) + 1
    for (const child of children.get(key) ?? []) depth.set(child.key, below)
  }
  return { members, byKey, roots, children, depth }
}

/** Seconds from the start of the trace; never negative: clocks are put back. */
export function secondsAfter(start: string, at: string): number {
  return Math.max(0, (new Date(at).getTime() - new Date(start).getTime()) / 1000)
}
