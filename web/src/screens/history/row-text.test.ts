import { expect, test } from 'vitest'
import { originOf, parametersText } from './row-text.ts'

test.each<[parameters: Record<string, unknown> | undefined, text: string]>([
  [undefined, ''],
  [{ cmd: 'date' }, 'cmd=date'],
  [{ cmd: 'echo hi', timeout: 60, sudo: false, cwd: null }, 'cmd="echo hi" timeout=60 sudo=false'],
  [{ cmd: 'a\n\tb', empty: '' }, 'cmd="a b" empty=""'],
  [{ env: { A: [1] } }, 'env={"A":[1]}'],
  [{ token: '********' }, 'token=********'],
  [{ text: 'x'.repeat(1000) }, `text=${'x'.repeat(80)}…`],
  [{ html: '<b>' }, 'html=<b>'],
])('the parameters %j are %j', (parameters, text) => {
  expect(parametersText(parameters === undefined ? {} : { parameters })).toBe(text)
})

test('parameters that are too large are told by their size, and many are cut', () => {
  expect(parametersText({ parameters_size: 12_345_678 })).toBe('12 MB of parameters')
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`p${i}`, i]))
  expect(parametersText({ parameters: many })).toHaveLength(241)
})

test.each([
  [{}, {}, undefined],
  [{ rule: { name: 'r', ref: 'p.r' } }, {}, { kind: 'rule', text: 'p.r' }],
  [{ rule: { name: 'r' } }, {}, { kind: 'rule', text: 'r' }],
  [{ parent: 'id' }, {}, { kind: 'parent', text: 'another execution', execution: 'id' }],
  [{ rule: { name: 'r' } }, { 're-run': { ref: 'id' } }, { kind: 'rerun', text: 're-run', execution: 'id' }],
  [
    { rule: { name: 'r' } },
    { policies: { retry: { applied_policy: 'p.again', retry_count: 2 } } },
    { kind: 'retry', text: 'retry 2 (p.again)' },
  ],
] as const)('%j with %j comes from %j', (parts, context, origin) => {
  expect(originOf({ ...parts, context: { user: 'ada', ...context } })).toEqual(origin)
})
