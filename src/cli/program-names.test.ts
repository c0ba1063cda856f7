import { expect, test } from 'vitest'
import { argumentsFor } from './program-names.ts'

test('the executable is the command that it is called as', () => {
  expect(argumentsFor('/usr/bin/svc', ['run'])).toEqual(['run'])
  expect(argumentsFor('/usr/bin/svc-apply-rbac-definitions', ['-j'])).toEqual(['rbac', 'apply', '-j'])
  expect(argumentsFor('svc-rule-tester', ['-j'])).toEqual(['rule', 'test', '-j'])
  expect(argumentsFor('svc-generate-symmetric-crypto-key', ['--key-path', 'k'])).toEqual([
    'key',
    'generate-crypto-key',
    '--key-path',
    'k',
  ])
  expect(argumentsFor('/x/cli.js', [])).toEqual([])
  expect(argumentsFor('/x/constructor', [])).toEqual([])
})
