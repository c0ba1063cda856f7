/** A condition on a column against a list of values. */
import { sql, type Expression, type RawBuilder, type SqlBool } from 'kysely'
import { writeJson } from '../lib/json/index.ts'

/**
 * One parameter and one SQL text for any number of values. A statement takes at most 32,766 parameters, and each count
 * would be another text.
 */
export function isAmong(
  column: string | Expression<unknown>,
  values: readonly (number | string)[],
): RawBuilder<SqlBool> {
  const left = typeof column === 'string' ? sql.ref(column) : column
  return sql<SqlBool>`${left} in (select value from json_each(${writeJson(values)}))`
}
