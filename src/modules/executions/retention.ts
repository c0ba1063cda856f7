/** Removes old executions and old output (contract 10, 10.5). */
import type { Database } from '../../db/index.ts'
import { idBound } from '../../core/ids.ts'
import { retire, type OldRecords, type Retention } from '../../core/retention.ts'
import { microsOf } from '../../core/time.ts'
import { isFinal } from './state.ts'
import type { OutputStore } from './output/store.ts'
import type { Actions } from '../actions/index.ts'
import { readOwnRetention, type ExecutionsOwnRetention } from './own-retention.ts'
import type { ExecutionWorkflows, RuleKeeps } from './ports.ts'
import type { Aged, ExecutionStore } from './store.ts'

/** Output records have up to 16 KiB: this many take a few milliseconds. */
const OUTPUT_AT_ONCE = 100
/** Each is in a dozen indexes. */
const EXECUTIONS_AT_ONCE = 50

export function createRetentions(deps: {
  store: ExecutionStore
  outputStore: OutputStore
  workflows: Pick<ExecutionWorkflows, 'holdersOf' | 'remove'>
  rules: RuleKeeps
  actions: Pick<Actions, 'keeps'>
  database: Pick<Database, 'write'>
}): Retention[] {
  const { store, outputStore, workflows, rules, actions, database } = deps

  const isOver = ({ status, end_timestamp: at, parent }: Aged, before: string): boolean => {
    if (!isFinal(status) || at === null || at >= before) return false
    const statusOfParent = parent === null ? undefined : store.statusOf(parent)
    return statusOfParent === undefined || isFinal(statusOfParent)
  }

  /**
   * An execution stays as long as its parent is open. An action of a workflow goes with the execution that runs the workflow,
   * or later: it explains what the workflow did, and repeating the workflow needs its result.
   */
  function mayGo(rows: readonly Aged[], { before, actionRef, own }: OldRecords): string[] {
    const over = new Map<string, boolean>()
    const holders = new Map<string, string>()
    // Once, and then for each level of workflows in workflows.
    for (let level = rows; level.length > 0;) {
      const decided = (own as ExecutionsOwnRetention | undefined)?.decides(level) // what `readOwn` has given
      for (const row of level) over.set(row.id, decided?.has(row.id) !== true && isOver(row, before))
      const known = workflows.holdersOf(level.filter(({ id }) => over.get(id) === true).map(({ id }) => id))
      for (const [id, holder] of known) holders.set(id, holder)
      level = store.aged([...new Set(known.values())].filter((id) => !over.has(id)))
    }
    const goes = (id: string): boolean => {
      if (over.get(id) === false) return false
      const holder = holders.get(id)
      if (holder === undefined) return true
      // A holder of another action stays; a younger one, which has repeated the workflow, comes later than this execution.
      return actionRef === undefined && holder < id && goes(holder)
    }
    return rows.filter(({ id }) => goes(id)).map(({ id }) => id)
  }

  /** Of one look: how far it went, and what of it may go. */
  function look(old: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = store.madeBefore(old.before, old.after, old.limit, old.actionRef)
    return { ids: mayGo(rows, old), next: rows.length < old.limit ? undefined : rows.at(-1)?.id }
  }

  async function removeExecutions(old: string[]): Promise<number> {
    await workflows.remove(old)
    // Somebody may have repeated a workflow just now.
    const held = workflows.holdersOf(old)
    const ids = old.filter((id) => !held.has(id))
    // First, and in as many commits as it takes: killed in between, there is an execution without output, as there is one
    // whose output has gone before it.
    for (;;) {
      const [result] = await database.write({ steps: [outputStore.deleteOutputOf(ids, OUTPUT_AT_ONCE)], facts: [] })
      if ((result?.changes ?? 0) < OUTPUT_AT_ONCE) break
    }
    const results = await database.write({ steps: store.deleteEnded(ids), facts: [] })
    return results.at(-1)?.changes ?? 0
  }

  /** They are stored in the order of time, so those that are old are the first ones. */
  function lookAtOutput({ before, after, limit }: OldRecords): { rows: number[]; next: string | undefined } {
    const bound = idBound(microsOf(before))
    const rows = outputStore.outputFrom(Number(after === '' ? 0 : after), limit)
    const young = rows.findIndex(({ id }) => id >= bound)
    const old = young === -1 ? rows : rows.slice(0, young)
    const isMore = young === -1 && rows.length === limit
    return { rows: old.map(({ row }) => row), next: isMore ? String(old.at(-1)?.row) : undefined }
  }

  return [
    {
      ...retire({ kind: 'executions', atOnce: EXECUTIONS_AT_ONCE, look, removeAll: removeExecutions }),
      readOwn: () => readOwnRetention({ store, workflows, rules, actions, removeExecutions }),
      total: () => store.count(),
      oldest: (skip) => store.madeBefore('9999-12-31T00:00:00.000000Z', '', skip + 1).at(skip)?.start_timestamp,
    },
    {
      kind: 'output',
      count(old) {
        const { rows, next } = lookAtOutput(old)
        return { records: rows.length, next }
      },
      async remove(old) {
        const { rows, next } = lookAtOutput({ ...old, limit: Math.min(old.limit, OUTPUT_AT_ONCE) })
        const [first, last] = [rows[0], rows.at(-1)]
        if (first === undefined || last === undefined) return { records: 0, next }
        const [result] = await database.write({ steps: [outputStore.deleteOutputRows(first, last)], facts: [] })
        return { records: result?.changes ?? 0, next }
      },
    },
  ]
}
