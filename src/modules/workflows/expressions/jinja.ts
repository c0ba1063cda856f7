import {
  BudgetExhausted,
  callsOf,
  evaluateExpression,
  plainValue,
  render,
  TemplateError,
  textOf,
  Undefined,
  type HostFunction,
  type Namespace,
  type Value,
} from '../../../lib/template/index.ts'
import { hasStatement, jinjaBlocks, type Block } from './blocks.ts'
import { ExpressionError, FunctionError, unableToEvaluate } from './error.ts'
import type { FunctionContext, WorkflowFunction } from './function.ts'
import { callFunction, workflowFunctions } from './functions.ts'
import type { Readings } from './scope.ts'
import { visibleVariable, visibleVariables } from './state-functions.ts'

/** What one evaluation needs. */
export interface Evaluation extends FunctionContext {
  readonly readings: Readings | undefined
}

interface Surroundings {
  readonly budget: FunctionContext['budget']
  readonly functions: Readonly<Record<string, HostFunction>>
  readonly filters: Readonly<Record<string, HostFunction>>
  readonly variables: Readonly<Record<string, unknown>>
}

/**
 * Evaluates a text with Jinja. Each `{{ … }}` is evaluated by itself, and one that is the whole text keeps its type; a text
 * with `{% … %}` is one template and gives text.
 *
 * @throws ExpressionError BudgetExhausted
 */
export function evaluateJinja(given: string, evaluation: Evaluation): unknown {
  const text = withoutOddRaw(given)
  const surroundings = surroundingsOf(evaluation)
  if (hasStatement(text)) return renderWhole(text, surroundings)
  const blocks = jinjaBlocks(text)
  const values = blocks.map((block) => valueOf(block, surroundings))
  const missing = blocks.filter((_, index) => values[index] instanceof Undefined).map(({ source }) => source)
  if (missing.length > 0) {
    throw new ExpressionError('JinjaEvaluationException', `There are unresolved variables: ${missing.join(', ')}`)
  }
  const [only = null] = values
  if (values.length === 1) return native(only, evaluation)
  return guarded(text, () => {
    const texts = values.map((value) => textOf(value, evaluation.budget))
    evaluation.budget.text(texts.reduce((length, each) => length + each.length, 0))
    return texts.join('')
  })
}

function valueOf({ text, source }: Block, surroundings: Surroundings): Value {
  if (source === undefined) return text
  return guarded(text, () => evaluateExpression(source, surroundings.variables, surroundings))
}

const rawTag = /\{%[-+]?\s*(?:end)?raw\s*[-+]?%\}/g
const properRawTags: readonly string[] = ['{% raw %}', '{% endraw %}']

/** Text stays as it is within `{% raw %}`; in another spelling, such as `{%raw%}`, the tags mean nothing. */
function withoutOddRaw(text: string): string {
  return text.replace(rawTag, (tag) => (properRawTags.includes(tag) ? tag : ''))
}

function renderWhole(text: string, surroundings: Surroundings): unknown {
  const { variables } = surroundings
  return guarded(text, () => render(text, variables, { ...surroundings, isStrict: true }))
}

/** A value that leaves the expression; something undefined within it is an error of its own. */
function native(value: Value, { budget }: Evaluation): unknown {
  try {
    return plainValue(value, budget)
  } catch (error) {
    if (!(error instanceof TemplateError) || error instanceof BudgetExhausted) throw error
    throw new ExpressionError(error.code === 'UNDEFINED' ? 'UndefinedError' : 'TypeError', error.message)
  }
}

function guarded<T>(expression: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof BudgetExhausted || !(error instanceof TemplateError)) throw error
    const message = unableToEvaluate(expression, error.className, error.message)
    throw new ExpressionError('JinjaEvaluationException', message)
  }
}

function surroundingsOf(evaluation: Evaluation): Surroundings {
  const functions: Record<string, HostFunction> = {}
  const filters: Record<string, HostFunction> = {}
  for (const [name, called] of workflowFunctions) {
    functions[name] = hostFunction(called, evaluation)
    if (called.isFilter === true) filters[name] = functions[name]
  }
  functions['ctx'] = contextFunction(functions['ctx'], evaluation)
  return { budget: evaluation.budget, functions, filters, variables: { __vars: namespaceOf(evaluation) } }
}

function hostFunction(called: WorkflowFunction, evaluation: Evaluation): HostFunction {
  return (positional, named) => {
    try {
      return callFunction(called, positional, named, evaluation, evaluation.readings)
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error
      throw new TemplateError('FILTER', error.message, undefined, false, error.className)
    }
  }
}

/** `ctx()` without a name asks for one variable only, where one is named after it. */
function contextFunction(byName: HostFunction | undefined, evaluation: Evaluation): HostFunction {
  return (positional, named) => {
    const [key = named['key']] = positional
    const isWhole = key === undefined || key === null || key === ''
    return isWhole && positional.length <= 1 ? namespaceOf(evaluation) : byName?.(positional, named)
  }
}

function namespaceOf(evaluation: Evaluation): Namespace {
  const record = (args: readonly unknown[], value: unknown): unknown => {
    evaluation.readings?.push({ name: 'ctx', args, value })
    return value
  }
  return {
    typeName: 'dict',
    get: (name) => {
      const value = visibleVariable(evaluation, name)
      return value === undefined ? undefined : record([name], value)
    },
    has: (name) => visibleVariable(evaluation, name) !== undefined,
    value: () => record([], visibleVariables(evaluation)),
  }
}

/** Why a block, or a whole template, cannot be parsed; else the functions and filters that it calls. */
export function inspectJinja(text: string, form: 'template' | 'expression'): { calls: string[]; error?: string } {
  try {
    return { calls: callsOf(form === 'template' ? withoutOddRaw(text) : text, form) }
  } catch (error) {
    if (error instanceof TemplateError) return { calls: [], error: error.message }
    throw error
  }
}
