import { describe, expect, test } from 'vitest'
import { CliFailure } from '../failures.ts'
import { canUseProxies, findProxy } from './proxy.ts'

const proxy = 'http://proxy.test:3128'
const usedFor = (address: string, env: NodeJS.ProcessEnv): string | undefined => findProxy(new URL(address), env)?.url

describe('proxies of the environment', () => {
  test.each([
    ['http://svc.test:9101', { http_proxy: proxy }, proxy],
    ['http://svc.test:9101', { HTTP_PROXY: proxy }, proxy],
    ['http://svc.test:9101', { http_proxy: proxy, HTTP_PROXY: 'http://other.test' }, proxy],
    ['http://svc.test:9101', { http_proxy: '', HTTP_PROXY: proxy }, proxy],
    ['http://svc.test:9101', { http_proxy: 'proxy.test:3128' }, proxy],
    ['http://svc.test:9101', { http_proxy: 'https://proxy.test' }, 'https://proxy.test'],
    ['http://svc.test:9101', { https_proxy: proxy }, undefined],
    ['https://svc.test:9101', { https_proxy: proxy }, proxy],
    ['https://svc.test:9101', { HTTPS_PROXY: proxy }, proxy],
    ['https://svc.test:9101', { http_proxy: proxy }, undefined],
    ['http://127.0.0.1:9101', { http_proxy: proxy }, undefined],
    ['http://[::1]:9101', { http_proxy: proxy }, undefined],
    ['http://localhost:9101', { http_proxy: proxy }, undefined],
    ['http://svc.test:9101', {}, undefined],
  ])('%s with %j: %s', (address, env, expected) => {
    expect(usedFor(address, env)).toBe(expected)
  })

  test.each([
    ['svc.test', true],
    ['SVC.Test', true],
    ['test', true],
    ['.test', true],
    ['*.test', true],
    ['*', true],
    ['other.test, svc.test', true],
    ['other.test svc.test', true],
    ['svc.test:9101', true],
    ['svc.test:9100', false],
    ['vc.test', false],
    ['a.svc.test', false],
    ['', false],
    [',', false],
  ])('no_proxy %j exempts svc.test:9101: %s', (list, isExempt) => {
    for (const name of ['no_proxy', 'NO_PROXY']) {
      expect(usedFor('http://svc.test:9101', { http_proxy: proxy, [name]: list })).toBe(isExempt ? undefined : proxy)
    }
  })

  test.each([
    ['10.1.2.3', '10.1.2.3', true],
    ['10.1.2.3', '10.0.0.0/8', true],
    ['10.1.2.3', '10.1.2.4', false],
    ['10.1.2.3', '2.3', false],
    ['10.1.2.3', '11.0.0.0/8', false],
    ['10.1.2.3', '10.0.0.0/99', false],
    ['[fd00::1]', 'fd00::1', true],
    ['[fd00::1]', '[fd00::1]:9101', true],
    ['[fd00::1]', '[fd00::1]:9102', false],
    ['[fd00::1]', 'fd00::/8', true],
    ['[fd00::1]', '10.0.0.0/8', false],
    ['svc.test', '10.0.0.0/8', false],
  ])('the address %s with no_proxy %s: %s', (host, list, isExempt) => {
    const env = { http_proxy: proxy, no_proxy: list }
    expect(usedFor(`http://${host}:9101`, env)).toBe(isExempt ? undefined : proxy)
  })

  test('credentials are for Node alone', () => {
    const found = findProxy(new URL('http://svc.test'), { HTTP_PROXY: 'http://al%20ice:s%40cret@proxy.test:3128/' })
    expect(found).toEqual({
      url: proxy,
      shownUrl: 'http://al%20ice:********@proxy.test:3128',
      variable: 'HTTP_PROXY',
      agentEnv: { http_proxy: 'http://al%20ice:s%40cret@proxy.test:3128/' },
    })
  })

  test.each(['socks5://hush@proxy.test', 'http://', 'http://u:hush%zz@proxy.test', 'http://u:hush@pro xy'])(
    '%s is refused by the name of its variable',
    (address) => {
      const find = () => findProxy(new URL('https://svc.test'), { https_proxy: address })
      expect(find).toThrow(CliFailure)
      expect(find).toThrow(
        /^https_proxy is not the address of an HTTP proxy, such as .* or add svc\.test to no_proxy\.$/,
      )
    },
  )

  test.each([
    ['22.14.0', false],
    ['22.21.0', true],
    ['23.11.0', false],
    ['24.4.1', false],
    ['24.5.0', true],
    ['25.0.0', true],
  ])('Node %s: %s', (version, expected) => {
    expect(canUseProxies(version)).toBe(expected)
  })
})
