import { BudgetExhausted, TemplateError } from '../template/index.ts'

/**
 * The classes of errors, in the words of the engine that workflows were written for: `KeyError` (a key is missing; the
 * detail is the key), `NoMatchingFunctionException`, `ZeroDivisionError` and so on. `LimitExceededException` is ours: the
 * expression needs more than its budget allows.
 */
export type YaqlErrorClass =
  | 'AmbiguousFunctionException'
  | 'AmbiguousMethodException'
  | 'ArgumentException'
  | 'AssertionError'
  | 'AttributeError'
  | 'Exception'
  | 'ExpressionEvaluationException'
  | 'IndexError'
  | 'JSONDecodeError'
  | 'KeyError'
  | 'LimitExceededException'
  | 'MappingTranslationException'
  | 'NoFunctionRegisteredException'
  | 'NoMatchingFunctionException'
  | 'NoMatchingMethodException'
  | 'NoMethodRegisteredException'
  | 'OverflowError'
  | 'ParserError'
  | 'RecursionError'
  | 'StopIteration'
  | 'TypeError'
  | 'UnicodeDecodeError'
  | 'ValueError'
  | 'VariableInaccessibleError'
  | 'VariableUndefinedError'
  | 'YaqlGrammarException'
  | 'YaqlLexicalException'
  | 'ZeroDivisionError'
  | 'error'

/** An expression that cannot be parsed or evaluated. */
export class YaqlError extends Error {
  readonly errorClass: YaqlErrorClass
  /** Offset into the text of the expression, in UTF-16 units, where it is known. */
  readonly position: number | undefined

  constructor(errorClass: YaqlErrorClass, detail: string, position?: number) {
    super(detail)
    this.name = 'YaqlError'
    this.errorClass = errorClass
    this.position = position
  }

  /** A budget or bound was exceeded: the expression may be right, and is too large. */
  get isLimit(): boolean {
    return this.errorClass === 'LimitExceededException' || this.errorClass === 'RecursionError'
  }
}

export const limitExceeded = (detail: string, position?: number): YaqlError =>
  new YaqlError('LimitExceededException', detail, position)

export const typeError = (detail: string): YaqlError => new YaqlError('TypeError', detail)

export const valueError = (detail: string): YaqlError => new YaqlError('ValueError', detail)

/**
 * Errors of the parts that are shared with templates become YAQL's own; an exhausted budget stays one, since a caller may
 * try again with a larger one.
 */
function asYaqlError(error: unknown): unknown {
  if (error instanceof BudgetExhausted) return error
  if (error instanceof TemplateError) {
    return new YaqlError(error.code === 'LIMIT' ? 'LimitExceededException' : 'ValueError', error.message)
  }
  // The second line behind the bounds of depth: what an expression does is undone by forgetting it.
  if (error instanceof RangeError && error.message.includes('call stack')) {
    return new YaqlError('RecursionError', 'maximum recursion depth exceeded')
  }
  return error
}

/** Runs a part of the library for those outside of it, who know only its own errors. */
export function translateErrors<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw asYaqlError(error)
  }
}
