import type { Expression } from './ast.ts'
import { YaqlObject, type Value } from './values.ts'

/** Variables and functions that an expression sees; also the value of `let(…)`, `with(…)`, `def(…)` and `unpack(…)`. */
export class Scope extends YaqlObject {
  readonly typeName = 'Context'
  readonly #parent: Scope | undefined
  /** `$1`, `$2`, …; `$` is `$1`. */
  readonly #positional: readonly Value[] | undefined
  readonly #named: ReadonlyMap<string, Value> | undefined
  /** The nearest functions that the expression itself defined, and those around them. */
  readonly functions: DefinedFunctions | undefined

  constructor(
    parent: Scope | undefined,
    positional?: readonly Value[],
    named?: ReadonlyMap<string, Value>,
    functions?: DefinedFunctions,
  ) {
    super()
    this.#parent = parent
    this.#positional = positional
    this.#named = named
    this.functions = functions ?? parent?.functions
  }

  /** The value of a variable; null where nobody has set it. */
  get(name: string, index: number | undefined): Value {
    const own = this.#own(name, index)
    if (own !== undefined) return own
    for (let scope = this.#parent; scope !== undefined; scope = scope.#parent) {
      const value = scope.#own(name, index)
      if (value !== undefined) return value
    }
    return null
  }

  #own(name: string, index: number | undefined): Value | undefined {
    return index === undefined ? this.#named?.get(name) : this.#positional?.[index]
  }
}

/** A function that the expression defined, and those before it. */
export interface DefinedFunctions {
  readonly name: string
  readonly call: (positional: readonly Value[], named: ReadonlyMap<string, Value>) => Value
  readonly outer: DefinedFunctions | undefined
}

interface Evaluator {
  evaluate(expression: Expression, scope: Scope): Value
}

/** An argument that is evaluated by the function it is given to, as often as that likes. */
export class Lambda {
  readonly #expression: Expression | undefined
  readonly #scope: Scope | undefined
  readonly #value: Value
  readonly #evaluator: Evaluator

  private constructor(
    evaluator: Evaluator,
    expression: Expression | undefined,
    scope: Scope | undefined,
    value: Value,
  ) {
    this.#evaluator = evaluator
    this.#expression = expression
    this.#scope = scope
    this.#value = value
  }

  static of(expression: Expression, scope: Scope, evaluator: Evaluator): Lambda {
    return new Lambda(evaluator, expression, scope, null)
  }

  /** Gives the same value whenever it is called. */
  static constant(value: Value, evaluator: Evaluator): Lambda {
    return new Lambda(evaluator, undefined, undefined, value)
  }

  /** With `$1`, `$2`, … (and `$` for the first). */
  call(positional: readonly Value[] = [], named?: ReadonlyMap<string, Value>): Value {
    return this.callIn(this.#scope, positional, named)
  }

  /** Sees the variables and functions of another place. */
  callIn(scope: Scope | undefined, positional: readonly Value[], named?: ReadonlyMap<string, Value>): Value {
    if (this.#expression === undefined) return this.#value
    const inner =
      scope !== undefined && positional.length === 0 && named === undefined
        ? scope
        : new Scope(scope, positional, named)
    return this.#evaluator.evaluate(this.#expression, inner)
  }
}

/** The two sides of `key => value`. */
export interface Rule {
  readonly key: Lambda
  readonly value: Lambda
}
