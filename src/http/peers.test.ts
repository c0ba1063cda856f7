import { Socket } from 'node:net'
import { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createPeers } from './peers.ts'

function request(remoteAddress: string, headers: Record<string, string>): IncomingMessage {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  const message = new IncomingMessage(socket)
  Object.assign(message.headers, headers)
  return message
}

const peers = createPeers([
  '127.0.0.0/8',
  '::1/128',
  '10.0.0.1',
  '2001:db8::/32',
  '::ffff:192.168.7.0/120',
  '::ffff:172.16.0.1',
])

test.for([
  ['192.0.2.7', '', '192.0.2.7'],
  ['192.0.2.7', '198.51.100.1', '192.0.2.7'],
  ['127.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['127.0.0.1', 'spoofed, 198.51.100.1', '198.51.100.1'],
  ['127.0.0.1', '203.0.113.9, 198.51.100.1', '198.51.100.1'],
  ['127.0.0.1', '198.51.100.1, 10.0.0.1', '198.51.100.1'],
  ['127.0.0.1', '198.51.100.1, 110.0.0.10', '110.0.0.10'],
  ['127.0.0.1', 'nonsense', '127.0.0.1'],
  ['127.0.0.1', '', '127.0.0.1'],
  ['::ffff:127.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['::ffff:192.0.2.7', '198.51.100.1', '192.0.2.7'],
  ['::1', '2001:db8::5, ::ffff:10.0.0.1', '2001:db8::5'],
  ['10.0.0.10', '198.51.100.1', '10.0.0.10'],
  ['110.0.0.1', '198.51.100.1', '110.0.0.1'],
  ['::ffff:110.0.0.1', '198.51.100.1', '110.0.0.1'],
  ['10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['::ffff:7f00:1', '198.51.100.1', '198.51.100.1'],
  ['192.168.7.9', '198.51.100.1', '198.51.100.1'],
  ['192.168.8.9', '198.51.100.1', '192.168.8.9'],
  ['172.16.0.1', '198.51.100.1', '198.51.100.1'],
] as const)('from %s with X-Forwarded-For "%s": %s', ([remote, forwarded, expected]) => {
  expect(peers.addressOf(request(remote, { 'x-forwarded-for': forwarded }))).toBe(expected)
})

test.for([
  ['127.0.0.1', 'https', true],
  ['127.0.0.1', 'http', false],
  ['127.0.0.1', 'http, HTTPS', true],
  ['192.0.2.7', 'https', false],
] as const)('from %s with X-Forwarded-Proto "%s": secure %s', ([remote, scheme, expected]) => {
  expect(peers.isSecure(request(remote, { 'x-forwarded-proto': scheme }))).toBe(expected)
})

test.for([
  ['127.0.0.1', true],
  ['127.0.0.2', true],
  ['::ffff:127.0.0.1', true],
  ['::1', true],
  ['10.0.0.1', true],
  ['110.0.0.1', false],
  ['10.0.0.10', false],
  ['2001:db9::1', false],
  ['', false],
] as const)('%s is a trusted peer: %s, whatever it says of others', ([remote, expected]) => {
  for (const forwarded of ['', '127.0.0.1', '198.51.100.1']) {
    expect(peers.isTrustedPeer(request(remote, { 'x-forwarded-for': forwarded }))).toBe(expected)
  }
})

test.for<[string, Record<string, string>, string]>([
  ['127.0.0.1', { 'remote-addr': '198.51.100.1' }, '198.51.100.1'],
  ['127.0.0.1', { 'x-remote-addr': '198.51.100.1' }, '198.51.100.1'],
  ['127.0.0.1', { 'remote-addr': '198.51.100.1', 'x-remote-addr': '198.51.100.2' }, '198.51.100.1'],
  ['127.0.0.1', { 'remote-addr': '198.51.100.1', 'x-forwarded-for': '198.51.100.3' }, '198.51.100.3'],
  ['127.0.0.1', { 'remote-addr': '::ffff:198.51.100.1' }, '198.51.100.1'],
  ['127.0.0.1', { 'remote-addr': 'host.example' }, '127.0.0.1'],
  ['127.0.0.1', { 'remote-addr': '198.51.100.1, 198.51.100.2' }, '127.0.0.1'],
  ['192.0.2.7', { 'remote-addr': '198.51.100.1' }, '192.0.2.7'],
])('in proxy mode, from %s with %j: %s', ([remote, headers, expected]) => {
  const believing = createPeers(['127.0.0.0/8'], { believeRemoteAddr: true })
  expect(believing.addressOf(request(remote, headers))).toBe(expected)
  const usual = createPeers(['127.0.0.0/8']).addressOf(request(remote, { ...headers, 'x-forwarded-for': '' }))
  expect(usual).toBe(remote)
})
