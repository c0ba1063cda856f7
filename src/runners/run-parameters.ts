/** The parameters `timeout` and `env` of all runners that start processes (contract 03, 3.6). */
import { nearestNumber } from '../lib/json/index.ts'
import { isObject } from '../lib/schema/index.ts'

/** Limit of parameter `env`. The system accepts a few megabytes, but refuses only after all preparation. */
const MAX_VARIABLES = 10_000

export interface RunParameters {
  /** 0 disables the limit. */
  timeoutSeconds: number
  env: Record<string, unknown> | undefined
}

/** `problem` is a sentence for the result of the execution. */
export function readRunParameters(
  parameters: Readonly<Record<string, unknown>>,
  defaultTimeout: number,
): RunParameters | { problem: string } {
  const timeoutSeconds = nearestNumber(parameters['timeout']) ?? defaultTimeout
  if (typeof timeoutSeconds !== 'number' || !(timeoutSeconds >= 0)) {
    return { problem: 'The parameter "timeout" must be 0 (no limit) or a positive number of seconds.' }
  }
  const env = parameters['env'] ?? undefined
  if (env !== undefined && !isObject(env)) return { problem: 'The parameter "env" must be an object.' }
  if (env !== undefined && Object.keys(env).length > MAX_VARIABLES) {
    return { problem: `The parameter "env" has more than ${MAX_VARIABLES} variables.` }
  }
  return { timeoutSeconds, env }
}
