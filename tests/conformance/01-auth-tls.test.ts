/** Contract 01, 1.2, 1.3 and 10, 10.2: `use_ssl`, `cert` and `key` of the three listeners, and the cookie over TLS. */
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { makeAuthority, type Authority, type Certificate } from '../helpers/certificates.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import {
  call,
  run,
  runToEnd,
  startServer,
  waitForStatus,
  withServer,
  waitForLog,
  type Answer,
  type TestApp,
} from '../helpers/server.ts'
import { openEvents, outputOf } from '../helpers/sse.ts'
import { fullOnly, rounds, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer } from './support.ts'

const surfaces = ['auth', 'api', 'stream'] as const
type Surface = (typeof surfaces)[number]

const folder = makeFolder()
let authority: Authority
let ca: Buffer
let first: Certificate
let second: Certificate

beforeAll(async () => {
  authority = await makeAuthority(folder.path, 'test')
  ca = readFileSync(authority.caFile)
  first = authority.issue('first', 'IP:127.0.0.1,DNS:localhost')
  second = authority.issue('second', 'IP:127.0.0.1,DNS:localhost')
})

afterAll(() => folder.remove())

function tlsOn(sections: readonly Surface[], { certFile, keyFile }: Certificate = first): Record<string, string> {
  return Object.fromEntries(
    sections.flatMap((section) => [
      [`${section}.use_ssl`, 'True'],
      [`${section}.cert`, certFile],
      [`${section}.key`, keyFile],
    ]),
  )
}

const get = (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
  call(url, 'GET', undefined, headers, ca)

/** Logs the first administrator in. */
function login(server: TestApp, base: string, headers: Record<string, string> = {}): Promise<Answer<TokenAnswer>> {
  const password = firstPassword(server.basePath)
  const credentials = basicAuth('admin', password)
  return call(`${base}/auth/v1/tokens`, 'POST', undefined, { Authorization: credentials, ...headers }, ca)
}

type TokenAnswer = { token: string } & ErrorAnswer

function connectTo(url: string): TLSSocket {
  return connectTls({ port: Number(new URL(url).port), host: '127.0.0.1', ca })
}

/** Common name of the certificate that a new connection meets. */
async function nameMet(url: string): Promise<string> {
  const socket = connectTo(url)
  await once(socket, 'secureConnect')
  const name = String(socket.getPeerCertificate().subject.CN)
  socket.destroy()
  return name
}

describe('01.3 use_ssl', () => {
  it.each(
    variants<[string, readonly Surface[]]>([
      ['all three', surfaces],
      ['auth alone', ['auth']],
      ['api alone', ['api']],
      ['stream alone', ['stream']],
    ]),
  )('01.3 %s', async (_what, secured) => {
    await withApp({ ca, settings: tlsOn(secured) }, async (server) => {
      for (const surface of surfaces) {
        const url = server.urls[surface]
        const isSecured = secured.includes(surface)
        expect(url).toMatch(isSecured ? /^https:/ : /^http:/)
        const { status, headers } = await get(`${url}/v1/executions/000000000000000000000000`)
        expect(status).toBe(404)
        // Browsers apply it to every port of the host.
        expect(headers.has('strict-transport-security')).toBe(secured.length === 3)
        if (!isSecured) continue
        await expect(get(url.replace('https:', 'http:'))).rejects.toThrow('fetch failed')
        await expect(call(url, 'GET')).rejects.toThrow(/certificate/)
      }
    })
  })

  it('01.2 plain HTTP to a TLS listener: the connection fails, each time, with one line in the log for all', async () => {
    await withApp({ ca, settings: { ...tlsOn(['api']), 'log.level': 'DEBUG' } }, async (server) => {
      const plain = server.urls.api.replace('https:', 'http:')
      for (let round = 0; round < rounds({ daily: 2, full: 20 }); round += 1) {
        const answers = await Promise.allSettled(Array.from({ length: 50 }, () => get(`${plain}/v1/executions`)))
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['rejected']))
      }
      expect((await server.call('GET', '/v1/executions')).status).toBe(200)
      await waitForLog(server, 'plain HTTP')
      expect(server.log().match(/event=tls\.handshake_failed/g)).toHaveLength(1)
    })
  })

  fullOnly(it)('01.3 actions are told the https address, and can use it', async () => {
    await withApp({ ca, settings: tlsOn(['api']) }, async (server) => {
      const program = `const url = process.env.SVC_ACTION_API_URL
        fetch(url + '/executions/last').then(({ status }) => console.log(url, status))`
      const { result, web_url } = await runToEnd(server, {
        cmd: `NODE_EXTRA_CA_CERTS='${authority.caFile}' '${process.execPath}' -e "${program}"`,
      })
      expect(result['stdout']).toBe(`${server.urls.api}/v1 200`)
      expect(web_url).toMatch(/^https:/)
    })
  })

  it('01.3 streams: live output, and what was missed', async () => {
    await withApp({ ca, settings: tlsOn(surfaces) }, async (server) => {
      const go = join(folder.path, 'go')
      const { id } = await run(server, { cmd: `echo one; until [ -e ${go} ]; do sleep 0.02; done; echo two` })
      const url = `${server.urls.stream}/v1/executions/${id}/output`
      const general = await openEvents(`${server.urls.stream}/v1/stream`, {}, undefined, ca)
      const live = await openEvents(url, {}, undefined, ca)
      const { id: position = '' } = await live.frame(({ data }) => data.includes('one'))
      writeFileSync(go, '')
      expect(await live.ended).toBe('end')
      expect(outputOf(live.frames)).toBe('one\ntwo\n')
      await general.frame(({ event, data }) => event === 'svc.execution__update' && data.includes('"succeeded"'))
      general.close()
      const rest = await openEvents(url, { 'Last-Event-ID': position }, undefined, ca)
      expect(await rest.ended).toBe('end')
      expect(outputOf(rest.frames)).toBe('two\n')
    })
  })

  fullOnly(it)('01.3 the command line, with the authority and without', async () => {
    await withApp({ ca, settings: { ...tlsOn(surfaces), 'auth.enable': 'True' } }, async (server) => {
      const { token } = (await login(server, server.urls.api)).body
      const env = {
        HOME: folder.path,
        SVC_AUTH_TOKEN: token,
        SVC_API_URL: `${server.urls.api}/v1`,
        SVC_STREAM_URL: `${server.urls.stream}/v1`,
      }
      const trusting = ['--cacert', authority.caFile, 'run', 'core.local', 'cmd=echo over TLS']
      expect(await runCli(trusting, env)).toMatchObject({ code: 0, stdout: expect.stringContaining('over TLS') })
      const followed = await runCli(['--cacert', authority.caFile, 'execution', 'tail', 'last'], env)
      expect(followed).toMatchObject({ code: 0, stdout: expect.stringContaining('over TLS') })
      const { code, stdout, stderr } = await runCli(['--cacert', 'true', 'run', 'core.local', 'cmd=true'], env)
      expect(code).toBe(1)
      expect(stdout + stderr).toMatch(/certificate/i)
    })
  })
})

describe('01.3 files that cannot be used stop the start, naming the option', () => {
  it.each<[string, () => Record<string, string>, RegExp]>([
    ['no certificate named', () => ({ 'api.use_ssl': 'True', 'api.key': first.keyFile }), / {2}api\.cert: /],
    ['no key named', () => ({ 'stream.use_ssl': 'True', 'stream.cert': first.certFile }), / {2}stream\.key: /],
    ['no such file', () => ({ ...tlsOn(['auth']), 'auth.cert': '/nowhere/x.pem' }), / {2}auth\.cert: .*does not exist/],
    ['a folder', () => ({ ...tlsOn(['auth']), 'auth.key': folder.path }), / {2}auth\.key: .*is not a file/],
    ['no PEM', () => ({ ...tlsOn(['api']), 'api.cert': import.meta.filename }), / {2}api\.cert: .*no certificate/],
    ["another's key", () => ({ ...tlsOn(['api']), 'api.key': second.keyFile }), / {2}api\.key: .*not the key of/],
  ])('01.3 %s', async (_what, settings, problem) => {
    await expect(createTestApp({ settings: settings() })).rejects.toThrow(problem)
  })

  it('01.3 several at once, with exit code 78 and no stack', async () => {
    const started = startServer({
      settings: { ...tlsOn(surfaces), 'auth.key': '/nowhere/x', 'stream.cert': '/nowhere/y' },
    })
    await expect(started).rejects.toThrow(/ {2}auth\.key: .*\n {2}stream\.cert: /)
    await expect(started).rejects.toThrow('before it was ready (78)')
    await expect(started).rejects.not.toThrow(/\bat \S+:\d+/)
  })

  it('01.3 nothing is touched by such a start', async () => {
    const data = makeFolder()
    await expect(
      createTestApp({ basePath: data.path, settings: { ...tlsOn(['auth']), 'auth.key': '/nowhere/x' } }),
    ).rejects.toThrow('auth.key')
    expect(existsSync(join(data.path, 'svc.db'))).toBe(false)
    data.remove()
  })

  it('01.3 a key that others can read is a warning', async () => {
    const open = join(folder.path, 'open.key')
    writeFileSync(open, readFileSync(first.keyFile), { mode: 0o644 })
    await withApp({ ca, settings: { ...tlsOn(['api']), 'api.key': open } }, async (server) => {
      await waitForLog(server, /WARNING api\.key: .*accessible to all accounts/)
      expect((await server.call('GET', '/v1/executions')).status).toBe(200)
    })
  })
})

describe('01.3 the certificate is read again on SIGHUP', () => {
  /** Files that can be replaced while a server uses them. */
  function replaceable(): Certificate & { put(certificate: Certificate): void } {
    const files = { certFile: join(folder.path, 'current.pem'), keyFile: join(folder.path, 'current.key') }
    const put = (from: Certificate): void => {
      copyFileSync(from.certFile, files.certFile)
      copyFileSync(from.keyFile, files.keyFile)
    }
    put(first)
    return { ...files, put }
  }

  it('01.3 new connections meet the new one, old connections and streams go on', async () => {
    const files = replaceable()
    await withServer({ ca, settings: tlsOn(surfaces, files) }, async (server) => {
      const { id } = await run(server, { cmd: 'echo up; sleep 1000', timeout: 0 })
      const stream = await openEvents(`${server.urls.stream}/v1/executions/${id}/output`, {}, undefined, ca)
      await stream.frame(({ data }) => data.includes('up'))
      const old = connectTo(server.urls.api)
      let received = ''
      old.on('data', (part: Buffer) => (received += part.toString()))
      const request = 'GET /v1/executions?limit=1 HTTP/1.1\r\nHost: localhost\r\n\r\n'
      old.write(request)
      await waitFor('the first answer', () => received.includes(id))

      files.put(second)
      process.kill(server.pid, 'SIGHUP')
      for (const surface of surfaces) {
        await waitFor(
          `the new certificate of ${surface}`,
          async () => (await nameMet(server.urls[surface])) === 'second',
        )
      }
      received = ''
      old.write(request)
      await waitFor('the second answer', () => received.includes(id))
      old.destroy()
      await server.call('DELETE', `/v1/executions/${id}`)
      expect(await stream.ended).toBe('end')
      await waitForStatus(server, id, ['canceled'])
    })
  })

  it('01.3 broken files change nothing, and an error names them', async () => {
    const files = replaceable()
    await withApp({ ca, settings: tlsOn(['api'], files) }, async (server) => {
      copyFileSync(second.keyFile, files.keyFile)
      await server.reload()
      expect(server.log()).toMatch(/ERROR api\.key: .*not the key of.*keeps/)
      expect(await nameMet(server.urls.api)).toBe('first')
      writeFileSync(files.certFile, '')
      await server.reload()
      expect(server.log()).toMatch(/ERROR api\.cert: .*holds no certificate.*keeps/)
      expect(await nameMet(server.urls.api)).toBe('first')
      files.put(second)
      await server.reload()
      expect(await nameMet(server.urls.api)).toBe('second')
    })
  })

  fullOnly(it)('01.3 reloads in quick succession end with what the files hold last', async () => {
    const files = replaceable()
    await withApp({ ca, settings: tlsOn(['api'], files) }, async (server) => {
      for (let round = 0; round < 25; round += 1) {
        files.put(round % 2 === 0 ? second : first)
        void server.reload()
      }
      await waitFor('the last certificate', async () => (await nameMet(server.urls.api)) === 'second')
      expect((await server.call('GET', '/v1/executions')).status).toBe(200)
    })
  })
})

describe('01.3 with auth.use_ssl, the auth surface of the API listener', () => {
  const settings = (more: Record<string, string> = {}): Record<string, string> => ({
    ...tlsOn(['auth']),
    'auth.enable': 'True',
    ...more,
  })

  it('01.3 refuses plain HTTP, before it looks at the credentials', async () => {
    await withApp({ ca, settings: settings() }, async (server) => {
      expect((await login(server, server.urls.auth)).status).toBe(201)
      const { token } = (await login(server, server.urls.auth)).body
      for (const path of ['/auth/v1/tokens', '/auth/tokens', '/%61uth/v1/tokens', '/auth/v1/tokens/validate']) {
        for (const headers of [{}, { 'X-Auth-Token': token }, { Authorization: 'Basic bm9ib2R5OndvcmQ=' }]) {
          const { status, body } = await call<ErrorAnswer>(`${server.urls.api}${path}`, 'POST', {}, headers)
          expect({ path, status, code: body.code }).toEqual({ path, status: 403, code: 'TLS_REQUIRED' })
        }
      }
      const elsewhere = await get(`${server.urls.api}/v1/executions`, { 'X-Auth-Token': token })
      expect(elsewhere.status).toBe(200)
    })
  })

  it('01.3 believes a trusted proxy that its client came over TLS', async () => {
    await withApp({ ca, settings: settings() }, async (server) => {
      expect((await login(server, server.urls.api, { 'X-Forwarded-Proto': 'https' })).status).toBe(201)
      expect((await login(server, server.urls.api, { 'X-Forwarded-Proto': 'http' })).status).toBe(403)
      expect((await login(server, server.urls.api, { 'X-Forwarded-Proto': 'https, http' })).status).toBe(403)
    })
  })

  it('01.3 believes nobody else', async () => {
    await withApp({ ca, settings: settings({ 'auth.trusted_proxies': '192.0.2.0/24' }) }, async (server) => {
      const { status, body } = await login(server, server.urls.api, { 'X-Forwarded-Proto': 'https' })
      expect({ status, code: body.code }).toEqual({ status: 403, code: 'TLS_REQUIRED' })
    })
  })

  it('01.3 answers over TLS', async () => {
    await withApp({ ca, settings: settings(tlsOn(['api'])) }, async (server) => {
      expect((await login(server, server.urls.api)).status).toBe(201)
    })
  })
})

describe('10.2 auth_cookie_secure and auth_cookie_same_site', () => {
  /** The cookie of a request over plain HTTP from this machine, through a proxy from elsewhere, and over TLS. */
  async function cookies(more: Record<string, string>): Promise<string[]> {
    const found: string[] = []
    await withApp({ ca, settings: { ...tlsOn(['stream']), 'auth.enable': 'True', ...more } }, async (server) => {
      const { token } = (await login(server, server.urls.api)).body
      for (const [url, headers] of [
        [`${server.urls.api}/v1/executions`, {}],
        [`${server.urls.api}/v1/executions`, { 'X-Forwarded-For': '198.51.100.7' }],
        [`${server.urls.api}/v1/executions`, { 'X-Forwarded-Proto': 'https', 'X-Forwarded-For': '198.51.100.7' }],
      ] as const) {
        const answer = await get(url, { ...headers, 'X-Auth-Token': token })
        found.push((answer.headers.get('set-cookie') ?? '').replace(/^.*Path=\//, ''))
      }
      const secure = await openEvents(`${server.urls.stream}/v1/stream`, { 'X-Auth-Token': token }, undefined, ca)
      found.push((secure.headers['set-cookie']?.[0] ?? '').replace(/^.*Path=\//, ''))
      secure.close()
    })
    return found
  }

  it.each(
    variants<[string, Record<string, string>, string[]]>([
      [
        'by default',
        {},
        ['; SameSite=Lax', '; SameSite=Lax; Secure', '; SameSite=Lax; Secure', '; SameSite=Lax; Secure'],
      ],
      [
        'strict, not secure',
        { 'api.auth_cookie_secure': 'False', 'api.auth_cookie_same_site': 'strict' },
        ['; SameSite=Strict', '; SameSite=Strict', '; SameSite=Strict', '; SameSite=Strict'],
      ],
      ['none', { 'api.auth_cookie_same_site': 'none' }, Array.from({ length: 4 }, () => '; SameSite=None; Secure')],
      ['unset', { 'api.auth_cookie_same_site': 'unset' }, ['', '; Secure', '; Secure', '; Secure']],
    ]),
  )('10.2 %s', async (_what, settings, expected) => {
    expect(await cookies(settings)).toEqual(expected)
  })

  it('10.2 none without secure stops the start', async () => {
    await expect(
      createTestApp({ settings: { 'api.auth_cookie_same_site': 'none', 'api.auth_cookie_secure': 'False' } }),
    ).rejects.toThrow(/^ {2}api\.auth_cookie_same_site: /m)
  })
})
