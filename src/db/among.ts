/** A condition about many values. */
import { sql, type Expression, type RawBuilder, type SqlBool } from 'kysely'

/** One parameter and one text however many they are: statements take 32,766 parameters, and each number of them is a text. */
export function isAmong(column: string | Expression<unknown>, values: readonly string[]): RawBuilder<SqlBool> {
  const left = typeof column === 'string' ? sql.ref(column) : column
  return sql<SqlBool>`${left} in (select value from json_each(${JSON.stringify(values)}))`
}
