/** The operators, from the tightest to the loosest. Parentheses, lists and function calls bind before all of them. */
const levels: readonly { form: 'left' | 'right' | 'prefix' | 'index'; signs: readonly string[] }[] = [
  { form: 'left', signs: ['.', '?.'] },
  { form: 'index', signs: ['['] },
  { form: 'prefix', signs: ['+', '-'] },
  { form: 'left', signs: ['=~', '!~'] },
  { form: 'left', signs: ['*', '/', 'mod'] },
  { form: 'left', signs: ['+', '-'] },
  { form: 'left', signs: ['>', '<', '>=', '<=', '!=', '=', 'in'] },
  { form: 'prefix', signs: ['not'] },
  { form: 'left', signs: ['and'] },
  { form: 'left', signs: ['or'] },
  { form: 'right', signs: ['->'] },
]

/** Functions whose name does not follow from the sign. */
const names: Readonly<Record<string, string>> = { '=': '*equal', '!=': '*not_equal' }

export interface Operator {
  /** The function that the operator calls. */
  readonly name: string
  /** A larger number binds tighter; at least 1. */
  readonly power: number
  readonly isRight: boolean
  readonly isIndex: boolean
}

export const binaryOperators = new Map<string, Operator>()
export const prefixOperators = new Map<string, Operator>()

for (const [index, { form, signs }] of levels.entries()) {
  const power = levels.length - index
  for (const sign of signs) {
    if (form === 'prefix') {
      prefixOperators.set(sign, { name: `#unary_operator_${sign}`, power, isRight: false, isIndex: false })
      continue
    }
    const name = form === 'index' ? '#indexer' : (names[sign] ?? `#operator_${sign}`)
    binaryOperators.set(sign, { name, power, isRight: form === 'right', isIndex: form === 'index' })
  }
}

/** Operators that are written as words. */
export const wordOperators: ReadonlySet<string> = new Set(['mod', 'in', 'not', 'and', 'or'])

/** Signs of one or two characters that are no names, the longer ones first. */
export const signs: readonly string[] = [
  '=>',
  ...[...binaryOperators.keys()].filter((sign) => !wordOperators.has(sign)),
  '(',
  ')',
  ']',
  '{',
  '}',
  ',',
].toSorted((a, b) => b.length - a.length)
