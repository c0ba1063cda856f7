import { sql, type Kysely } from 'kysely'

const types = ['stdout', 'stderr', 'other']

const sums = types.flatMap((type) => [
  `coalesce(sum(case output_type when '${type}' then lines end) over before, 0) as ${type}_lines`,
  `coalesce(sum(case output_type when '${type}' then bytes end) over before, 0) as ${type}_bytes`,
])

const names = types.flatMap((type) => [`${type}_lines`, `${type}_bytes`])

const statements = [
  // How many line ends and bytes of each type the output of the execution has before a record: lines are found by halving.
  ...names.map((name) => `alter table output_records add column ${name} integer not null default 0`),
  // `length` ends at a zero character, the number of bytes does not.
  `update output_records set ${names.map((name) => `${name} = sums.${name}`).join(', ')}
    from (
      select place, ${sums.join(', ')}
        from (
          select rowid as place, execution_id, seq, output_type, octet_length(data) as bytes,
              octet_length(data) - octet_length(replace(data, char(10), '')) as lines
            from output_records)
        window before as (partition by execution_id order by seq rows between unbounded preceding and 1 preceding)
    ) as sums
    where output_records.rowid = sums.place and seq > 1`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
