/** Removes the executions of actions and rules that say how long they keep them (`keep`). */
import { idBound } from '../../core/ids.ts'
import type { Keep } from '../../core/keep.ts'
import type { OwnRetention } from '../../core/retention.ts'
import { formatMicros } from '../../core/time.ts'
import type { Actions } from '../actions/index.ts'
import type { ExecutionWorkflows, RuleKeeps } from './ports.ts'
import { isFinal } from './state.ts'
import type { Aged, ExecutionStore, Keeper } from './store.ts'

const DAY_MICROS = 86_400_000_000
/** Each is in a dozen indexes. */
const AT_ONCE = 50
/** Executions that have started more than this, all levels together, stay. */
const MAX_FAMILY = 100_000
const HELD_AT_ONCE = 1000

interface Kept {
  keeper: Keeper
  keep: Keep
}

export interface ExecutionsOwnRetention extends OwnRetention {
  /** Ids of those whose execution at the top is one of an action or a rule with a retention of its own. */
  decides(rows: readonly Aged[]): ReadonlySet<string>
}

/** Those of a round; undefined: neither an action nor a rule has one. */
export async function readOwnRetention(deps: {
  store: Pick<ExecutionStore, 'aged' | 'rootsOf' | 'newestOf' | 'families'>
  workflows: Pick<ExecutionWorkflows, 'holdersOf' | 'remove'>
  rules: RuleKeeps
  actions: Pick<Actions, 'keeps'>
  /** Removes executions that have ended, but for those that a workflow needs. @returns how many */
  readonly removeExecutions: (ids: string[]) => Promise<number>
}): Promise<ExecutionsOwnRetention | undefined> {
  const { store, workflows, removeExecutions } = deps
  const rules = await deps.rules.keeps()
  const actions = await deps.actions.keeps()
  if (rules.length + actions.length === 0) return undefined
  const except = rules.map(({ id, name }) => ({ id, name }))
  const kept: Kept[] = [
    ...rules.map(({ id, name, keep }): Kept => ({ keeper: { rule: { id, name } }, keep })),
    ...actions.map(({ ref, keep }): Kept => ({ keeper: { action: ref, except }, keep })),
  ]
  const nameOfRule = new Map(rules.map(({ id, name }) => [id, name]))
  const actionRefs = new Set(actions.map(({ ref }) => ref))

  function isDecided({ action_ref: ref, rule, rule_id: id }: Aged): boolean {
    return actionRefs.has(ref) || (id !== null && nameOfRule.get(id) === rule)
  }

  function decides(rows: readonly Aged[]): ReadonlySet<string> {
    const known = new Map(rows.map((row) => [row.id, row]))
    for (let level = rows; level.length > 0;) {
      const parents = [...new Set(level.flatMap(({ parent }) => parent ?? []))].filter((id) => !known.has(id))
      level = store.aged(parents)
      for (const row of level) known.set(row.id, row)
    }
    const decided = new Set<string>()
    for (const row of rows) {
      let top: Aged | undefined = row
      while (top !== undefined && top.parent !== null) top = known.get(top.parent)
      if (top !== undefined && isDecided(top)) decided.add(row.id)
    }
    return decided
  }

  async function* remove(now: number, byAge: boolean): AsyncGenerator<number> {
    for (const { keeper, keep } of kept) {
      const { days = 0, count = 0 } = keep
      const before = byAge && days > 0 ? now - days * DAY_MICROS : undefined
      const oldest = count > 0 ? await store.newestOf(keeper, count) : undefined
      // Every execution that is too old by its end was made before.
      const bounds = [before === undefined ? '' : idBound(before), oldest ?? '']
      const bound = bounds.toSorted().at(-1) ?? ''
      if (bound === '') continue
      const isOver = ({ id, status, end_timestamp: end }: Aged): boolean =>
        isFinal(status) &&
        ((oldest !== undefined && id < oldest) || (before !== undefined && end !== null && end < formatMicros(before)))
      let after: string | undefined = ''
      while (after !== undefined) {
        const rows: Aged[] = await store.rootsOf(keeper, { after, before: bound, limit: AT_ONCE })
        yield* removeRoots(rows.filter(isOver).map(({ id }) => id))
        after = rows.length < AT_ONCE ? undefined : rows.at(-1)?.id
      }
    }
  }

  /** Removes executions with all that they have started, the deepest first: killed in between, the next round goes on. */
  async function* removeRoots(roots: string[]): AsyncGenerator<number> {
    if (roots.length === 0) return
    const members = await store.families(roots, MAX_FAMILY + 1)
    if (members.length > MAX_FAMILY) {
      if (roots.length === 1) return
      for (const root of roots) yield* removeRoots([root])
      return
    }
    const familyOf = new Map(roots.map((root) => [root, root]))
    for (const { id, root } of members) familyOf.set(id, root)
    const staying = new Set(members.filter(({ status }) => !isFinal(status)).map(({ root }) => root))
    for (const some of inParts([...familyOf.keys()], HELD_AT_ONCE)) {
      // Somebody has repeated the workflow: its actions belong to the later execution.
      for (const [id, holder] of workflows.holdersOf(some)) {
        const root = familyOf.get(id)
        if (root !== undefined && familyOf.get(holder) !== root) staying.add(root)
      }
    }
    const going = members.filter(({ root }) => !staying.has(root)).map(({ id }) => id)
    const parents = new Set(members.map(({ root }) => root))
    const gone = roots.filter((root) => !staying.has(root))
    for (const some of inParts([...gone.filter((root) => parents.has(root)), ...going], AT_ONCE)) {
      await workflows.remove(some)
    }
    for (const some of [...inParts(going.toReversed(), AT_ONCE), ...inParts(gone, AT_ONCE)]) {
      yield await removeExecutions(some)
    }
  }

  return { decides, remove }
}

function inParts<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let start = 0; start < items.length; start += size) parts.push(items.slice(start, start + size))
  return parts
}
