import { adopt as adoptTemplate, BudgetExhausted, plainValue, TemplateError } from '../../../lib/template/index.ts'
import {
  adopt,
  declarations,
  evaluate,
  FunctionTable,
  namedRest,
  optional,
  param,
  parse,
  partsOf,
  rest,
  textOf,
  toData,
  types,
  YaqlError,
  type Overload,
  type Value,
} from '../../../lib/yaql/index.ts'
import { yaqlBlocks } from './blocks.ts'
import { ExpressionError, FunctionError, unableToEvaluate } from './error.ts'
import type { Evaluation, WorkflowFunction } from './function.ts'
import { bindArguments, callFunction, workflowFunctions } from './functions.ts'

const { fn } = declarations<Evaluation>()

/**
 * Evaluates a text with YAQL. One expression that is the whole text gives its value; others give text.
 *
 * @throws ExpressionError BudgetExhausted
 */
export function evaluateYaql(text: string, evaluation: Evaluation): Value {
  const { budget } = evaluation
  const blocks = yaqlBlocks(text)
  const values = blocks.map(({ text: block, source }): Value => {
    return source === undefined
      ? block
      : guarded(block, () => evaluate(parse(source), { functions, host: evaluation, budget }))
  })
  const [only = null] = values
  if (values.length === 1) return only
  return guarded(text, () => {
    const texts = values.map((value) => textOf(value, 'result', budget))
    budget.text(texts.reduce((length, each) => length + each.length, 0))
    return texts.join('')
  })
}

/** A value as JSON data. @throws ExpressionError for what has no JSON form */
export function dataOf(value: Value, { budget }: Evaluation): unknown {
  try {
    return toData(value, budget)
  } catch (error) {
    if (error instanceof BudgetExhausted) throw error
    if (error instanceof YaqlError || error instanceof TemplateError)
      throw new ExpressionError('TypeError', error.message)
    throw error
  }
}

function guarded<T>(expression: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof BudgetExhausted) throw error
    if (error instanceof YaqlError) throw new ExpressionError('YaqlEvaluationException', messageOf(expression, error))
    if (!(error instanceof TemplateError)) throw error
    const message = unableToEvaluate(expression, error.className, error.message)
    throw new ExpressionError('YaqlEvaluationException', message)
  }
}

/** Errors of these classes are shown without quotes around them, also where just one end has any. */
const unquoted =
  /^(?:KeyError|TypeError|ValueError|ArgumentException|MappingTranslationException|\w+DecodeError|(?:Yaql|No|Ambiguous)\w+)$/

function messageOf(expression: string, { errorClass, message }: YaqlError): string {
  const detail = unquoted.test(errorClass) ? message.replace(/^'+|'+$/g, '') : message
  return errorClass === 'KeyError'
    ? `Unable to resolve key '${detail}' in expression '${expression}' from context.`
    : unableToEvaluate(expression, errorClass, detail)
}

/** As an expression writes a parameter: `sortKeys`. */
const camelCase = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

const functions = new FunctionTable<Evaluation>(workflowFunctions.map(overloadOf))

function overloadOf(called: WorkflowFunction): Overload<Evaluation> {
  const { name, parameters, options, isVariadic = false } = called
  const declared = parameters.map((parameter) => {
    const key = camelCase(parameter.replace('?', ''))
    return parameter.endsWith('?') ? optional(key, types.Any, undefined) : param(key, types.Any)
  })
  return fn(
    name,
    [
      ...declared,
      ...(isVariadic ? [rest('args', types.Any)] : []),
      ...(options === undefined ? [] : [namedRest('kwargs', types.Any)]),
    ],
    (given, runtime) => {
      // The parameters declared above, in their order.
      const args = [...given] as (Value | undefined | readonly Value[] | ReadonlyMap<string, Value>)[]
      const data = (value: Value): unknown => toData(runtime.finish(value), runtime.budget)
      const named: Record<string, unknown> = {}
      if (options !== undefined) {
        for (const [key, value] of args.pop() as ReadonlyMap<string, Value>) named[key] = data(value)
      }
      const variadic = isVariadic ? (args.pop() as readonly Value[]) : []
      const positional = [...(args as (Value | undefined)[]), ...variadic]
      return valueOf(
        called,
        positional.map((value) => (value === undefined ? undefined : data(value))),
        named,
        runtime.host,
      )
    },
  )
}

/** Calls the function and gives its value to the expression. @throws YaqlError */
function valueOf(
  called: WorkflowFunction,
  positional: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
  evaluation: Evaluation,
): Value {
  try {
    const value = callFunction(called, bindArguments(called, positional, named), evaluation)
    return adopt(called.givesTemplateValue === true ? plainValue(adoptTemplate(value), evaluation.budget) : value)
  } catch (error) {
    if (error instanceof FunctionError) throw new YaqlError(error.className, error.message)
    if (!(error instanceof TemplateError) || error instanceof BudgetExhausted) throw error
    throw new YaqlError(error.className as YaqlError['errorClass'], error.message)
  }
}

/** Why an expression cannot be parsed; else the functions and methods that it calls. */
export function inspectYaql(source: string): { calls: string[]; error?: string } {
  try {
    const names = Array.from(partsOf(parse(source)), (part) => (part.kind === 'call' ? part.name : '#'))
    return { calls: [...new Set(names.filter((name) => !name.startsWith('#')))] }
  } catch (error) {
    if (error instanceof YaqlError) return { calls: [], error: error.message }
    throw error
  }
}
