import { hasJinja, hasStatement, hasYaql, jinjaBlocks, statementBlocks, yaqlBlocks, type Block } from './blocks.ts'
import { inspectJinja } from './jinja.ts'
import { inspectYaql } from './yaql.ts'

export type Language = 'yaql' | 'jinja'

/** An expression in a text. */
export interface FoundExpression {
  readonly language: Language
  /** with its delimiters */
  readonly text: string
  /** Offset into the text, in UTF-16 units. */
  readonly position: number
  /**
   * The variables that it names, each once, in order: `x` of `ctx().x`, `ctx(x)`, `ctx('x')`. They are read off the text, so
   * that an expression with a mistake has them too.
   */
  readonly variables: readonly string[]
  /** Functions, methods of YAQL and filters of Jinja that it calls, each once; none if it cannot be parsed. */
  readonly functions: readonly string[]
}

/** A mistake in an expression. */
export interface ExpressionMistake {
  /** undefined: the text mixes both */
  readonly language: Language | undefined
  /** The expression with its delimiters; for a template with statements, the whole text. */
  readonly expression: string
  readonly message: string
}

export interface Found {
  readonly expressions: readonly FoundExpression[]
  readonly mistakes: readonly ExpressionMistake[]
}

const none: Found = { expressions: [], mistakes: [] }

/** The expressions of a text, and what is wrong with them. */
export function findExpressions(text: string): Found {
  const isYaql = hasYaql(text)
  const isJinja = hasJinja(text)
  if (isYaql && isJinja) {
    const message = 'Expression with multiple types is not supported.'
    return { expressions: [], mistakes: [{ language: undefined, expression: text, message }] }
  }
  if (isYaql) return findYaql(text)
  return isJinja ? findJinja(text) : none
}

function findYaql(text: string): Found {
  const mistakes: ExpressionMistake[] = []
  const expressions = yaqlBlocks(text).flatMap((block) => {
    if (block.source === undefined) return []
    const { calls, error } = inspectYaql(block.source)
    if (error !== undefined) mistakes.push({ language: 'yaql', expression: block.text, message: error })
    return expressionOf(block, 'yaql', calls)
  })
  return { expressions, mistakes }
}

/** A mistake of the whole text counts first; one of a block is another only if its text is. */
function findJinja(text: string): Found {
  const whole = inspectJinja(text, 'template')
  const isTemplate = hasStatement(text)
  const mistakes = new Map<string, ExpressionMistake>()
  const refuse = (expression: string, message: string | undefined): void => {
    if (message === undefined || mistakes.has(expression)) return
    mistakes.set(expression, { language: 'jinja', expression, message })
  }
  refuse(text, whole.error)
  const expressions = jinjaBlocks(text).flatMap((block) => {
    if (block.source === undefined) return []
    const { calls, error } = inspectJinja(block.source, 'expression')
    // What `{% raw %}` protects is no expression, so a block of a template counts only as a part of the whole.
    if (!isTemplate) refuse(block.text, error)
    return expressionOf(block, 'jinja', calls)
  })
  const statements = statementBlocks(text).flatMap((block) => expressionOf(block, 'jinja', whole.calls))
  const all = [...expressions, ...statements].toSorted((a, b) => a.position - b.position)
  return { expressions: all, mistakes: [...mistakes.values()] }
}

function expressionOf(
  { text, source, position }: Block,
  language: Language,
  functions: readonly string[],
): FoundExpression[] {
  return source === undefined ? [] : [{ language, text, position, variables: variablesIn(source), functions }]
}

const variablePattern = /(?<![\p{L}\p{N}_])ctx\((?:\)\.([A-Za-z0-9_]+)(?![\p{L}\p{N}_(])|(['"]?)([A-Za-z0-9_-]+)\2\))/gu

function variablesIn(source: string): string[] {
  const names = Array.from(source.matchAll(variablePattern), ([, member, , key]) => member ?? key ?? '')
  return [...new Set(names)]
}
