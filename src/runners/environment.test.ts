import { expect, it } from 'vitest'
import { actionEnvironment, childEnvironment, environmentText, inheritedEnvironment } from './environment.ts'

it('leaves out overrides of configuration, and nothing else', () => {
  const inherited = inheritedEnvironment({
    PATH: '/bin',
    SVC_AUTH__SECRET: 'x',
    SVC_API__PORT: '1',
    SVC_SYSTEM_USER__USER: 'x',
    SVC_CONFIG_FILE: '/etc/svc',
    SVC_ACTION_EXECUTION_ID: 'outer',
    MY__VARIABLE: 'y',
    GONE: undefined,
  })
  expect(inherited).toEqual({
    PATH: '/bin',
    SVC_CONFIG_FILE: '/etc/svc',
    SVC_ACTION_EXECUTION_ID: 'outer',
    MY__VARIABLE: 'y',
  })
})

it.each<[string[], string[]]>([
  [[], []],
  [['JAVA_HOME'], ['JAVA_HOME']],
  [['AWS_*'], ['AWS_KEY', 'AWS_REGION']],
  [['*'], ['AWS_KEY', 'AWS_REGION', 'DATABASE_PASSWORD', 'JAVA_HOME']],
])('gives actions what every program needs, and the variables that %j names', (passed, further) => {
  const basic = { PATH: '/bin', HOME: '/', LC_ALL: 'C', TZ: 'UTC', https_proxy: 'http://proxy', SSL_CERT_FILE: '/ca' }
  const others = { AWS_KEY: 'k', AWS_REGION: 'r', DATABASE_PASSWORD: 'secret', JAVA_HOME: '/java' }
  const given = actionEnvironment({ ...basic, ...others }, passed)
  expect(Object.keys(given).sort()).toEqual([...Object.keys(basic), ...further].sort())
})

it.each<[Record<string, string>, string | undefined]>([
  [{}, undefined],
  [{ SHLVL: '0' }, '0'],
  [{ SSH_CLIENT: '192.0.2.1 1 22' }, '1'],
  [{ SSH_CLIENT: '192.0.2.1 1 22', SHLVL: '0' }, '1'],
  [{ SSH2_CLIENT: '192.0.2.1 1 22', SHLVL: 'x' }, '1'],
  [{ SSH_CLIENT: '192.0.2.1 1 22', SHLVL: '3' }, '3'],
])('does not let bash take the server for sshd: %j', (source, level) => {
  expect(inheritedEnvironment(source)['SHLVL']).toBe(level)
})

it.each<[unknown, string]>([
  ['text', 'text'],
  ['', ''],
  [1, '1'],
  [1.5, '1.5'],
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
  [[1, 'a'], '[1,"a"]'],
  [{ a: null }, '{"a":null}'],
])('turns %j into text', (value, text) => {
  expect(environmentText(value)).toBe(text)
})

it('lets later sources win', () => {
  const inherited = { A: '1', B: '1', C: '1' }
  expect(childEnvironment(inherited, { B: 2, C: 2 }, { C: '3' })).toEqual({ A: '1', B: '2', C: '3' })
  expect(childEnvironment(inherited, undefined, { C: '3' })).toEqual({ A: '1', B: '1', C: '3' })
  expect(inherited).toEqual({ A: '1', B: '1', C: '1' })
})
