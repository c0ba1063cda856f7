/** Contract 00: what every endpoint has in common. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runToEnd, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import {
  countExecutions,
  create,
  idPattern,
  impossibleIds,
  send,
  timestampPattern,
  unknownId,
  type ErrorAnswer,
} from './support.ts'

let server: TestApp
let first: ExecutionAnswer

beforeAll(async () => {
  const settings = { 'api.allow_origin': 'http://first.example, http://page.example' }
  server = await createTestApp({ settings })
  first = await runToEnd(server, { cmd: 'echo first' })
  await runToEnd(server, { cmd: 'echo second' }, { context: { parent: { execution_id: first.id } } })
  await runToEnd(server, { cmd: 'echo third' })
})
afterAll(async () => {
  await server.stop()
})

const get = <T = ErrorAnswer>(path: string, headers?: Record<string, string>) =>
  server.call<T>('GET', path, undefined, headers)
const post = (body: string | undefined, headers: Record<string, string> = {}) =>
  send(server.urls.api, { method: 'POST', path: '/v1/executions', headers, ...(body === undefined ? {} : { body }) })
const fault = (answer: { text: string }): string => (JSON.parse(answer.text) as ErrorAnswer).faultstring

describe('00.2 listeners and path shapes', () => {
  it.each(['/executions', '/v1/executions', '/api/v1/executions', '/api/executions'])(
    '00.2 API listener answers %s',
    async (path) => {
      const { status, body } = await get<ExecutionAnswer[]>(path)
      expect(status).toBe(200)
      expect(body.map(({ id }) => id)).toContain(first.id)
    },
  )

  it.each([
    ['stream', '/stream'],
    ['stream', '/v1/stream'],
    ['stream', '/stream/v1/stream'],
    ['api', '/stream/v1/stream'],
    ['api', '/api/v1/stream'],
    ['api', '/api/stream'],
  ] as const)('00.2 general stream: %s listener answers %s', async (surface, path) => {
    const client = await openEvents(`${server.urls[surface]}${path}`)
    expect(client.status).toBe(200)
    expect(client.headers['content-type']).toBe('text/event-stream; charset=UTF-8')
    client.close()
    await client.ended
  })

  it.each(['/executions', '/v1/executions', '/stream/v1/executions'])(
    '00.2 output stream: stream listener answers %s/{id}/output',
    async (path) => {
      const client = await openEvents(`${server.urls.stream}${path}/${first.id}/output`)
      expect(client.status).toBe(200)
      expect(await client.ended).toBe('end')
    },
  )

  it.each(['/v1/nothing', '/nothing', '/auth/v1/nothing', '/auth/nothing'])(
    '00.2 auth listener: unknown path %s → 404',
    async (path) => {
      const answer = await send(server.urls.auth, { path })
      expect(answer.status).toBe(404)
      expect(fault(answer)).toBe('The resource could not be found.')
    },
  )

  it.each(['/v1/', '/v1', '/api/v1/', '/api'])('00.2 root index %s', async (path) => {
    const { status, body } = await get<Record<string, string>>(path)
    expect(status).toBe(200)
    expect(Object.keys(body).toSorted()).toEqual(['docs_url', 'version'])
    expect(body['version']).toMatch(/^\d+\.\d+\.\d+/)
    expect(URL.canParse(body['docs_url'] ?? '')).toBe(true)
  })

  it('00.2 execution aliases: every path answers under /actionexecutions too', async () => {
    for (const rest of ['', '/last', `/${first.id}`, `/${first.id}/output`, `/${first.id}/result`]) {
      const alias = await get(`/v1/actionexecutions${rest}`)
      expect([rest, alias.status]).toEqual([rest, 200])
      expect(alias.text).toBe((await get(`/v1/executions${rest}`)).text)
    }
    for (const rest of [`/${first.id}/attribute/status`, `/${first.id}/children`, '/views/filters']) {
      expect((await get(`/v1/actionexecutions${rest}`)).text).toBe((await get(`/v1/executions${rest}`)).text)
    }
    const created = await server.call('POST', '/v1/actionexecutions', { action: 'core.noop' })
    expect(created.status).toBe(201)
    expect((await server.call('POST', `/v1/actionexecutions/${first.id}/re_run`, {})).status).toBe(201)
    expect((await server.call('DELETE', `/v1/actionexecutions/${first.id}`)).status).toBe(200)
    expect((await server.call('PUT', `/v1/actionexecutions/${first.id}`, { status: 'failed' })).status).toBe(400)
  })

  it('00.2 trailing slash: one is removed, two are not', async () => {
    expect((await get('/v1/executions/?limit=1')).status).toBe(200)
    expect((await get(`/v1/executions/${first.id}/`)).status).toBe(200)
    expect((await get('/v1/executions//')).status).toBe(404)
  })

  it('00.2 decoding: the path is percent-decoded before matching', async () => {
    const answer = await send(server.urls.api, { path: '/v1/actions/%63ore%2Elocal' })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({ ref: 'core.local' })
  })

  it.each(['/v1/actions/%ff', '/v1/executions/%', '/v1/executions/%zz', '/%c3%28', '/v1/actions/core%2'])(
    '00.2 undecodable path %s → 400',
    async (path) => {
      const answer = await send(server.urls.api, { path })
      expect(answer.status).toBe(400)
      expect(fault(answer)).toContain(`Failed to parse request path "${path}"`)
    },
  )

  it.each(['/v1/actions/..%2fcore.local', '/v1/actions/core%2flocal', '/v1/executions/..%2f..%2fetc%2fpasswd'])(
    '00.2 slash inside variable: %s is one segment that names nothing → 404',
    async (path) => {
      const answer = await send(server.urls.api, { path })
      expect(answer.status).toBe(404)
      expect(fault(answer)).toContain(decodeURIComponent(path.split('/').at(-1) ?? ''))
    },
  )

  it('00.2 reserved first words: views is not an execution', async () => {
    expect((await get('/v1/executions/views')).status).toBe(404)
    expect(Object.keys((await get<object>('/v1/executions/views/filters')).body)).toContain('status')
    expect((await get('/v1/actions/views/overview')).body).toBeInstanceOf(Array)
  })

  it('00.2 unknown route → 404 JSON', async () => {
    const { status, headers, body } = await get('/v1/unheard_of')
    expect(status).toBe(404)
    expect(headers.get('content-type')).toBe('application/json; charset=UTF-8')
    expect(body.faultstring).toBe('The resource could not be found.')
  })

  it('00.2 known path, other method → 405 JSON naming the methods that work', async () => {
    const { status, body } = await server.call<ErrorAnswer>('PUT', '/v1/executions', {})
    expect(status).toBe(405)
    expect(body.faultstring).toContain('POST')
    expect(body.faultstring).toContain('GET')
  })
})

describe('00.3 request bodies and content types', () => {
  const body = JSON.stringify({ action: 'core.noop' })

  it.each([
    ['none given', {}],
    ['application/json', { 'Content-Type': 'application/json' }],
    ['application/json with a charset', { 'Content-Type': 'application/json; charset=utf-8' }],
    ['Application/JSON', { 'Content-Type': 'Application/JSON' }],
    ['text/plain is taken as JSON', { 'Content-Type': 'text/plain' }],
  ] as [string, Record<string, string>][])('00.3 content type: %s', async (_, headers) => {
    expect((await post(body, headers)).status).toBe(201)
  })

  it.each([{}, { 'Content-Type': 'application/json' }] as Record<string, string>[])(
    '00.3 empty body is {}: the required fields are checked (%j)',
    async (headers) => {
      const answer = await post(undefined, headers)
      expect(answer.status).toBe(400)
      expect(fault(answer)).toContain("'action' is a required property")
    },
  )

  it('00.3 form: values are lists of strings', async () => {
    const answer = await post('action=core.noop', { 'Content-Type': 'application/x-www-form-urlencoded' })
    expect(answer.status).toBe(400)
    expect(fault(answer)).toMatch(/action.*\['core\.noop'\] is not of type 'string'/)
  })

  it('00.3 multipart: fields are lists of strings as well, files are ignored', async () => {
    const part = (head: string, text: string): string =>
      `--x\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`
    const form = `${part('name="action"', 'core.noop')}${part('name="f"; filename="g"', 'text')}--x--\r\n`
    const answer = await post(form, { 'Content-Type': 'multipart/form-data; boundary=x' })
    expect(answer.status).toBe(400)
    expect(fault(answer)).toMatch(/action.*\['core\.noop'\] is not of type 'string'/)
  })

  it.each(['application/xml', 'image/png', 'nonsense', 'multipart/mixed; boundary=x'])(
    '00.3 anything else: %s → 400 naming the type',
    async (type) => {
      const answer = await post('<x/>', { 'Content-Type': type })
      expect(answer.status).toBe(400)
      expect(fault(answer)).toContain('Failed to parse request body: Unsupported Content-Type:')
      expect(fault(answer)).toContain(type.split(';')[0] ?? '')
    },
  )

  it.each(['{', '{"action": }', 'action', '{"action": "core.noop"', '{}{}', "{'a': 1}", '\u0000'])(
    '00.3 malformed JSON %j → 400',
    async (text) => {
      const answer = await post(text, { 'Content-Type': 'application/json' })
      expect(answer.status).toBe(400)
      expect(fault(answer)).toMatch(/^Failed to parse request body: ./)
    },
  )

  it.each([
    ['[]', 'array'],
    ['"x"', 'string'],
    ['1.5', 'number'],
    ['1', 'integer'],
    ['true', 'boolean'],
    ['null', 'null'],
  ])('00.3 not an object: %s → 400 naming what was got', async (text, kind) => {
    const answer = await post(text, { 'Content-Type': 'application/json' })
    expect(answer.status).toBe(400)
    expect(fault(answer)).toBe(`Input body needs to be an object, got: ${kind}`)
  })

  it('00.3 size: 16 MiB are accepted, more is refused with 413', async () => {
    const mebibytes16 = 16 * 1024 * 1024
    const shell = JSON.stringify({ action: 'core.noop', padding: '' })
    const padded = JSON.stringify({ action: 'core.noop', padding: 'x'.repeat(mebibytes16 - shell.length) })
    expect(Buffer.byteLength(padded)).toBe(mebibytes16)
    expect((await post(padded, { 'Content-Type': 'application/json' })).status).toBe(201)
    const before = countExecutions(server)
    const answer = await post(`${padded} `, { 'Content-Type': 'application/json' })
    expect(answer.status).toBe(413)
    expect(fault(answer)).toContain(String(mebibytes16))
    expect(countExecutions(server)).toBe(before)
  })

  it('00.3 unknown properties: ignored on POST executions and re_run', async () => {
    const created = await create(server, { action: 'core.noop', unheard_of: 1, id: 'x', result: 5 })
    expect(created.status).toBe(201)
    expect(created.body).not.toHaveProperty('unheard_of')
    expect(created.body).not.toHaveProperty('result')
    expect((await server.call('POST', `/v1/executions/${first.id}/re_run`, { unheard_of: 1 })).status).toBe(201)
  })

  it.each([
    ['PUT execution', 'PUT', '/v1/executions/last', { status: 'failed', unheard_of: 1 }],
    ['notify', 'POST', '/v1/executions', { action: 'core.noop', notify: { unheard_of: {} } }],
    [
      'a section of notify',
      'POST',
      '/v1/executions',
      { action: 'core.noop', notify: { 'on-complete': { unheard_of: 1 } } },
    ],
  ] as const)('00.3 unknown properties: refused in %s', async (_, method, path, sent) => {
    const answer = await server.call<ErrorAnswer>(method, path, sent)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toContain("Additional properties are not allowed ('unheard_of' was unexpected)")
  })
})

describe('00.4 responses', () => {
  it('00.4 success codes', async () => {
    expect((await get('/v1/executions')).status).toBe(200)
    const created = await create(server, { action: 'core.noop' })
    expect(created.status).toBe(201)
    expect((await server.call('POST', `/v1/executions/${first.id}/re_run`, {})).status).toBe(201)
    const canceled = await server.call('DELETE', `/v1/executions/${first.id}`)
    expect(canceled.status).toBe(200)
    expect(canceled.text).not.toBe('')
  })

  it('00.4 content types: JSON, plain text, event stream', async () => {
    expect((await get('/v1/executions')).headers.get('content-type')).toBe('application/json; charset=UTF-8')
    expect((await get(`/v1/executions/${first.id}/output`)).headers.get('content-type')).toBe(
      'text/plain; charset=UTF-8',
    )
  })

  it.each(['/v1/executions', '/v1/actions', '/v1/actions/views/overview', '/v1/runnertypes'])(
    '00.4 lists: %s is a bare array',
    async (path) => {
      expect((await get(path)).body).toBeInstanceOf(Array)
    },
  )

  it('00.4 request id: echoed', async () => {
    expect((await get('/v1/executions', { 'X-Request-ID': 'abc-1' })).headers.get('x-request-id')).toBe('abc-1')
  })

  it.each([
    ['GET', '/v1/executions'],
    ['GET', '/v1/executions/nothing'],
    ['GET', '/unheard_of'],
    ['OPTIONS', '/v1/executions'],
    ['POST', '/v1/executions'],
  ])('00.4 request id: a UUID4 when absent, on every answer (%s %s)', async (method, path) => {
    const id = (await server.call(method, path)).headers.get('x-request-id')
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('00.4 attributes: actions keep empty objects, lists and false', async () => {
    const { body } = await get<Record<string, unknown>>('/v1/actions/core.noop')
    expect(body).toMatchObject({ tags: [], notify: {}, parameters: {}, entry_point: '', output_schema: {} })
  })
})

describe('00.5 and 00.6 errors', () => {
  it('00.5 body: faultstring, nothing of the server in it', async () => {
    const { body, text } = await get('/v1/executions/nothing')
    expect(typeof body.faultstring).toBe('string')
    expect(text).not.toMatch(/\bat .*:\d+|\/src\/|node_modules|select /)
  })

  it.each([
    ['/v1/executions/abc', 'Unable to identify resource with id "abc".'],
    ['/v1/actions/abc', 'Resource with a reference or id "abc" not found'],
    ['/v1/runnertypes/abc', 'Resource with a name or id "abc" not found'],
  ])('00.5 404 texts: %s', async (path, text) => {
    const { status, body } = await get(path)
    expect(status).toBe(404)
    expect(body.faultstring).toBe(text)
  })

  it.each([
    ['missing property', {}, "'action' is a required property"],
    ['wrong type', { action: 5 }, "5 is not of type 'string'"],
    ['wrong type, text', { action: 'core.noop', context: 'x' }, "'x' is not of type 'object'"],
    ['wrong type where null is allowed', { action: 'core.noop', user: 5 }, "5 is not of type 'string', 'null'"],
    ['pattern', { action: 'core.noop', parameters: { 'a-b': 1 } }, "'a-b' does not match '^\\w+$'"],
    ['minimum', { action: 'core.noop', delay: -5 }, '-5 is less than the minimum of 0'],
    [
      'two unknown properties',
      { action: 'core.noop', notify: { one: 1, two: 2 } },
      "Additional properties are not allowed ('one', 'two' were unexpected)",
    ],
  ])('00.6 %s', async (_, body, text) => {
    const before = countExecutions(server)
    const answer = await server.call<ErrorAnswer>('POST', '/v1/executions', body)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toContain(text)
    expect(countExecutions(server)).toBe(before)
  })

  it('00.6 enum names the value and the allowed ones', async () => {
    const { status, body } = await server.call<ErrorAnswer>('PUT', `/v1/executions/${first.id}`, { status: 'done' })
    expect(status).toBe(400)
    expect(body.faultstring).toMatch(/'done' is not one of \['requested'.*'canceled'\]/)
  })
})

describe('00.7 query parameter typing', () => {
  it.each(['true', '1', 'yes', 'y', 'TRUE', 'Yes', 'false', '0', 'no', 'n', 'FALSE', 'N'])(
    '00.7 boolean: %s is accepted',
    async (value) => {
      expect((await get(`/v1/executions?limit=1&show_secrets=${value}`)).status).toBe(200)
    },
  )

  it.each([
    ['show_secrets=maybe', 'Parameter "show_secrets" is not of type boolean'],
    ['show_secrets=', 'Parameter "show_secrets" is not of type boolean'],
    ['limit=ten', 'Parameter "limit" is not of type integer'],
    ['limit=1.5', 'Parameter "limit" is not of type integer'],
    ['limit=%201', 'Parameter "limit" is not of type integer'],
    ['limit=', 'Parameter "limit" is not of type integer'],
    ['offset=0x10', 'Parameter "offset" is not of type integer'],
  ])('00.7 ?%s → 400', async (query, text) => {
    const { status, body } = await get(`/v1/executions?${query}`)
    expect(status).toBe(400)
    expect(body.faultstring).toContain(text)
  })

  it('00.7 array: blanks are trimmed, an empty value is absent', async () => {
    const { body } = await get<ExecutionAnswer[]>(`/v1/executions?id=%20${first.id}%20,,`)
    expect(body.map(({ id }) => id)).toEqual([first.id])
    expect((await get<ExecutionAnswer[]>('/v1/executions?id=')).body.length).toBeGreaterThan(1)
  })

  it('00.7 unknown names are ignored', async () => {
    const { status, body } = await get<ExecutionAnswer[]>('/v1/executions?unheard_of=1&limit=2')
    expect(status).toBe(200)
    expect(body).toHaveLength(2)
  })
})

describe('00.8 pagination', () => {
  const page = (query: string) => get<ExecutionAnswer[]>(`/v1/executions?${query}`)
  const headersOf = ({ headers }: { headers: Headers }) => [headers.get('x-total-count'), headers.get('x-limit')]

  it('00.8 defaults: limit 100 on executions, none on actions and their overview', async () => {
    const total = String(countExecutions(server))
    expect(headersOf(await page(''))).toEqual([total, '100'])
    for (const path of ['/v1/actions', '/v1/actions/views/overview']) {
      const actions = await get<unknown[]>(path)
      expect(headersOf(actions)).toEqual([String(actions.body.length), null])
    }
  })

  it('00.8 limit and offset walk through everything once', async () => {
    const all = (await page('limit=-1')).body.map(({ id }) => id)
    const walked: string[] = []
    for (let offset = 0; offset < all.length; offset += 2) {
      const part = await page(`limit=2&offset=${offset}`)
      expect(headersOf(part)).toEqual([String(all.length), '2'])
      walked.push(...part.body.map(({ id }) => id))
    }
    expect(walked).toEqual(all)
  })

  it('00.8 limit=-1: everything, no X-Limit', async () => {
    const answer = await page('limit=-1')
    expect(answer.body).toHaveLength(countExecutions(server))
    expect(headersOf(answer)).toEqual([String(countExecutions(server)), null])
  })

  it('00.8 above the maximum: accepted while access control is off', async () => {
    expect(headersOf(await page('limit=5000'))).toEqual([String(countExecutions(server)), '5000'])
  })

  it('00.8 an offset beyond the end gives an empty page with the total', async () => {
    const answer = await page('offset=100000')
    expect(answer.body).toEqual([])
    expect(headersOf(answer)).toEqual([String(countExecutions(server)), '100'])
  })

  it.each(['executions', 'actions', 'actions/views/overview', 'runnertypes'])(
    '00.8 bad values on /%s → 400 with the value',
    async (resource) => {
      for (const [query, text] of [
        ['limit=0', 'Limit, "0" specified, must be a positive number or -1 for full result set.'],
        ['limit=-2', 'Limit, "-2" specified, must be a positive number.'],
        ['offset=2147483648', 'Offset "2147483648" specified is more than 32-bit int'],
        ['offset=-1', 'Offset "-1"'],
      ]) {
        const { status, body } = await get(`/v1/${resource}?${query ?? ''}`)
        expect([query, status]).toEqual([query, 400])
        expect(body.faultstring).toContain(text)
      }
      expect((await get(`/v1/${resource}?offset=2147483647`)).status).toBe(200)
    },
  )

  it('00.8 unpaged: children and views/filters', async () => {
    for (const rest of [`${first.id}/children`, 'views/filters']) {
      expect(headersOf(await get(`/v1/executions/${rest}`))).toEqual([null, null])
    }
  })
})

describe('00.10 filtering', () => {
  const ids = async (query: string): Promise<string[]> =>
    (await get<ExecutionAnswer[]>(`/v1/executions?limit=-1&${query}`)).body.map(({ id }) => id)

  it('00.10 id: a comma list of at most 100', async () => {
    const known = await ids('')
    expect(await ids(`id=${known.slice(0, 2).join(',')},${unknownId}`)).toEqual(known.slice(0, 2))
    expect((await get(`/v1/executions?id=${Array(100).fill(first.id).join(',')}`)).status).toBe(200)
    const { status, body } = await get(`/v1/executions?id=${Array(101).fill(first.id).join(',')}`)
    expect(status).toBe(400)
    expect(body.faultstring).toBe('Maximum of 100 items can be provided for a query parameter value')
  })

  it.each(['null', 'NULL', 'Null'])('00.10 null filter: parent=%s finds top-level executions', async (word) => {
    const all = await ids('')
    const top = await ids(`parent=${word}`)
    expect(top).toContain(first.id)
    expect(all.length - top.length).toBe(1)
  })

  it('00.10 null filter: an empty value is no filter', async () => {
    expect(await ids('parent=')).toEqual(await ids(''))
  })

  it.each(['rule', 'trigger', 'trigger_type', 'trigger_instance'])(
    '00.10 null filter: %s=null finds what nothing triggered, another value nothing',
    async (name) => {
      const answer = await get<unknown[]>(`/v1/executions?limit=-1&${name}=null`)
      expect(answer.body).toHaveLength(countExecutions(server))
      expect(answer.headers.get('x-total-count')).toBe(String(countExecutions(server)))
      const none = await get<unknown[]>(`/v1/executions?${name}=something`)
      expect([none.body, none.headers.get('x-total-count')]).toEqual([[], '0'])
    },
  )
})

describe('00.12 identifiers', () => {
  it('00.12 object ids: 24 lowercase hex characters, creation time first', async () => {
    expect(first.id).toMatch(idPattern)
    const seconds = Number.parseInt(first.id.slice(0, 8), 16)
    expect(seconds).toBe(Math.floor(Date.parse(first.start_timestamp) / 1000))
    expect(first.liveaction['id']).toMatch(idPattern)
    expect(first.liveaction['id']).not.toBe(first.id)
  })

  it('00.12 object ids sort by creation', async () => {
    const { body } = await get<ExecutionAnswer[]>('/v1/executions?limit=-1&sort_asc=1')
    const sorted = body.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(body.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id))
    const times = sorted.map(({ start_timestamp: start }) => start)
    expect(times).toEqual(times.toSorted())
  })

  it('00.12 ref and uid', async () => {
    expect(first.action).toMatchObject({ ref: 'core.local', uid: 'action:core:local', pack: 'core', name: 'local' })
    expect(first.runner).toMatchObject({ uid: 'runner_type:local-shell-cmd', name: 'local-shell-cmd' })
  })

  it.each(impossibleIds)('00.12 not a valid id: %s is not found', async (id) => {
    for (const path of [`executions/${id}`, `executions/${id}/output`, `executions/${id}/result`, `actions/${id}`]) {
      const answer = await send(server.urls.api, { path: `/v1/${path}` })
      expect([path, answer.status]).toEqual([path, 404])
    }
    expect((await send(server.urls.stream, { path: `/v1/executions/${id}/output` })).status).toBe(404)
    expect((await send(server.urls.api, { method: 'DELETE', path: `/v1/executions/${id}` })).status).toBe(404)
  })

  it('00.12 lookup by ref or id', async () => {
    const byRef = await get<Record<string, string>>('/v1/actions/core.local')
    const byId = await get<Record<string, string>>(`/v1/actions/${byRef.body['id'] ?? ''}`)
    expect(byId.body).toEqual(byRef.body)
  })
})

describe('00.13 timestamps', () => {
  it('00.13 records: microseconds, UTC', () => {
    for (const text of [first.start_timestamp, first.end_timestamp, ...first.log.map(({ timestamp }) => timestamp)]) {
      expect(text).toMatch(timestampPattern)
      expect(Math.abs(Date.parse(text) - Date.now())).toBeLessThan(600_000)
    }
  })

  it('00.13 elapsed_seconds is end minus start, to the microsecond', () => {
    const micros = (text: string): number => Date.parse(`${text.slice(0, 19)}Z`) * 1000 + Number(text.slice(20, 26))
    const difference = micros(first.end_timestamp) - micros(first.start_timestamp)
    expect(Math.round(first.elapsed_seconds * 1e6)).toBe(difference)
  })

  const moment = '2020-02-03T04:05:06'
  it.each([
    `${moment}Z`,
    `${moment}.123Z`,
    `${moment}.123456Z`,
    `${moment}+00`,
    `${moment}+0000`,
    `${moment}.1234+00:00`,
    moment.replace('T', ' ') + 'Z',
  ])('00.13 accepted in filters: %s', async (text) => {
    const { status, body } = await get<unknown[]>(`/v1/executions?timestamp_gt=${encodeURIComponent(text)}`)
    expect(status).toBe(200)
    expect(body.length).toBeGreaterThan(0)
  })

  it.each([
    moment,
    `${moment}+01:00`,
    `${moment}.1234567Z`,
    '2020-02-03',
    'yesterday',
    '1580702706',
    '2020-13-03T04:05:06Z',
    '2020-02-30T04:05:06Z',
    `${moment}z`,
    '',
  ])('00.13 refused in filters: %j', async (text) => {
    for (const name of ['timestamp_gt', 'timestamp_lt']) {
      const { status, body } = await get(`/v1/executions?${name}=${encodeURIComponent(text)}`)
      expect([name, status]).toEqual([name, 400])
      expect(body.faultstring).toContain('Datetime value does not match expected format.')
      expect(body.faultstring).toContain(name)
    }
  })
})

describe('00.13 far bounds', () => {
  it.each([
    ['timestamp_lt=9999-12-31T23:59:59Z', true],
    ['timestamp_gt=9999-12-31T23:59:59Z', false],
    ['timestamp_gt=0000-01-01T00:00:00Z', true],
    ['timestamp_lt=0000-01-01T00:00:00Z', false],
    ['timestamp_lt=2150-01-01T00:00:00Z', true],
    ['timestamp_gt=1969-12-31T23:59:59Z', true],
  ])('00.13 bounds far away are bounds: %s', async (query, matches) => {
    const answer = await get<unknown[]>(`/v1/executions?limit=-1&${query}`)
    const expected = matches ? countExecutions(server) : 0
    expect([answer.body.length, answer.headers.get('x-total-count')]).toEqual([expected, String(expected)])
  })
})

describe('00.14 CORS', () => {
  it('00.14 an allowed origin is named, another gets the first allowed one', async () => {
    for (const path of ['/v1/executions?limit=1', '/v1/executions/nothing', '/nothing']) {
      const allowed = await get(path, { Origin: 'http://page.example' })
      expect(allowed.headers.get('access-control-allow-origin')).toBe('http://page.example')
      const other = await get(path, { Origin: 'http://evil.example' })
      expect(other.headers.get('access-control-allow-origin')).toBe('http://first.example')
      for (const { headers } of [allowed, other]) {
        expect(headers.get('access-control-allow-methods')).toBe('GET,POST,PUT,DELETE,OPTIONS')
        expect(headers.get('access-control-allow-headers')).toContain(
          'Content-Type,Authorization,X-Auth-Token,Svc-Api-Key,X-Request-ID',
        )
        expect(headers.get('access-control-allow-credentials')).toBe('true')
        expect(headers.get('access-control-expose-headers')).toBe('Content-Type,X-Limit,X-Total-Count,X-Request-ID')
      }
    }
  })

  it.each(['/v1/executions', '/nothing', '/v1/executions/x/y/z'])('00.14 OPTIONS %s → 200, empty', async (path) => {
    for (const url of Object.values(server.urls)) {
      const answer = await send(url, { method: 'OPTIONS', path, headers: { Origin: 'http://evil.example' } })
      expect([answer.status, answer.text]).toEqual([200, ''])
      expect(answer.headers['access-control-allow-methods']).toBe('GET,POST,PUT,DELETE,OPTIONS')
    }
  })

  it('00.14 a foreign page may not change anything', async () => {
    const before = countExecutions(server)
    const answer = await create(server, { action: 'core.noop' }, { Origin: 'http://evil.example' })
    expect(answer.status).toBe(403)
    expect(countExecutions(server)).toBe(before)
  })
})
