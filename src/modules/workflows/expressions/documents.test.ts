/** The tables of expressions in docs/workflows.md say what svc gives. */
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { blocksOf, docPage } from '../../../../tests/helpers/doc-blocks.ts'
import { Budget, defaultLimits } from '../../../lib/template/index.ts'
import { evaluate, type Scope } from './index.ts'

const whole = docPage('workflows.md')
const page = whole.slice(whole.indexOf('## Expressions'), whole.indexOf('## Inspect a definition'))
const text = blocksOf(page).find((block) => block.text.startsWith('# variables\n'))?.text ?? ''
const variables = load(text) as Record<string, unknown>

const scope: Scope = {
  variable: (name) => variables[name],
  variables: () => variables,
  task: { name: 'measure', route: 0, status: 'succeeded', result: () => ({ stdout: '42' }) },
  item: undefined,
  taskStatus: () => undefined,
  taskRecord: () => undefined,
  readKey: () => undefined,
}

/** Expression and value of each row whose first cell begins with an expression, and whose second is code. */
const rows = [...page.matchAll(/^\| `((?:<%|\{\{|\{%).*?)`(?:, also [^|]*)? \| `(.*)` \|$/gm)].map(
  ([, expression = '', value = '']) => [expression.replaceAll('\\|', '|'), value.replaceAll('\\|', '|')] as const,
)

test('the page has tables of expressions', () => {
  expect(rows.length).toBeGreaterThan(80)
})

test.each(rows)('%s gives %s', (expression, value) => {
  const given = evaluate(expression, scope, { budget: new Budget(defaultLimits) })
  expect(given).toEqual(load(value))
})

test.each([...page.matchAll(/, also (`\w+`(?:, `\w+`)*)/g)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []))(
  '%s is a function',
  (name) => {
    expect(() => evaluate(`<% ${name}() %>`, scope, { budget: new Budget(defaultLimits) })).not.toThrow(/Unknown/)
  },
)
