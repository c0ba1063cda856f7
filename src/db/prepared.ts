/** Statements of the hot path: built and compiled once, bound many times. Compiling costs more than running them. */
import type { Compilable } from './database.ts'

/**
 * @param query built with any values; only its text is kept
 * @param parametersOf returns the values of one use, in the order in which the query was built
 */
export function prepared<T, O = unknown>(
  query: Compilable<O>,
  parametersOf: (values: T) => readonly unknown[],
): (values: T) => Compilable<O> {
  const compiled = query.compile()
  return (values) => {
    const bound = { ...compiled, parameters: parametersOf(values) }
    return { compile: () => bound }
  }
}

/** The values of a row in the order of its columns. */
export function columnsOf<T extends object>(sample: T): (row: T) => unknown[] {
  const names = Object.keys(sample) as (keyof T)[] // the sample has exactly the columns of the row
  return (row) => names.map((name) => row[name])
}
