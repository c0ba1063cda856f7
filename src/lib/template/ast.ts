/** The parsed form of a template. */

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**'
export type ComparisonOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in'

export interface Arguments {
  positional: readonly Expression[]
  named: readonly { name: string; value: Expression }[]
  /** `*items` */
  spread: Expression | undefined
  /** `**mapping` */
  spreadNamed: Expression | undefined
}

export type Expression =
  | { kind: 'literal'; value: null | boolean | number | bigint | string }
  | { kind: 'float'; value: number }
  | { kind: 'name'; name: string; position: number }
  | { kind: 'list' | 'tuple'; items: readonly Expression[] }
  | { kind: 'dict'; entries: readonly { key: Expression; value: Expression }[] }
  | { kind: 'attribute'; object: Expression; name: string; position: number }
  | { kind: 'item'; object: Expression; key: Expression; position: number }
  | {
      kind: 'slice'
      object: Expression
      start: Expression | undefined
      stop: Expression | undefined
      step: Expression | undefined
    }
  | { kind: 'call'; callee: Expression; call: Arguments; position: number }
  | { kind: 'filter'; value: Expression; name: string; call: Arguments; position: number }
  | { kind: 'test'; value: Expression; name: string; call: Arguments; negated: boolean; position: number }
  | { kind: 'negative' | 'positive' | 'not'; value: Expression }
  | { kind: 'binary'; operator: BinaryOperator; left: Expression; right: Expression }
  | { kind: 'concat' | 'and' | 'or'; parts: readonly Expression[] }
  | { kind: 'compare'; first: Expression; rest: readonly { operator: ComparisonOperator; value: Expression }[] }
  | { kind: 'condition'; test: Expression; value: Expression; otherwise: Expression | undefined }

/** Where `for`, `set` and `with` store values. */
export type Target =
  | { kind: 'name'; name: string }
  | { kind: 'tuple'; items: readonly Target[] }
  | { kind: 'member'; object: string; name: string }

export interface FilterStep {
  name: string
  call: Arguments
  position: number
}

export interface Parameter {
  name: string
  fallback: Expression | undefined
}

export interface ForStatement {
  kind: 'for'
  target: Target
  iterable: Expression
  test: Expression | undefined
  recursive: boolean
  body: readonly Statement[]
  otherwise: readonly Statement[]
}

export interface MacroStatement {
  kind: 'macro'
  name: string
  parameters: readonly Parameter[]
  body: readonly Statement[]
  /** whether the body reads `varargs`, `kwargs` and `caller` */
  takes: { varargs: boolean; kwargs: boolean; caller: boolean }
}

export type Statement =
  | { kind: 'text'; text: string }
  | { kind: 'output'; value: Expression }
  | {
      kind: 'if'
      branches: readonly { test: Expression; body: readonly Statement[] }[]
      otherwise: readonly Statement[] | undefined
    }
  | ForStatement
  | { kind: 'set'; target: Target; value: Expression }
  | { kind: 'set-block'; target: Target; filters: readonly FilterStep[]; body: readonly Statement[] }
  | { kind: 'with'; bindings: readonly { target: Target; value: Expression }[]; body: readonly Statement[] }
  | { kind: 'filter-block'; filters: readonly FilterStep[]; body: readonly Statement[] }
  | MacroStatement
  | { kind: 'call-block'; caller: MacroStatement; call: Expression }

export interface Template {
  body: readonly Statement[]
  /** set when the text is exactly one `{{ expression }}`, whose value keeps its type */
  single: Expression | undefined
}
