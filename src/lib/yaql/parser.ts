import { Lru } from '../cache/index.ts'
import type { Argument, CallNode, Expression } from './ast.ts'
import { limitExceeded, YaqlError } from './error.ts'
import { characterPosition, tokenize, type Token } from './lexer.ts'
import { binaryOperators, prefixOperators } from './operators.ts'

/** Deepest nesting of brackets, prefixes and right-hand sides. */
const MAX_NESTING = 200

/** Deepest expression tree: a chain such as `a + b + c …` makes a deep tree without any nesting in the text. */
const MAX_TREE_HEIGHT = 400

const parsed = new Lru<string, Expression | YaqlError>(2_000, 1024 * 1024)

/**
 * Parses the text of one expression, without delimiters. Caches recent ones.
 *
 * @throws YaqlError YaqlLexicalException or YaqlGrammarException with the position, or LimitExceededException
 */
export function parse(text: string): Expression {
  const result = parsed.get(text) ?? parseNew(text)
  if (!(result instanceof YaqlError)) return result
  // A new one, with the stack of this caller.
  throw new YaqlError(result.errorClass, result.message, result.position)
}

function parseNew(text: string): Expression | YaqlError {
  let result: Expression | YaqlError
  try {
    result = new Parser(text).parse()
  } catch (error) {
    if (!(error instanceof YaqlError)) throw error
    result = error
  }
  parsed.set(text, result, text.length)
  return result
}

class Parser {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
    this.#tokens = tokenize(text)
  }

  parse(): Expression {
    const expression = this.#expression(0)
    if (this.#token.kind !== 'end') this.#unexpected()
    return expression
  }

  get #token(): Token {
    const token = this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]
    if (token === undefined) throw new Error('an expression has at least its end')
    if (token.value instanceof YaqlError) throw token.value
    return token
  }

  #isSign(sign: string): boolean {
    return this.#token.kind === 'sign' && this.#token.text === sign
  }

  #unexpected(): never {
    const { kind, text, position } = this.#token
    throw new YaqlError(
      'YaqlGrammarException',
      kind === 'end'
        ? 'Parse error: unexpected end of statement'
        : `Parse error: unexpected '${text}' at position ${characterPosition(this.#text, position)} of expression '${this.#text}'`,
      position,
    )
  }

  /** An expression whose operators bind tighter than `power`. */
  #expression(power: number): Expression {
    this.#depth += 1
    if (this.#depth > MAX_NESTING) {
      throw limitExceeded(`the expression nests deeper than ${MAX_NESTING}`, this.#token.position)
    }
    let left = this.#operand()
    for (;;) {
      const { kind, text, position } = this.#token
      const operator = kind === 'sign' ? binaryOperators.get(text) : undefined
      if (operator === undefined || operator.power <= power) break
      this.#at += 1
      if (operator.isIndex) left = call(operator.name, [left, ...this.#arguments(']')], position)
      else {
        const right = this.#expression(operator.isRight ? operator.power - 1 : operator.power)
        left = call(operator.name, [left, right], position)
      }
    }
    this.#depth -= 1
    return left
  }

  #operand(): Expression {
    const { kind, text, value, position } = this.#token
    switch (kind) {
      case 'constant':
      case 'keyword':
        this.#at += 1
        return { kind: 'constant', value, isKeyword: kind === 'keyword', position, height: 1 }
      case 'variable': {
        this.#at += 1
        const index = text === '$' ? 0 : /^\$[1-9]\d{0,2}$/.test(text) ? Number(text.slice(1)) - 1 : undefined
        return { kind: 'variable', name: text.slice(1), index, position, height: 1 }
      }
      case 'function':
        this.#at += 1
        return call(text, this.#arguments(')'), position)
      case 'end':
      case 'illegal':
        return this.#unexpected()
      case 'sign':
    }
    const prefix = prefixOperators.get(text)
    if (prefix !== undefined) {
      this.#at += 1
      return call(prefix.name, [this.#expression(prefix.power - 1)], position)
    }
    if (text !== '(' && text !== '[' && text !== '{') this.#unexpected()
    this.#at += 1
    if (text === '[') return call('#list', this.#arguments(']'), position)
    if (text === '{') return call('#map', this.#arguments('}'), position)
    const inner = this.#expression(0)
    if (!this.#isSign(')')) this.#unexpected()
    this.#at += 1
    return inner.kind === 'constant' ? { ...inner, isKeyword: false, isGrouped: true } : { ...inner, isGrouped: true }
  }

  /** Values and then rules, up to and with the closing bracket. A value may be missing, but not the last one. */
  #arguments(closing: string): Argument[] {
    const found: Argument[] = []
    let hasRule = false
    if (this.#isSign(closing)) {
      this.#at += 1
      return found
    }
    for (;;) {
      if (this.#isSign(',') && !hasRule) found.push({ kind: 'empty' })
      else {
        const value = this.#expression(0)
        if (this.#isSign('=>')) {
          // Between a value and the first rule there may be one more comma, which stands for nothing.
          if (found.at(-1)?.kind === 'empty') {
            found.pop()
            if (found.length === 0 || found.at(-1)?.kind === 'empty') this.#unexpected()
          }
          this.#at += 1
          found.push({ kind: 'rule', key: value, value: this.#expression(0) })
          hasRule = true
        } else if (hasRule) this.#unexpected()
        else found.push(value)
        if (this.#isSign(closing)) {
          this.#at += 1
          return found
        }
        if (!this.#isSign(',')) this.#unexpected()
      }
      this.#at += 1
      if (this.#isSign(closing)) this.#unexpected()
    }
  }
}

function call(name: string, args: readonly Argument[], position: number): CallNode {
  let height = 0
  for (const argument of args) {
    if (argument.kind === 'empty') continue
    if (argument.kind === 'rule') height = Math.max(height, argument.key.height, argument.value.height)
    else height = Math.max(height, argument.height)
  }
  height += 1
  if (height > MAX_TREE_HEIGHT) {
    throw limitExceeded(`the expression chains or nests more than ${MAX_TREE_HEIGHT} parts`, position)
  }
  return { kind: 'call', name, args, position, height, plan: undefined }
}
