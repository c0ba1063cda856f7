import type { LookupAddress } from 'node:dns'
import { describe, expect, it } from 'vitest'
import { AddressRefused, createAddresses } from './addresses.ts'

const addresses = createAddresses([])

it.each([
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '192.0.0.170',
  '198.18.0.1',
  '203.0.113.9',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:169.254.169.254',
  '::ffff:0:127.0.0.1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:808:808::',
  '3fff::1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  '4000::1',
  'localhost',
  '',
])('does not reach %j', (address) => {
  expect(addresses.mayReach(address)).toBe(false)
})

it.each([
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2001:4860:4860::8888',
  '2a00:1450::1',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
])('reaches %j', (address) => {
  expect(addresses.mayReach(address)).toBe(true)
})

it('reaches what is allowed besides, and no more', () => {
  const some = createAddresses(['10.1.0.0/16', '127.0.0.1', 'fd00::/8', '::1'])
  const reached = ['10.1.255.1', '127.0.0.1', '::ffff:10.1.0.1', 'fd12::1', '::1']
  const refused = ['10.2.0.1', '127.0.0.2', 'fc00::1', '::2', '::ffff:10.2.0.1', '64:ff9b::10.1.0.1']
  expect(reached.filter((address) => !some.mayReach(address))).toEqual([])
  expect(refused.filter((address) => some.mayReach(address))).toEqual([])
})

describe('a URL', () => {
  it.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://0/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://017700000001/',
    'http://0x7f.0.0.1/',
    'http://127.0.0.1./',
    'http://①②⑦.⓪.⓪.①/',
    'http://[::1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://[0:0:0:0:0:ffff:7f00:0001]/',
    'http://[fe80::1]/',
  ])('%s leads to an address that is refused', (url) => {
    expect(() => addresses.checkLiteral(new URL(url).hostname)).toThrow(AddressRefused)
  })

  it('may lead to others', () => {
    for (const url of ['http://8.8.8.8/', 'http://[2606:4700::1]/', 'http://name.test/']) {
      expect(() => addresses.checkLiteral(new URL(url).hostname)).not.toThrow()
    }
  })
})

describe('looking up', () => {
  const known: Record<string, LookupAddress[]> = {
    'inside.test': [{ address: '10.0.0.1', family: 4 }],
    'both.test': [
      { address: 'fd00::1', family: 6 },
      { address: '8.8.8.8', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ],
  }
  const names = createAddresses([], (host, done) => {
    const found = known[host]
    if (found === undefined) done(new Error('ENOTFOUND'), [])
    else done(null, found)
  })
  const lookUp = (host: string, all: boolean): Promise<unknown[]> =>
    new Promise((resolve) => names.lookup(host, { all }, (...answer) => resolve(answer)))

  it('gives only what may be reached', async () => {
    expect(await lookUp('both.test', true)).toEqual([null, [{ address: '8.8.8.8', family: 4 }]])
    expect(await lookUp('both.test', false)).toEqual([null, '8.8.8.8', 4])
    expect(await lookUp('inside.test', true)).toEqual([expect.any(AddressRefused), []])
    expect(await lookUp('unknown.test', true)).toEqual([expect.objectContaining({ message: 'ENOTFOUND' }), []])
  })

  it('refuses a name that somebody else is to connect to, when it is known to lead inside', async () => {
    await expect(names.checkName('inside.test')).rejects.toThrow(AddressRefused)
    await expect(names.checkName('[::1]')).rejects.toThrow(AddressRefused)
    await names.checkName('both.test')
    await names.checkName('unknown.test')
  })
})
