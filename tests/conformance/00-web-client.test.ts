/** How the web client is served (contract 00, 0.2: `/` of the front). What it does: tests/web. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { projectRoot, type TestApp } from '../helpers/server.ts'
import { send, type RawAnswer } from './support.ts'

let server: TestApp
/** Names of its files beside the page. */
const files = readdirSync(join(projectRoot, 'dist', 'web', 'ui'))

beforeAll(async () => {
  server = await createTestApp({ settings: { 'auth.enable': 'True' } })
})

afterAll(async () => {
  await server.stop()
})

const get = (path: string, headers: Record<string, string> = {}): Promise<RawAnswer> =>
  send(server.urls.api, { path, headers })

describe('the page', () => {
  it.each(['/', '/?x=1'])('00.2 %s is the web client, for somebody who has not signed in yet, too', async (path) => {
    const answer = await get(path)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe('text/html; charset=UTF-8')
    expect(answer.text).toContain('<div id="app"></div>')
    // An upgrade brings a new page, which names new files.
    expect(answer.headers['cache-control']).toBe('no-cache')
  })

  it('00.2 the other listeners have none', async () => {
    for (const url of [server.urls.auth, server.urls.stream]) expect((await send(url, { path: '/' })).status).toBe(404)
  })

  it('runs nothing but its own files, asks nobody else, is shown in no frame, and turns no text into code', async () => {
    const { headers, text } = await get('/')
    const policy = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map((directive): [string, string] => [
          directive.slice(0, directive.indexOf(' ')),
          directive.slice(directive.indexOf(' ') + 1),
        ]),
    )
    expect(policy.get('default-src')).toBe("'none'")
    expect(policy.get('script-src')).toBe("'self'")
    expect(policy.get('style-src')).toBe("'self'")
    expect(policy.get('connect-src')).toBe("'self'")
    for (const name of ['base-uri', 'form-action', 'frame-ancestors']) expect(policy.get(name)).toBe("'none'")
    expect(policy.get('require-trusted-types-for')).toBe("'script'")
    expect(policy.get('trusted-types')).toBe("'none'")
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(text).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|https?:\/\//)
  })

  it('names only files that are there, by addresses relative to it', async () => {
    const { text } = await get('/')
    const named = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
    expect(named.length).toBeGreaterThan(2)
    for (const address of named) {
      expect(address).toMatch(/^\.\/ui\//)
      expect((await get(address.slice(1))).status).toBe(200)
    }
  })
})

describe('its files', () => {
  it('are the same compressed and as they are, and kept by browsers for good', async () => {
    const names = files.filter((name) => /\.(js|css|svg)$/.test(name))
    expect(names.length).toBeGreaterThan(5)
    for (const name of names) {
      const plain = await get(`/ui/${name}`, { 'Accept-Encoding': 'identity' })
      const brotli = await get(`/ui/${name}`, { 'Accept-Encoding': 'gzip, deflate, br' })
      const gzip = await get(`/ui/${name}`, { 'Accept-Encoding': 'gzip;q=0.5, br;q=0' })
      expect([name, plain.status, plain.headers['content-encoding']]).toEqual([name, 200, undefined])
      expect([name, brotli.headers['content-encoding']]).toEqual([name, 'br'])
      expect([name, gzip.headers['content-encoding']]).toEqual([name, 'gzip'])
      expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).toBe(true)
      expect(gunzipSync(gzip.bytes).equals(plain.bytes)).toBe(true)
      expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
      expect(plain.headers['vary']).toContain('Accept-Encoding')
    }
  })

  it.each([
    '/ui/',
    '/ui/none.js',
    '/ui/..%2f..%2fmain.js',
    '/ui/%2e%2e/main.js',
    '/ui/..\\main.js',
    '/ui/index.html.br',
    '/ui/main.js',
    `/ui/${'a'.repeat(5000)}.js`,
    '/ui/a%00.js',
  ])('%s is none of them: 404', async (path) => {
    const answer = await get(path)
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text)).toHaveProperty('faultstring')
  })

  it('are read only', async () => {
    for (const method of ['POST', 'PUT', 'DELETE']) {
      expect((await send(server.urls.api, { method, path: '/ui/index.html' })).status).toBe(405)
    }
  })
})
