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
  type Value,
} from '../../../lib/template/index.ts'
import { hasStatement, jinjaBlocks, rawBlocks, type Block } from './blocks.ts'
import { ExpressionError, FunctionError, unableToEvaluate } from './error.ts'
import type { Evaluation, WorkflowFunction } from './function.ts'
import { bindArguments, callFunction, workflowFunctions } from './functions.ts'
import { lazyVariables } from './state-functions.ts'

interface Surroundings {
  readonly budget: Evaluation['budget']
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
  const blocks = hasStatement(text) ? rawBlocks(text) : jinjaBlocks(text)
  if (blocks === undefined) return renderWhole(text, surroundings)
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

const known = new WeakMap<Evaluation, Surroundings>()

/** What the texts of one evaluation share. */
function surroundingsOf(evaluation: Evaluation): Surroundings {
  let surroundings = known.get(evaluation)
  if (surroundings === undefined) {
    surroundings = newSurroundings(evaluation)
    known.set(evaluation, surroundings)
  }
  return surroundings
}

function newSurroundings(evaluation: Evaluation): Surroundings {
  const functions: Record<string, HostFunction> = {}
  const filters: Record<string, HostFunction> = {}
  for (const called of workflowFunctions) {
    const run = hostFunction(called, evaluation)
    functions[called.name] = run
    if (called.isFilter === true) filters[called.name] = run
  }
  return { budget: evaluation.budget, functions, filters, variables: { __vars: lazyVariables(evaluation) } }
}

function hostFunction(called: WorkflowFunction, evaluation: Evaluation): HostFunction {
  return (positional, named) => {
    try {
      return callFunction(called, bindArguments(called, positional, named), evaluation)
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error
      const message = error.className === 'KeyError' ? `'${error.message}'` : error.message
      throw new TemplateError('FILTER', message, undefined, false, error.className)
    }
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
