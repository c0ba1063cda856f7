import { cellText, type Json } from './output/print.ts'

/** Adds the column `rule` to a record with `rules`: their references, one a line. */
export function ruleColumn(record: Json): Json {
  const { rules } = record
  return { ...record, rule: Array.isArray(rules) ? rules.map(cellText).join('\n') : undefined }
}
