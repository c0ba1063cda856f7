import { expect, test } from 'vitest'
import type { Expression, MacroStatement, Statement } from './ast.ts'
import { ExpressionParser } from './expression-parser.ts'
import type { Token } from './lexer.ts'
import { collectReferences, readsOfMacro } from './references.ts'

// Trees far larger than a template may be: work that grows with the product of two parts does not end within a test.
const size = 30_000
const value: Expression = { kind: 'name', name: 'read', position: 0 }
const setting = (name: string): Statement => ({ kind: 'set', target: { kind: 'name', name }, value })
const settings = Array.from({ length: size }, (_, index) => setting(`name${index}`))
const way = { test: value, body: [] }

test.each<[string, Statement[]]>([
  [
    'many branches after many names',
    Array.from({ length: size }, () => ({ kind: 'if', branches: [way], otherwise: [] })),
  ],
  [
    'many ways that set nothing',
    [{ kind: 'if', branches: Array.from({ length: size }, () => way), otherwise: settings }],
  ],
])('names are collected in linear time: %s', (_, statements) => {
  const { names } = collectReferences({ body: [...settings, ...statements], single: undefined }, new Set())
  expect(names).toEqual(['read'])
})

test('a macro inside another one is not walked again for the names of the outer one', () => {
  const printing = (name: string): Statement => ({ kind: 'output', value: { kind: 'name', name, position: 0 } })
  let walks = 0
  const macro: MacroStatement = {
    kind: 'macro',
    name: 'inner',
    parameters: [],
    takes: { varargs: false, kwargs: true, caller: false },
    get body() {
      walks += 1
      return [printing('kwargs'), printing('other')]
    },
  }
  expect([...readsOfMacro([macro, printing('varargs')])]).toEqual(['varargs'])
  expect(walks).toBe(0)
  expect(collectReferences({ body: [macro], single: undefined }, new Set()).names).toEqual(['other'])
  expect(walks).toBe(1)
})

test('the arguments of a call are read in linear time', () => {
  const names = Array.from({ length: 5 * size }, (_, index) => `name${index}`)
  const token = (type: Token['type'], text: string): Token => ({ type, value: text, position: 0 })
  const tokens = names.flatMap((name) => [
    token('name', name),
    token('operator', '='),
    token('name', 'read'),
    token('operator', ','),
  ])
  const parser = new ExpressionParser([
    token('name', 'f'),
    token('operator', '('),
    ...tokens,
    token('operator', ')'),
    token('end', ''),
  ])
  const call = parser.parseExpression()
  expect(call.kind === 'call' && call.call.named.length).toBe(names.length)
})
