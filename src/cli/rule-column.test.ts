import { expect, test } from 'vitest'
import { ruleColumn } from './rule-column.ts'

test.each<[rules: unknown, column: unknown]>([
  [['a.b', 'c.d'], 'a.b\nc.d'],
  [[{ ref: 'a.b' }, null, 1], '{\n    "ref": "a.b"\n}\n\n1'],
  [{ ref: 'a.b' }, undefined],
  [undefined, undefined],
])('%j as the column of rules', (rules, column) => {
  expect(ruleColumn({ id: '1', rules })['rule']).toBe(column)
})
