import { dataFunctions } from './data-functions.ts'
import { FunctionError } from './error.ts'
import type { FunctionContext, WorkflowFunction } from './function.ts'
import type { Readings } from './scope.ts'
import { stateFunctions } from './state-functions.ts'

/** Every function of workflows by name; the libraries of the languages come on top. */
export const workflowFunctions: ReadonlyMap<string, WorkflowFunction> = new Map(
  [...stateFunctions, ...dataFunctions].map((each) => [each.name, each]),
)

/**
 * Calls a function with arguments as an author has written them.
 *
 * @param readings gets the call, if its value depends on more than the arguments
 */
export function callFunction(
  called: WorkflowFunction,
  positional: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
  context: FunctionContext,
  readings?: Readings,
): unknown {
  const value = called.run(bind(called, positional, named), context)
  if (called.isReading === true && readings !== undefined) {
    const args = Object.keys(named).length === 0 ? positional : [...positional, named]
    readings.push({ name: called.name, args, value })
  }
  return value
}

function bind(
  { name, parameters, isVariadic = false }: WorkflowFunction,
  positional: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
): unknown[] {
  const names = parameters.map((parameter) => parameter.replace('?', ''))
  const args: unknown[] = names.map((_, index) => (isVariadic ? undefined : positional[index]))
  if (!isVariadic && positional.length > names.length) {
    throw new FunctionError('TypeError', `${name}() takes ${names.length} arguments, ${positional.length} were given`)
  }
  for (const [key, value] of Object.entries(named)) {
    const index = names.indexOf(key)
    if (index < 0) throw new FunctionError('TypeError', `${name}() got an unexpected keyword argument '${key}'`)
    if (args[index] !== undefined) {
      throw new FunctionError('TypeError', `${name}() got multiple values for argument '${key}'`)
    }
    args[index] = value
  }
  const missing = names.find((key, index) => args[index] === undefined && parameters[index] === key)
  if (missing !== undefined) throw new FunctionError('TypeError', `${name}() is missing the argument '${missing}'`)
  return isVariadic ? [...args, ...positional] : args
}
