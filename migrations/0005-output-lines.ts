import { sql, type Kysely } from 'kysely'

const types = ['stdout', 'stderr', 'other'] as const

/** Line ends and bytes of each type in an execution's output before a record: readers find a line by binary search. */
const columns = types.flatMap((type) =>
  (['lines', 'bytes'] as const).map((what) => ({ name: `${type}_${what}`, type, what })),
)

/** Records per batch: all at once would need several hundred bytes of memory each. */
const BATCH = 1000

interface Key {
  execution_id: string
  seq: number
}

// `length` stops at a zero character; the number of bytes does not.
const measures = {
  lines: `octet_length(data) - octet_length(replace(data, char(10), ''))`,
  bytes: `octet_length(data)`,
}

const names = columns.map(({ name }) => name)
const own = columns.map(({ type, what }) => `iif(output_type = '${type}', ${measures[what]}, 0)`)

/** Counts the records after one that has been counted, which holds the totals before it. */
const count = ({ execution_id: id, seq }: Key) => sql`
  update output_records set ${sql.raw(names.map((name) => `${name} = sums.${name}`).join(', '))}
    from (
      select place, ${sql.raw(names.map((name) => `coalesce(sum(${name}) over before, 0) as ${name}`).join(', '))}
        from (
          select * from (
            select rowid as place, execution_id, seq, ${sql.raw(own.map((value, i) => `${value} as ${names[i]}`).join(', '))}
              from output_records where (execution_id, seq) > (${id}, ${seq}) order by execution_id, seq limit ${BATCH})
          union all
          select null, execution_id, seq, ${sql.raw(own.map((value, i) => `${names[i]} + ${value}`).join(', '))}
            from output_records where execution_id = ${id} and seq = ${seq})
        window before as (partition by execution_id order by seq rows between unbounded preceding and 1 preceding)
    ) as sums
    where output_records.rowid = sums.place`

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of names) {
    await sql.raw(`alter table output_records add column ${name} integer not null default 0`).execute(db)
  }
  for (let last: Key | undefined = { execution_id: '', seq: 0 }; last !== undefined;) {
    await count(last).execute(db)
    const next: { rows: Key[] } = await sql<Key>`select execution_id, seq from output_records
      where (execution_id, seq) > (${last.execution_id}, ${last.seq})
      order by execution_id, seq limit 1 offset ${BATCH - 1}`.execute(db)
    last = next.rows[0]
  }
}
