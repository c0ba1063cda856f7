import type { Arguments, BinaryOperator, ComparisonOperator, Expression } from './ast.ts'
import { limitError, quoted, syntaxError } from './error.ts'
import type { Token, TokenType } from './lexer.ts'
import { MAX_NESTING, MAX_TREE_HEIGHT } from './limits.ts'

const noArguments: Arguments = { positional: [], named: [], spread: undefined, spreadNamed: undefined }

/** Binding strength of the left-associative arithmetic operators; `~` sits between 1 and 3 and joins many parts. */
const strengths: Readonly<Record<string, number>> = { '+': 1, '-': 1, '~': 2, '*': 3, '/': 3, '//': 3, '%': 3, '**': 4 }
const comparisons: readonly string[] = ['==', '!=', '<', '<=', '>', '>=']
const constants: Readonly<Record<string, null | boolean>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
}

const descriptions: Partial<Readonly<Record<TokenType, string>>> = {
  text: 'template data / text',
  'variable-begin': 'begin of print statement',
  'variable-end': 'end of print statement',
  'block-begin': 'begin of statement block',
  'block-end': 'end of statement block',
  end: 'end of template',
}

const describe = (type: TokenType): string => descriptions[type] ?? type

/** Token reading and expressions; statements build on it. */
export class ExpressionParser {
  readonly #tokens: readonly Token[]
  readonly #heights = new WeakMap<Expression, number>()
  #at = 0
  #nesting = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  protected get current(): Token {
    return this.#ahead(0)
  }

  #ahead(distance: number): Token {
    const token = this.#tokens[Math.min(this.#at + distance, this.#tokens.length - 1)]
    if (token === undefined) throw syntaxError('the template is empty', 0)
    if (token.error !== undefined) throw token.error
    return token
  }

  protected next(): Token {
    const token = this.current
    this.#at += 1
    return token
  }

  protected nextIsBlock(...names: string[]): boolean {
    if (!this.is('block-begin')) return false
    const ahead = this.#ahead(1)
    return ahead.type === 'name' && names.includes(ahead.value)
  }

  protected is(type: TokenType, value?: string): boolean {
    const token = this.current
    return token.type === type && (value === undefined || token.value === value)
  }

  protected skip(type: TokenType, value?: string): boolean {
    if (!this.is(type, value)) return false
    this.#at += 1
    return true
  }

  protected expect(type: TokenType, value?: string): Token {
    if (!this.is(type, value)) throw this.unexpected(value ?? describe(type))
    return this.next()
  }

  /** @param expected what should stand here instead of the current token; undefined: nothing that starts with it fits */
  protected unexpected(expected?: string): Error {
    const token = this.current
    const found = token.type === 'name' || token.type === 'operator' ? token.value : describe(token.type)
    if (expected === undefined) return syntaxError(`unexpected ${quoted(found)}`, token.position)
    if (token.type === 'end') return syntaxError(`unexpected ${found}, expected ${quoted(expected)}.`, token.position)
    return syntaxError(`expected token ${quoted(expected)}, got ${quoted(found)}`, token.position)
  }

  protected missingExpression(): Error {
    const { type, value, position } = this.current
    return syntaxError(`Expected an expression, got ${quoted(type === 'operator' ? value : describe(type))}`, position)
  }

  /** Runs one level of recursion, refusing more than `MAX_NESTING`. */
  protected nested<T>(parse: () => T): T {
    this.#nesting += 1
    if (this.#nesting > MAX_NESTING) throw limitError(`the template nests deeper than ${MAX_NESTING}`)
    const result = parse()
    this.#nesting -= 1
    return result
  }

  /** Notes how high the tree over `children` is, refusing more than `MAX_TREE_HEIGHT`. */
  #over<T extends Expression>(node: T, ...children: (Expression | readonly Expression[] | undefined)[]): T {
    let height = 0
    for (const child of children.flat()) {
      if (child !== undefined) height = Math.max(height, this.#heights.get(child) ?? 0)
    }
    if (height >= MAX_TREE_HEIGHT) throw limitError(`an expression chains more than ${MAX_TREE_HEIGHT} operations`)
    this.#heights.set(node, height + 1)
    return node
  }

  #overArguments<T extends Expression>(node: T, value: Expression, call: Arguments): T {
    return this.#over(
      node,
      value,
      call.positional,
      call.named.map((argument) => argument.value),
      call.spread,
      call.spreadNamed,
    )
  }

  parseExpression(): Expression {
    return this.nested(() => {
      let value = this.parseOr()
      while (this.skip('name', 'if')) {
        const test = this.parseOr()
        const otherwise = this.skip('name', 'else') ? this.parseExpression() : undefined
        value = this.#over({ kind: 'condition', test, value, otherwise }, test, value, otherwise)
      }
      return value
    })
  }

  /** An expression or, when commas follow, a tuple. `conditions` is false where `if` belongs to the statement. */
  parseTuple(conditions = true, ends: () => boolean = () => false): Expression {
    const parse = (): Expression => (conditions ? this.parseExpression() : this.parseOr())
    if (this.#endsTuple()) throw this.missingExpression()
    const first = parse()
    if (!this.is('operator', ',')) return first
    const items = [first]
    while (this.skip('operator', ',')) {
      if (this.#endsTuple() || ends()) break
      items.push(parse())
    }
    return this.#over({ kind: 'tuple', items }, items)
  }

  #endsTuple(): boolean {
    return this.is('variable-end') || this.is('block-end') || this.is('operator', ')')
  }

  parseOr(): Expression {
    return this.#parseLogic('or', () => this.#parseLogic('and', () => this.#parseNot()))
  }

  #parseLogic(kind: 'or' | 'and', parse: () => Expression): Expression {
    const first = parse()
    if (!this.is('name', kind)) return first
    const parts = [first]
    while (this.skip('name', kind)) parts.push(parse())
    return this.#over({ kind, parts }, parts)
  }

  #parseNot(): Expression {
    if (!this.is('name', 'not')) return this.#parseComparison()
    return this.nested(() => {
      this.next()
      const value = this.#parseNot()
      return this.#over({ kind: 'not', value }, value)
    })
  }

  #parseComparison(): Expression {
    const first = this.#parseArithmetic(1)
    const rest: { operator: ComparisonOperator; value: Expression }[] = []
    for (let operator = this.#comparisonOperator(); operator !== undefined; operator = this.#comparisonOperator()) {
      rest.push({ operator, value: this.#parseArithmetic(1) })
    }
    if (rest.length === 0) return first
    return this.#over(
      { kind: 'compare', first, rest },
      first,
      rest.map((operand) => operand.value),
    )
  }

  #comparisonOperator(): ComparisonOperator | undefined {
    if (this.is('operator') && comparisons.includes(this.current.value)) {
      // The list above holds comparison operators only.
      return this.next().value as ComparisonOperator
    }
    if (this.skip('name', 'in')) return 'in'
    if (!this.is('name', 'not')) return undefined
    const after = this.#ahead(1)
    if (after.type !== 'name' || after.value !== 'in') return undefined
    this.next()
    this.next()
    return 'not in'
  }

  #parseArithmetic(minimum: number): Expression {
    let left = this.#parseUnary()
    for (;;) {
      const operator = this.is('operator') ? this.current.value : ''
      const strength = Object.hasOwn(strengths, operator) ? (strengths[operator] ?? 0) : 0
      if (strength < minimum || strength === 0) return left
      if (operator === '~') {
        const parts = [left]
        while (this.skip('operator', '~')) parts.push(this.#parseArithmetic(strength + 1))
        left = this.#over({ kind: 'concat', parts }, parts)
        continue
      }
      this.next()
      const right = this.#parseArithmetic(strength + 1)
      // The table of strengths without `~` is exactly the set of binary operators.
      left = this.#over({ kind: 'binary', operator: operator as BinaryOperator, left, right }, left, right)
    }
  }

  #parseUnary(filters = true): Expression {
    let value: Expression
    if (this.is('operator', '-') || this.is('operator', '+')) {
      const kind = this.next().value === '-' ? 'negative' : 'positive'
      const operand = this.nested(() => this.#parseUnary(false))
      value = this.#over({ kind, value: operand }, operand)
    } else {
      value = this.parsePrimary()
    }
    value = this.#parsePostfix(value)
    return filters ? this.#parseFilters(value) : value
  }

  protected parsePrimary(): Expression {
    const token = this.current
    switch (token.type) {
      case 'name': {
        this.next()
        const constant = Object.hasOwn(constants, token.value) ? constants[token.value] : undefined
        if (constant !== undefined) return { kind: 'literal', value: constant }
        return { kind: 'name', name: token.value, position: token.position }
      }
      case 'string': {
        let value = ''
        while (this.is('string')) value += this.next().value
        return { kind: 'literal', value }
      }
      case 'integer': {
        this.next()
        const number = Number(token.value)
        return { kind: 'literal', value: Number.isSafeInteger(number) ? number : this.#bigInteger(token) }
      }
      case 'float':
        this.next()
        return { kind: 'float', value: Number(token.value) }
      case 'operator':
        if (token.value === '(') return this.#parseParentheses()
        if (token.value === '[') return this.#parseList()
        if (token.value === '{') return this.#parseDict()
        throw this.unexpected()
      default:
        throw this.unexpected()
    }
  }

  #bigInteger(token: Token): bigint {
    if (token.value.length > 2000) throw limitError('a number in the template has more than 2000 digits')
    return BigInt(token.value)
  }

  #parseParentheses(): Expression {
    this.expect('operator', '(')
    if (this.skip('operator', ')')) return { kind: 'tuple', items: [] }
    const value = this.parseTuple()
    this.expect('operator', ')')
    return value
  }

  #parseList(): Expression {
    this.expect('operator', '[')
    const items: Expression[] = []
    while (!this.is('operator', ']')) {
      if (items.length > 0) this.expect('operator', ',')
      if (this.is('operator', ']')) break
      items.push(this.parseExpression())
    }
    this.expect('operator', ']')
    return this.#over({ kind: 'list', items }, items)
  }

  #parseDict(): Expression {
    this.expect('operator', '{')
    const entries: { key: Expression; value: Expression }[] = []
    while (!this.is('operator', '}')) {
      if (entries.length > 0) this.expect('operator', ',')
      if (this.is('operator', '}')) break
      const key = this.parseExpression()
      this.expect('operator', ':')
      entries.push({ key, value: this.parseExpression() })
    }
    this.expect('operator', '}')
    return this.#over(
      { kind: 'dict', entries },
      entries.flatMap((entry) => [entry.key, entry.value]),
    )
  }

  #parsePostfix(value: Expression): Expression {
    for (;;) {
      if (this.is('operator', '.')) value = this.#parseAttribute(value)
      else if (this.is('operator', '[')) value = this.#parseSubscript(value)
      else if (this.is('operator', '(')) value = this.#parseCall(value)
      else return value
    }
  }

  #parseAttribute(object: Expression): Expression {
    this.expect('operator', '.')
    const token = this.next()
    const { position } = token
    if (token.type === 'name') return this.#over({ kind: 'attribute', object, name: token.value, position }, object)
    // A mistake in what follows is the first one.
    if (token.type !== 'integer' && this.current.type !== 'error')
      throw syntaxError('expected name or number', position)
    const key: Expression = { kind: 'literal', value: Number(token.value) }
    return this.#over({ kind: 'item', object, key, position }, object)
  }

  #parseSubscript(object: Expression): Expression {
    const { position } = this.expect('operator', '[')
    const first = this.is('operator', ':') ? undefined : this.parseExpression()
    if (this.skip('operator', ':')) {
      const ends = (): boolean => this.is('operator', ':') || this.is('operator', ']')
      const stop = ends() ? undefined : this.parseExpression()
      const step = this.skip('operator', ':') && !ends() ? this.parseExpression() : undefined
      // Elsewhere a comma could follow, which the message names.
      if (!this.is('operator', ']') && !this.is('operator', ',')) throw this.unexpected(',')
      this.expect('operator', ']')
      return this.#over({ kind: 'slice', object, start: first, stop, step }, object, first, stop, step)
    }
    if (first === undefined) throw this.unexpected()
    const items = [first]
    while (!this.skip('operator', ']')) {
      this.expect('operator', ',')
      items.push(this.parseExpression())
    }
    const key: Expression = items.length === 1 ? first : this.#over({ kind: 'tuple', items }, items)
    return this.#over({ kind: 'item', object, key, position }, object, key)
  }

  #parseCall(callee: Expression): Expression {
    const { position } = this.current
    const call = this.#parseArguments()
    return this.#overArguments({ kind: 'call', callee, call, position }, callee, call)
  }

  #parseArguments(): Arguments {
    this.expect('operator', '(')
    const positional: Expression[] = []
    const named: { name: string; value: Expression }[] = []
    const names = new Set<string>()
    let spread: Expression | undefined
    let spreadNamed: Expression | undefined
    for (let first = true; !this.is('operator', ')'); first = false) {
      if (!first) {
        this.expect('operator', ',')
        if (this.is('operator', ')')) break
      }
      const { position } = this.current
      const invalid = (): Error => syntaxError('invalid syntax for function call expression', position)
      if (this.skip('operator', '*')) {
        if (spread !== undefined || spreadNamed !== undefined) throw invalid()
        spread = this.parseExpression()
      } else if (this.skip('operator', '**')) {
        if (spreadNamed !== undefined) throw invalid()
        spreadNamed = this.parseExpression()
      } else if (this.is('name') && this.#ahead(1).type === 'operator' && this.#ahead(1).value === '=') {
        if (spreadNamed !== undefined) throw invalid()
        const name = this.next().value
        this.next()
        if (names.has(name)) {
          throw syntaxError(`the argument ${quoted(name)} is given twice`, position)
        }
        names.add(name)
        named.push({ name, value: this.parseExpression() })
      } else {
        if (spread !== undefined || spreadNamed !== undefined || named.length > 0) throw invalid()
        positional.push(this.parseExpression())
      }
    }
    this.expect('operator', ')')
    return { positional, named, spread, spreadNamed }
  }

  #parseFilters(value: Expression): Expression {
    for (;;) {
      if (this.is('operator', '|')) {
        const { name, call, position } = this.parseFilterStep()
        value = this.#overArguments({ kind: 'filter', value, name, call, position }, value, call)
      } else if (this.is('name', 'is')) {
        value = this.#parseTest(value)
      } else if (this.is('operator', '(')) {
        value = this.#parseCall(value)
      } else {
        return value
      }
    }
  }

  /** `| name(arguments)`; the bar may be left out by the caller having read it. */
  protected parseFilterStep(withBar = true): { name: string; call: Arguments; position: number } {
    if (withBar) this.expect('operator', '|')
    const { position } = this.current
    const name = this.#parseDottedName()
    const call = this.is('operator', '(') ? this.#parseArguments() : noArguments
    return { name, call, position }
  }

  #parseDottedName(): string {
    let name = this.expect('name').value
    while (this.skip('operator', '.')) name += `.${this.expect('name').value}`
    return name
  }

  #parseTest(value: Expression): Expression {
    this.expect('name', 'is')
    const negated = this.skip('name', 'not')
    const { position } = this.current
    const name = this.#parseDottedName()
    let call = noArguments
    if (this.is('operator', '(')) {
      call = this.#parseArguments()
    } else if (this.#startsTestArgument()) {
      if (this.is('name', 'is')) throw syntaxError('tests cannot be chained with is', this.current.position)
      const argument = this.#parsePostfix(this.parsePrimary())
      call = { ...noArguments, positional: [argument] }
    }
    return this.#overArguments({ kind: 'test', value, name, call, negated, position }, value, call)
  }

  #startsTestArgument(): boolean {
    const { type, value } = this.current
    if (type === 'name') return !['else', 'or', 'and', 'if', 'in', 'not'].includes(value)
    return type === 'string' || type === 'integer' || type === 'float' || (type === 'operator' && '([{'.includes(value))
  }
}
