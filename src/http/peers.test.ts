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

const peers = createPeers(['127.0.0.0/8', '::1/128', '10.0.0.1', '2001:db8::/32'])

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
