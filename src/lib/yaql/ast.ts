/** Constants of the text; floats are apart from whole numbers. */
export interface ConstantNode {
  readonly kind: 'constant'
  readonly value: null | boolean | number | bigint | string | object
  /** Written without quotes: it can name a member or an argument. */
  readonly isKeyword: boolean
  readonly position: number
  readonly height: number
  readonly isGrouped?: boolean
}

/** `$`, `$1`, `$name`. `index` counts from 0 for `$` and `$1`; undefined: a name. */
export interface VariableNode {
  readonly kind: 'variable'
  readonly name: string
  readonly index: number | undefined
  readonly position: number
  readonly height: number
  readonly isGrouped?: boolean
}

/** A function, a method (on the right of a dot), or an operator: `#operator_+`, `#unary_operator_-`, `#indexer`, `#list`, `#map`. */
export interface CallNode {
  readonly kind: 'call'
  readonly name: string
  readonly args: readonly Argument[]
  readonly position: number
  readonly height: number
  /** In parentheses: it names no member. */
  readonly isGrouped?: boolean
  /** For the evaluation: how the arguments fit the functions that it found last. */
  plan: object | undefined
}

/** `key => value` among arguments. */
export interface RuleNode {
  readonly kind: 'rule'
  /** The program gave it, as an argument by name: it is no pair of values. */
  readonly isNamed?: boolean
  readonly key: Expression
  readonly value: Expression
}

/** Nothing between two commas: the default of the parameter. */
export interface EmptyNode {
  readonly kind: 'empty'
}

export type Expression = ConstantNode | VariableNode | CallNode
export type Argument = Expression | RuleNode | EmptyNode

/** Every part of an expression, the outer ones first. */
export function* partsOf(expression: Expression): Generator<Expression> {
  const open: Expression[] = [expression]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    yield part
    if (part.kind !== 'call') continue
    for (const argument of part.args.toReversed()) {
      if (argument.kind === 'rule') open.push(argument.value, argument.key)
      else if (argument.kind !== 'empty') open.push(argument)
    }
  }
}
