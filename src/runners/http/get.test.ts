/** What the server's own requests refuse; the exchange itself is tested with http-request actions. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startProxy, type TestProxy } from '../../../tests/helpers/proxy.ts'
import { createHttpGet } from './get.ts'

const limits = { maxBytes: 10, signal: new AbortController().signal }

test.each([
  ['http://192.0.2.1/', 'not one of https'],
  ['https://127.0.0.1:1/', 'not on the public internet'],
  ['https://[::1]:1/', 'not on the public internet'],
  ['https://localhost:1/', 'not on the public internet'],
])('%s: %s', async (url, text) => {
  await expect(createHttpGet([], {})(new URL(url), limits)).rejects.toThrow(text)
})

test('networks of the configuration may be reached', async () => {
  await expect(createHttpGet(['127.0.0.1'], {})(new URL('https://127.0.0.1:1/'), limits)).rejects.toThrow(
    'ECONNREFUSED',
  )
})

describe('a proxy of the environment', () => {
  let proxy: TestProxy
  const server = createServer((request, response) => {
    if (request.url === '/moved') response.writeHead(302, { location: 'http://exempt.test:9/' }).end()
    else response.end('index')
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo // it listens on a port
    proxy = await startProxy({
      hosts: { 'index.test': `127.0.0.1:${port}` },
      credential: `Basic ${btoa('me:secret')}`,
    })
  })
  afterAll(async () => {
    server.close()
    await proxy.close()
  })

  const get = async (url: string, env: (address: string) => NodeJS.ProcessEnv): Promise<string> => {
    const options = { ...limits, maxBytes: 100, allowsHttp: true, followsRedirects: true }
    const address = proxy.url.replace('http://', 'http://me:secret@')
    const { statusCode, body } = await createHttpGet([], env(address))(new URL(url), options)
    return `${statusCode} ${body.toString()}`
  }

  test('gets the requests, wherever it is, with its credentials', async () => {
    expect(await get('http://index.test/x', (address) => ({ HTTP_PROXY: address }))).toBe('200 index')
    expect(proxy.requests.at(-1)).toBe('GET http://index.test/x')
    await expect(get('https://index.test/x', (address) => ({ https_proxy: address }))).rejects.toThrow(
      `No response from "https://index.test/x" through the proxy "${proxy.url}"`,
    )
    expect(proxy.requests.at(-1)).toBe('CONNECT index.test:443')
    expect(proxy.credentials.every((credential) => credential === `Basic ${btoa('me:secret')}`)).toBe(true)
  })

  test('does not get those for hosts of no_proxy, also after a redirect', async () => {
    const asked = proxy.requests.length
    const env = (address: string): NodeJS.ProcessEnv => ({ http_proxy: address, no_proxy: 'exempt.test' })
    await expect(get('http://exempt.test:9/', env)).rejects.toThrow(/^No response from "http:\/\/exempt\.test:9\/":/)
    expect(proxy.requests).toHaveLength(asked)
    await expect(get('http://index.test/moved', env)).rejects.toThrow(/^No response from "http:\/\/exempt\.test:9\/":/)
    expect(proxy.requests).toHaveLength(asked + 1)
  })

  test('is not asked for what may not be reached, nor when it is not usable', async () => {
    const asked = proxy.requests.length
    await expect(get('http://10.0.0.1/', (address) => ({ http_proxy: address }))).rejects.toThrow('not on the public')
    await expect(get('http://index.test/', () => ({ http_proxy: 'socks5://hush@proxy.test' }))).rejects.toThrow(
      /^http_proxy of the server is not the address of an HTTP proxy$/,
    )
    expect(proxy.requests).toHaveLength(asked)
  })
})
