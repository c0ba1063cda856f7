/** Table `timers`. Reads, and functions that return steps. */
import { type Compilable, type Database, type Step, prepared, type TimerTable } from '../../db/index.ts'

/** What a firing changes. */
export interface Advance {
  trigger_id: string
  /** The time that it fires for. */
  seen: string
  next: string | null
}

export interface TimerStore {
  find(triggerId: string): TimerTable | undefined
  /** Rows behind one, in the order of trigger ids. */
  page(afterTriggerId: string, limit: number): TimerTable[]
  /** Those whose time has come, the longest due first. */
  due(now: string, limit: number): TimerTable[]
  /** The next time of all. */
  nearest(): string | undefined
  /** Inserts, or replaces the whole row. */
  put(row: TimerTable): Step
  /** Fails with `Conflict` unless it still waits for the time that was seen. */
  advance(change: Advance): Step
  delete(triggerId: string): Step
}

export function createTimerStore(database: Database): TimerStore {
  const { build } = database
  const due = prepared(
    build
      .selectFrom('timers')
      .selectAll()
      .where('next_timestamp', 'is not', null)
      .where('next_timestamp', '<=', '')
      .orderBy('next_timestamp')
      .limit(1),
    ({ now, limit }: { now: string; limit: number }) => [now, limit],
  )
  const nearest: Compilable<{ next_timestamp: string | null }> = build
    .selectFrom('timers')
    .select('next_timestamp')
    .where('next_timestamp', 'is not', null)
    .orderBy('next_timestamp')
    .limit(1)
  const advance = prepared(
    build
      .updateTable('timers')
      .set({ next_timestamp: '', fired_timestamp: '' })
      .where('trigger_id', '=', '')
      .where('next_timestamp', '=', ''),
    ({ trigger_id, seen, next }: Advance) => [next, seen, trigger_id, seen],
  )
  return {
    find: (triggerId) => database.first(build.selectFrom('timers').selectAll().where('trigger_id', '=', triggerId)),
    page: (afterTriggerId, limit) =>
      database.all(
        build
          .selectFrom('timers')
          .selectAll()
          .where('trigger_id', '>', afterTriggerId)
          .orderBy('trigger_id')
          .limit(limit),
      ),
    due: (now, limit) => database.all(due({ now, limit }) as Compilable<TimerTable>), // it selects whole rows
    nearest: () => database.first(nearest)?.next_timestamp ?? undefined,
    put: (row) => ({
      query: build
        .insertInto('timers')
        .values(row)
        .onConflict((conflict) => conflict.column('trigger_id').doUpdateSet(row)),
    }),
    advance: (change) => ({ query: advance(change), expect: 1 }),
    delete: (triggerId) => ({ query: build.deleteFrom('timers').where('trigger_id', '=', triggerId) }),
  }
}
