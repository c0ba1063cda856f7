/** Compares results with the `output_schema` of their actions (contract 02, 2.5). */
import { Lru } from '../../lib/cache/index.ts'
import { writeJson } from '../../lib/json/index.ts'
import { checkDraft4, compileDraft4, type SchemaCheck } from '../../lib/schema/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Execution } from './types.ts'

/** Checking takes the time of all others, so larger results are not checked. */
const MAX_CHECKED_VALUES = 200_000
/** Schemas that are kept compiled. */
const MAX_KNOWN = 500

export interface OutputCheck {
  /** @returns the result of a failed execution in place of one that does not fit; undefined: it fits, or need not */
  failureOf(execution: Execution, result: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined
}

/** @param isOn `system.validate_output_schema` */
export function createOutputCheck({ isOn, log }: { isOn: boolean; log: Log }): OutputCheck {
  /** By the text of the schema: each execution has a record of its own. */
  const checks = new Lru<string, SchemaCheck | 'none'>(MAX_KNOWN)

  function checkOf({ action }: Execution): SchemaCheck | 'none' {
    const { output_schema: schema } = action
    const text = writeJson(schema)
    let check = checks.get(text)
    if (check === undefined) {
      check = compile(schema, action.ref)
      checks.set(text, check)
    }
    return check
  }

  function compile(schema: Readonly<Record<string, unknown>>, ref: string): SchemaCheck | 'none' {
    // The older form, a map of names to schemas, only says what is secret.
    const isWhole = typeof schema['type'] === 'string' || Array.isArray(schema['type'])
    if (!isWhole) return 'none'
    const problem = checkDraft4(schema)
    if (problem === undefined) return compileDraft4(schema)
    log.warning(
      'action.output_schema_ignored',
      `The output_schema of action "${ref}" is ignored: ${problem}. Results are not compared with it; correct it`,
      { action: ref },
    )
    return 'none'
  }

  return {
    failureOf(execution, result) {
      const { output_key: key } = execution.runner
      if (!isOn || key === undefined || !Object.hasOwn(result, key)) return undefined
      const check = checkOf(execution)
      if (check === 'none') return undefined
      if (hasMore(result[key], MAX_CHECKED_VALUES)) {
        log.warning('execution.output_not_checked', 'The result is too large to compare it with its output_schema', {
          execution_id: execution.id,
        })
        return undefined
      }
      const problem = check.find(result[key])
      if (problem === undefined) return undefined
      return {
        error: problem.message,
        message: 'Error validating output. See error output for more details.',
      }
    },
  }
}

/** Whether a value consists of more than `limit` values. Looks at no more than that. */
function hasMore(value: unknown, limit: number): boolean {
  let left = limit
  const look = (inner: unknown): boolean => {
    left -= 1
    if (left < 0) return true
    return typeof inner === 'object' && inner !== null && Object.values(inner).some(look)
  }
  return look(value)
}
