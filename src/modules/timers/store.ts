/** Table `timers`. Reads, and functions that return steps. */
import { type Compilable, type Database, type Step, prepared, type TimerTable } from '../../db/index.ts'

/** The change of a row when its timer fires. */
export interface Advance {
  trigger_id: string
  /** `next_timestamp` for which the timer fires. */
  seen: string
  next: string | null
  /** `due_timestamp` of `next`. */
  due: string | null
  /** `due_timestamp` of `seen`. */
  fired: string
  /** The time now. */
  run: string
}

export interface TimerStore {
  find(triggerId: string): TimerTable | undefined
  /** Rows after a trigger id, by trigger id. */
  page(afterTriggerId: string, limit: number): TimerTable[]
  /** Due timers, earliest first. */
  due(now: string, limit: number): TimerTable[]
  /** The earliest next time of all timers. */
  nearest(): string | undefined
  /** Inserts, or replaces the whole row. */
  put(row: TimerTable): Step
  /** Fails with `Conflict` if the row no longer has the time `seen`. */
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
      .set({ next_timestamp: '', due_timestamp: '', fired_timestamp: '', run_timestamp: '' })
      .where('trigger_id', '=', '')
      .where('next_timestamp', '=', ''),
    ({ trigger_id, seen, next, due, fired, run }: Advance) => [next, due, fired, run, trigger_id, seen],
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
