import { expect, it } from 'vitest'
import { MAX_HOSTS, parseHosts } from './hosts.ts'

it.each([
  ['a', [['a', undefined, 'a']]],
  [
    ' a , b:2222 ',
    [
      ['a', undefined, 'a'],
      ['b', 2222, 'b'],
    ],
  ],
  [
    '[::1]:2222,[fe80::1%eth0],::1',
    [
      ['::1', 2222, '::1'],
      ['fe80::1%eth0', undefined, 'fe80::1%eth0'],
      ['::1', undefined, '[::1]:22'],
    ],
  ],
  [
    '[fe80::1]:5,fe80::1,fe80::1:22',
    [
      ['fe80::1', 5, 'fe80::1'],
      ['fe80::1', undefined, '[fe80::1]:22'],
      ['fe80::1:22', undefined, 'fe80::1:22'],
    ],
  ],
  [
    'a,A,a:22,a',
    [
      ['a', undefined, 'a'],
      ['a', 22, 'a:22'],
    ],
  ],
  [',,', []],
])('reads %s', (text, expected) => {
  const found = parseHosts(text)
  expect('hosts' in found && found.hosts.map(({ host, port, label }) => [host, port, label])).toEqual(expected)
})

it.each([
  'a b',
  '-oProxyCommand=x',
  'a:0',
  'a:65536',
  'a:x',
  '[a',
  'a]',
  'a/b',
  'user@host',
  'a;b',
  '$(x)',
  '[]:1',
  'a\nb',
])('refuses %j', (text) => expect(parseHosts(text)).toEqual({ problem: expect.stringContaining('"hosts"') }))

it('takes no more than it can hold connections to', () => {
  const names = Array.from({ length: MAX_HOSTS + 1 }, (_, i) => `h${i}`)
  expect(parseHosts(names.slice(1).join())).toMatchObject({ hosts: { length: MAX_HOSTS } })
  expect(parseHosts(names.join())).toEqual({ problem: expect.stringContaining(String(MAX_HOSTS)) })
})
