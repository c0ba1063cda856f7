/** `enable` and `disable` change one attribute, whatever others change at the same time (contract 09, 9.3). */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import type { TestApp } from '../helpers/server.ts'
import type { ErrorAnswer } from './support.ts'

interface Enabled extends Record<string, unknown> {
  ref: string
  enabled: boolean
  description: string
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp({})
  const rule = {
    name: 'both',
    enabled: true,
    trigger: { type: 'core.svc.generic.inquiry' },
    action: { ref: 'core.noop' },
  }
  for (const [path, body] of [
    ['/v1/rules', rule],
    ['/v1/actions', { name: 'both', runner_type: 'noop' }],
  ] as const) {
    const { status, text } = await server.call('POST', path, body)
    if (status !== 201) throw new Error(text)
  }
})
afterAll(() => server.stop())

/** Stands between the client and the server. @param afterRead called when a record was read and before the client has it */
async function between(
  afterRead: (reads: number) => Promise<void>,
): Promise<{ url: string; close: () => void; headers: IncomingHttpHeaders[] }> {
  let reads = 0
  const headers: IncomingHttpHeaders[] = []
  const proxy = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      if (request.method === 'PUT') headers.push(request.headers)
      const sent = Object.fromEntries(
        ['content-type', 'if-match'].flatMap((name) => {
          const value = request.headers[name]
          return typeof value === 'string' ? [[name, value]] : []
        }),
      )
      const answer = await fetch(`${server.urls.api}${request.url ?? ''}`, {
        method: request.method ?? 'GET',
        headers: sent,
        ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
      })
      const text = await answer.text()
      if (request.method === 'GET') await afterRead((reads += 1))
      const tag = answer.headers.get('etag')
      response.writeHead(answer.status, {
        'Content-Type': 'application/json',
        ...(tag === null ? {} : { ETag: tag }),
      })
      response.end(text)
    })()
  })
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1`,
    close: () => void proxy.close(),
    headers,
  }
}

test.each([
  ['rule', '/v1/rules/default.both'],
  ['action', '/v1/actions/default.both'],
])('svc %s disable keeps what others change between its reading and its writing', async (noun, path) => {
  const change = async (description: string): Promise<void> => {
    const { body } = await server.call<Enabled>('GET', path)
    const { status, text } = await server.call('PUT', path, { ...body, description })
    if (status !== 200) throw new Error(text)
  }
  const place = await between((reads) => (reads <= 3 ? change(`changed ${reads}`) : Promise.resolve()))
  try {
    const { code, stdout } = await runCli([noun, 'disable', 'default.both', '-j'], { SVC_API_URL: place.url })
    expect([code, stdout]).toEqual([0, expect.stringContaining('changed 3')])
    expect((await server.call<Enabled>('GET', path)).body).toMatchObject({ enabled: false, description: 'changed 3' })
    expect(place.headers.map((headers) => typeof headers['if-match'])).toEqual(['string', 'string', 'string', 'string'])
  } finally {
    place.close()
  }
})

test('changes that never stop end the command with what to do, and nothing is lost', async () => {
  const path = '/v1/actions/default.both'
  let count = 0
  const place = await between(async () => {
    const { body } = await server.call<Enabled>('GET', path)
    await server.call('PUT', path, { ...body, description: `again ${(count += 1)}` })
  })
  try {
    const { code, stdout } = await runCli(['action', 'enable', 'default.both'], { SVC_API_URL: place.url })
    expect([code, stdout]).toEqual([1, expect.stringContaining('read it again')])
    expect((await server.call<Enabled>('GET', path)).body).toMatchObject({
      enabled: false,
      description: `again ${count}`,
    })
  } finally {
    place.close()
  }
})

test('PUT /actions with If-Match fails with 412 after a change, and without it replaces', async () => {
  const path = '/v1/actions/default.both'
  const { body, headers } = await server.call<Enabled>('GET', path)
  const tag = headers.get('etag') ?? ''
  expect(tag).toMatch(/^"[\w-]+"$/)
  const changed = await server.call<Enabled>('PUT', path, { ...body, description: 'first' }, { 'If-Match': tag })
  expect([changed.status, changed.headers.get('etag')]).toEqual([200, expect.not.stringContaining(tag)])
  const { status, body: error } = await server.call<ErrorAnswer>(
    'PUT',
    path,
    { ...body, description: 'second' },
    { 'If-Match': tag },
  )
  expect([status, error.code, error.faultstring]).toEqual([
    412,
    'CONTENT_CHANGED',
    expect.stringContaining('default.both'),
  ])
  expect((await server.call('PUT', path, { ...body, description: 'third' })).status).toBe(200)
  const any = await server.call('PUT', path, { ...body, description: 'fourth' }, { 'If-Match': '*' })
  expect(any.status).toBe(200)
})
