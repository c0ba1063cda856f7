import { dataFunctions } from './data-functions.ts'
import { FunctionError } from './error.ts'
import type { Evaluation, WorkflowFunction } from './function.ts'
import { stateFunctions } from './state-functions.ts'

/** Every function of workflows; the libraries of the languages come on top. */
export const workflowFunctions: readonly WorkflowFunction[] = [...stateFunctions, ...dataFunctions]

/** Calls a function with arguments that are bound to its parameters. @throws FunctionError TemplateError */
export function callFunction(called: WorkflowFunction, args: readonly unknown[], evaluation: Evaluation): unknown {
  const value = called.run(args, evaluation)
  if (called.isReading === true) evaluation.readings?.push({ name: called.name, args: givenOf(args), value })
  return value
}

const givenOf = (args: readonly unknown[]): readonly unknown[] =>
  args.slice(0, args.findLastIndex((argument) => argument !== undefined) + 1)

/** Binds arguments as a call in Python does. @throws FunctionError */
export function bindArguments(
  { name, parameters, options = [], isVariadic = false }: WorkflowFunction,
  positional: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
): unknown[] {
  if (!isVariadic && positional.length > parameters.length) {
    throw wrong(`${name}() takes ${parameters.length} positional arguments but ${positional.length} were given`)
  }
  const names = [...parameters.map((parameter) => parameter.replace('?', '')), ...options]
  const args = names.map((_, index) => (index < parameters.length ? positional[index] : undefined))
  for (const [key, value] of Object.entries(named)) {
    const index = names.indexOf(key)
    if (index < 0) throw wrong(`${name}() got an unexpected keyword argument '${key}'`)
    if (args[index] !== undefined) throw wrong(`${name}() got multiple values for argument '${key}'`)
    args[index] = value
  }
  const missing = parameters.find((parameter, index) => args[index] === undefined && !parameter.endsWith('?'))
  if (missing !== undefined) throw wrong(`${name}() missing 1 required positional argument: '${missing}'`)
  return [...args, ...positional.slice(parameters.length)]
}

const wrong = (message: string): Error => new FunctionError('TypeError', message)
