/** Criteria of rules in words. No markup, no state. */
import type { CriterionDefinition, OperatorRecord } from '../../api/records.ts'
import { isObject, writeJson } from '../../json.ts'

/** By each of their names, aliases included. */
export type Operators = ReadonlyMap<string, OperatorRecord>

export const noOperators: Operators = new Map()

export function operatorsByName(records: readonly OperatorRecord[]): Operators {
  return new Map(records.flatMap((record) => [record.name, ...record.aliases].map((name) => [name, record] as const)))
}

export interface CriterionSentence {
  key: string
  /** Between key and pattern: `is`. */
  phrase: string
  /** As JSON, whatever its length; undefined: it is not compared with one. */
  pattern: string | undefined
  /** Of `search`. */
  items: CriterionSentence[]
}

/** Deeper than the server allows `search`. */
const MAX_DEPTH = 8

/**
 * @param criterion of a record, which may be of an older or newer server
 * @param operators what is not among them is called by its name
 */
export function criterionSentence(key: string, criterion: unknown, operators: Operators, depth = 0): CriterionSentence {
  const { type, pattern, condition } = isObject(criterion) ? (criterion as Partial<CriterionDefinition>) : {} // each is looked at
  const name = typeof type === 'string' ? type : ''
  // Within `search` case does not count.
  const operator = operators.get(name) ?? (depth > 0 ? operators.get(name.toLowerCase()) : undefined)
  const phrase = operator?.phrase ?? name
  if (operator?.pattern === 'none') return { key, phrase, pattern: undefined, items: [] }
  if (operator?.pattern === 'criteria' && isObject(pattern) && depth < MAX_DEPTH) {
    const how = operator.conditions?.find((one) => one.name === condition)
    return {
      key,
      phrase: how?.phrase ?? `${phrase}, with condition ${patternText(condition)}:`,
      pattern: undefined,
      items: criterionSentences(pattern, operators, depth + 1),
    }
  }
  return { key, phrase, pattern: patternText(pattern), items: [] }
}

export function criterionSentences(
  criteria: Readonly<Record<string, unknown>>,
  operators: Operators,
  depth = 0,
): CriterionSentence[] {
  return Object.entries(criteria).map(([key, criterion]) => criterionSentence(key, criterion, operators, depth))
}

/** `"text"`, `12`, `["a","b"]`; what is not there is null, as criteria see it. */
export function patternText(value: unknown): string {
  return writeJson(value) ?? 'null'
}
