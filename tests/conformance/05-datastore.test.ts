/** Contract 05, 5.11, with a real server: endpoints, templates of real executions, and where secrets are not. */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { runToEnd, withServer, type Answer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  auditRecords,
  create,
  idPattern,
  send,
  createAppWithExamples,
  timestampPattern,
  type ErrorAnswer,
} from './support.ts'

interface KeyAnswer extends ErrorAnswer {
  id: string
  uid: string
  name: string
  scope: string
  user?: string
  value: string
  secret: boolean
  encrypted: boolean
  expire_timestamp?: string
}

let server: TestApp

beforeAll(async () => {
  server = await createAppWithExamples({ settings: { 'log.level': 'DEBUG' } })
})

afterAll(() => server.stop())

const put = (name: string, value: unknown, more: object = {}, on = server): Promise<Answer<KeyAnswer>> =>
  on.call('PUT', `/v1/keys/${encodeURIComponent(name)}`, { name, value, ...more })
const get = (path: string, on = server): Promise<Answer<KeyAnswer>> => on.call('GET', `/v1/keys/${path}`)
const list = (query = ''): Promise<Answer<KeyAnswer[]>> => server.call('GET', `/v1/keys?${query}`)
const namesOf = async (query: string): Promise<string[]> => (await list(query)).body.map(({ name }) => name)

describe('5.11 endpoints', () => {
  it('5.11 PUT creates and updates with 200, GET reads, DELETE answers 204', async () => {
    const made = await put('crud', 'one', { ttl: 1000 })
    expect(made.status).toBe(200)
    expect(made.body).toEqual({
      id: expect.stringMatching(idPattern),
      uid: 'key_value_pair:svckv.system:crud',
      name: 'crud',
      scope: 'svckv.system',
      value: 'one',
      secret: false,
      encrypted: false,
      expire_timestamp: expect.stringMatching(timestampPattern),
    })
    expect((await get('crud')).body).toEqual(made.body)
    expect((await server.call('GET', '/api/v1/keys/crud')).body).toEqual(made.body)
    const { expire_timestamp: _gone, ...rest } = made.body
    const updated = await put('crud', 'two')
    expect([updated.status, updated.body]).toEqual([200, { ...rest, value: 'two' }])
    const deleted = await server.call('DELETE', '/v1/keys/crud')
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    const missing = await server.call<ErrorAnswer>('DELETE', '/v1/keys/crud')
    expect([missing.status, missing.body.faultstring]).toEqual([
      404,
      'KeyValuePair with name: crud and scope: svckv.system not found in db.',
    ])
  })

  it('5.11 lists are sorted by name, paged and counted', async () => {
    const all = Array.from({ length: 120 }, (_, n) => `page.${String(n).padStart(3, '0')}`)
    for (const name of all) expect((await put(name, name)).status).toBe(200)
    const first = await list('prefix=page.')
    expect(first.body.map(({ name }) => name)).toEqual(all.slice(0, 100))
    expect([first.headers.get('x-total-count'), first.headers.get('x-limit')]).toEqual(['120', '100'])
    expect(await namesOf('prefix=page.&limit=3&offset=118')).toEqual(all.slice(118))
    expect(await namesOf('prefix=page.&limit=-1&sort=-name')).toEqual(all.toReversed())
    expect(await namesOf('name=page.007')).toEqual(['page.007'])
    expect(await namesOf('prefix=page.&name=crud')).toEqual([])
    const none = await list('prefix=nothing')
    expect([none.status, none.body, none.headers.get('x-total-count')]).toEqual([200, [], '0'])
    const wrong: [string, string][] = [
      ['limit=0', 'Limit, "0" specified, must be a positive number or -1 for full result set.'],
      ['limit=x', 'Parameter "limit" is not of type integer'],
      ['decrypt=maybe', 'Parameter "decrypt" is not of type boolean'],
      ['offset=4294967296', 'Offset "4294967296" specified is more than 32-bit int'],
    ]
    const answers = wrong.map(
      async ([query]) => (await server.call<ErrorAnswer>('GET', `/v1/keys?${query}`)).body.faultstring,
    )
    expect(await Promise.all(answers)).toEqual(wrong.map(([, text]) => text))
  })

  it('5.11 the name is what the path says, whatever characters it has', async () => {
    for (const [path, name] of [
      ['a%2Fb', 'a/b'],
      ['%2e%2e%2F%2e%2e%2Fetc', '../../etc'],
      ['%2E', '.'],
      ['..', '..'],
      ['%2E%2E', '..'],
      ['%D0%BA%F0%9F%94%91', 'к🔑'],
      ['a%20b', 'a b'],
      ['a+b', 'a+b'],
      ['%27%20or%201=1--', "' or 1=1--"],
      ['__proto__', '__proto__'],
      ['constructor', 'constructor'],
      ['x;y=1', 'x;y=1'],
      ['%25', '%'],
    ] as const) {
      const body = JSON.stringify({ name, value: `of ${name}` })
      const headers = { 'Content-Type': 'application/json' }
      const made = await send(server.urls.api, { method: 'PUT', path: `/v1/keys/${path}`, headers, body })
      expect([path, made.status, made.text]).toEqual([path, 200, expect.any(String)])
      const read = await send(server.urls.api, { path: `/v1/keys/${path}` })
      expect(JSON.parse(read.text)).toMatchObject({ name, value: `of ${name}` })
      const gone = await send(server.urls.api, { method: 'DELETE', path: `/v1/keys/${path}` })
      expect([path, gone.status]).toEqual([path, 204])
    }
    for (const [path, status] of [
      ['%00', 400],
      ['a%00b', 400],
      ['%ff', 400],
      ['%zz', 400],
      ['a/b', 404],
      [`${'x'.repeat(1025)}`, 400],
    ] as const) {
      const answer = await send(server.urls.api, { path: `/v1/keys/${path}` })
      expect([path, answer.status]).toEqual([path, status])
    }
  })

  it('5.11 nothing in a query or a body is taken for SQL, a path or a prototype', async () => {
    await put('corpus', 'canary-corpus')
    const texts = [
      "' or '1'='1",
      "'; drop table key_value_pairs; --",
      'corpus" or 1=1 --',
      '%',
      '_____',
      'corp*',
      '../corpus',
      '__proto__',
      'constructor',
      '\u0000',
      '\ud800',
      '$ne',
      '{{ svckv.system.corpus }}',
    ]
    for (const text of texts) {
      const encoded = encodeURIComponent(text.isWellFormed() ? text : '\ufffd')
      for (const query of [`name=${encoded}`, `prefix=${encoded}`]) {
        const answer = await list(query)
        expect([query, answer.status, answer.body]).toEqual([query, 200, []])
      }
      for (const query of [`scope=${encoded}`, `user=${encoded}`, `sort=${encoded}`, `scope[$ne]=${encoded}`]) {
        const answer = await server.call('GET', `/v1/keys?${query}`)
        expect([query, [200, 400, 403].includes(answer.status)]).toEqual([query, true])
      }
      const body = await server.call(
        'PUT',
        '/v1/keys/corpus',
        JSON.stringify({ name: 'corpus', value: 'x', scope: text }),
      )
      expect([text, body.status]).toEqual([text, 400])
    }
    for (const text of [
      '{"name":"corpus","value":"x","__proto__":{"secret":true}}',
      '{"name":"corpus","value":"x","constructor":{}}',
    ]) {
      expect((await server.call('PUT', '/v1/keys/corpus', text)).status).toBe(400)
    }
    expect((await get('corpus')).body.value).toBe('canary-corpus')
    expect(await namesOf('name=corpus')).toEqual(['corpus'])
  })

  it('5.11 a ttl of a second is over after a second', async () => {
    expect((await put('short', 'x', { ttl: 1 })).status).toBe(200)
    await waitFor('the key to expire', async () => (await get('short')).status === 404, 5000)
    expect(await namesOf('name=short')).toEqual([])
    expect((await put('short', 'again')).body).not.toHaveProperty('expire_timestamp')
  })

  it('5.11 without access control "user" is refused, and each caller has a scope of its own', async () => {
    const own = await put('mine', 'x', { scope: 'user' })
    expect(own.body).toMatchObject({ scope: 'svckv.user', user: 'svc', uid: 'key_value_pair:svckv.user:svc:mine' })
    expect(await namesOf('scope=user')).toEqual(['mine'])
    expect(await namesOf('user=svc')).toEqual(['mine'])
    expect((await namesOf('scope=all&limit=-1')).at(-1)).toBe('mine')
    for (const answer of [
      await get('mine?user=other'),
      await server.call<ErrorAnswer>('GET', '/v1/keys?user=other'),
      await put('mine', 'x', { scope: 'user', user: 'other' }),
    ]) {
      expect([answer.status, answer.body.faultstring]).toEqual([
        403,
        '"user" attribute can only be provided by admins when RBAC is enabled',
      ])
    }
  })
})

describe('5.9, 10.3 what others hear of it', () => {
  it('5.9 changes are trigger instances, secrets masked', async () => {
    const secret = `canary${randomBytes(8).toString('hex')}`
    const { body } = await put('told', secret, { secret: true })
    await put('told', `${secret}2`, { secret: true })
    await server.call('DELETE', '/v1/keys/told')
    const payloads = async (event: string): Promise<Record<string, Record<string, unknown>>[]> => {
      const trigger = `core.svc.key_value_pair.${event}`
      const answer = await server.call<{ id: string; payload: Record<string, Record<string, unknown>> }[]>(
        'GET',
        `/v1/triggerinstances?trigger=${trigger}&limit=-1`,
      )
      expect(answer.status).toBe(200)
      const all = answer.body.map(({ payload }) => payload)
      return all.filter((payload) => Object.values(payload).some((object) => object['id'] === body.id))
    }
    const masked = { ...body, value: '********' }
    expect(await payloads('create')).toEqual([{ object: masked }])
    expect(await payloads('update')).toEqual([{ object: masked }])
    expect(await payloads('value_change')).toEqual([{ old_object: masked, new_object: masked }])
    expect(await payloads('delete')).toEqual([{ object: masked }])
  })

  it('10.3 PUT, DELETE and decryption are audited', async () => {
    const { body } = await put('audited', 'canary-audited', { secret: true })
    await get('audited?decrypt=true')
    await list('name=audited&decrypt=true')
    await server.call('DELETE', '/v1/keys/audited')
    const texts = (event: string): unknown[] =>
      auditRecords(server, event)
        .map((record) => record['short_message'])
        .filter((text) => String(text).includes('audited'))
    await waitFor('the last line to be in the file', () => texts('key_value_pair.deleted').length > 0)
    expect(texts('key_value_pair.set')).toEqual([`PUT /v1/keys/audited succeeded id=${body.id}`])
    expect(texts('key_value_pair.deleted')).toEqual([`DELETE /v1/keys/audited succeeded id=${body.id}`])
    expect(texts('key_value_pair.decrypted')).toEqual([
      'User svc decrypted the value audited',
      'User svc decrypted the values [audited]',
    ])
    for (const event of ['key_value_pair.set', 'key_value_pair.deleted', 'key_value_pair.decrypted']) {
      expect(auditRecords(server, event).at(-1)).toMatchObject({
        _user: 'svc',
        _remote_address: '127.0.0.1',
        _request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
    }
  })
})

describe('02.6 templates of executions', () => {
  const echo = async (message: string): Promise<{ status: string; output: unknown; message: unknown }> => {
    const { status, result, parameters } = await runToEnd(server, { message }, { action: 'core.echo' })
    return { status, output: result['stdout'], message: parameters['message'] }
  }

  it('02.6 read the datastore', async () => {
    await put('t', 'text')
    await put('t.inner', 'inner')
    await put('number', '42')
    await put('personal', 'of svc', { scope: 'user' })
    for (const [message, printed] of [
      ['{{ svckv.system.t }}', 'text'],
      ['<{{ svckv.system.t.inner }}>', '<inner>'],
      ["{{ svckv['system']['t'] ~ svckv.system['t.inner'] }}", 'textinner'],
      ['<{{ svckv.system.missing }}>', '<>'],
      ['{{ svckv.user.personal }}', 'of svc'],
      ['{{ svckv.system.number | int + 1 }}', '43'],
      ["{% if svckv.system.t == 'text' %}yes{% else %}no{% endif %}", 'yes'],
      ["{{ svckv.system.missing or 'fallback' }}", 'fallback'],
      ['{{ svckv.system.t | upper }} {{ svckv.system.t | length }}', 'TEXT 4'],
    ] as const) {
      expect(await echo(message)).toMatchObject({ status: 'succeeded', output: printed, message: printed })
    }
  })

  it('02.6 values of other types come from conversion, siblings from what was read', async () => {
    const execution = await runToEnd(
      server,
      {
        name: '{{ svckv.system.t }}',
        times: '{{ svckv.system.number }}',
        list: ['{{ svckv.system.t }}', '{{ name }}'],
      },
      { action: 'examples.templated' },
    )
    expect(execution.parameters).toMatchObject({
      name: 'text',
      times: 42,
      list: ['text', 'text'],
      greeting: 'hello text',
    })
    expect(execution.result['stdout']).toBe('hello text text!')
  })

  it('02.6 what was read is data and is not rendered again', async () => {
    await put('template', '{{ svckv.system.t }}')
    expect(await echo('{{ svckv.system.template }}')).toMatchObject({ output: '{{ svckv.system.t }}' })
  })

  it('02.6 secrets are cipher text until decrypt_kv; a failure names no value', async () => {
    const secret = `canary${randomBytes(8).toString('hex')}`
    const { body } = await put('sealed', secret, { secret: true })
    expect(await echo('{{ svckv.system.sealed }}')).toMatchObject({ output: body.value })
    // What it gives is hidden wherever it turns up; its length is not.
    expect(await echo('[{{ svckv.system.sealed | decrypt_kv }}]')).toMatchObject({ output: '[********]' })
    const length = '{{ svckv.system.sealed | decrypt_kv | length }}'
    expect(await echo(length)).toMatchObject({ output: String(secret.length) })
    const hidden = await runToEnd(
      server,
      { token: '{{ svckv.system.sealed | decrypt_kv }}', vault: { key: '{{ svckv.system.sealed | decrypt_kv }}' } },
      { action: 'examples.secretive' },
    )
    expect(hidden).toMatchObject({ status: 'succeeded', parameters: { token: '********', vault: '********' } })
    for (const [message, why] of [
      ['{{ svckv.system.missing | decrypt_kv }}', 'no value to decrypt: the key does not exist or is empty'],
      ['{{ svckv.system.t | decrypt_kv }}', 'the value is not the encrypted value of any key'],
      ['{{ svckv.system.sealed | decrypt_kv | from_json_string }}', 'the text is not valid JSON'],
      ['{{ (svckv.system.sealed | decrypt_kv).nothing }}', "'str object' has no attribute 'nothing'"],
      ['{{ {}[svckv.system.sealed | decrypt_kv] }}', "'dict object' has no element of that name"],
      ['{{ svckv.galaxy.a }}', "'namespace object' has no attribute 'galaxy'"],
    ] as const) {
      const refused = await create(server, { action: 'core.echo', parameters: { message } })
      expect([refused.status, refused.body.faultstring]).toEqual([400, `Failed to render parameter "message": ${why}`])
    }
  })
})

describe('10.2 keys of secrets', () => {
  it('the key file is made once, for the server alone', () => {
    const file = join(server.basePath, 'keys', 'secrets.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(server.basePath, 'keys')).mode & 0o777).toBe(0o700)
  })

  fullOnly(it)(
    'what is stored outlives the server; a new key is taken up by SIGHUP and the old one still opens',
    async () => {
      const folder = makeFolder()
      try {
        await withApp({ basePath: folder.path }, async (first) => {
          expect((await put('s', 'canary-s', { secret: true }, first)).status).toBe(200)
          expect((await put('p', 'plain', {}, first)).status).toBe(200)
        })
        await withServer({ basePath: folder.path }, async (second) => {
          const before = (await get('s', second)).body.value
          const file = join(folder.path, 'keys', 'secrets.json')
          const keys = JSON.parse(readFileSync(file, 'utf8')) as { digest_key: string; keys: string[] } // as it was made
          writeFileSync(file, JSON.stringify({ ...keys, keys: [...keys.keys, randomBytes(32).toString('base64')] }))
          process.kill(second.pid, 'SIGHUP')
          await waitFor('the new key to count', async () => {
            const { value } = (await put('probe', 'x', { secret: true }, second)).body
            return value.slice(0, 10) !== before.slice(0, 10)
          })
          expect((await get('s?decrypt=true', second)).body.value).toBe('canary-s')
          expect((await get('p', second)).body.value).toBe('plain')
          writeFileSync(file, '{"keys": "canary-damage"}')
          process.kill(second.pid, 'SIGHUP')
          await waitFor('the server to say so', () => second.log().includes('is damaged'))
          expect(second.log()).not.toContain('canary-damage')
          expect((await get('s?decrypt=true', second)).body.value).toBe('canary-s')
        })
      } finally {
        folder.remove()
      }
    },
  )

  it.each<[why: RegExp, content: string, mode: number]>([
    [/is damaged: it is not JSON/, 'canary-damage', 0o600],
    [/has mode 0644, so other accounts can use it; run: chmod 600/, '{}', 0o644],
  ])('a file that %s stops the start and stays as it is', async (why, content, mode) => {
    const folder = makeFolder()
    try {
      const file = join(folder.path, 'keys', 'secrets.json')
      mkdirSync(join(folder.path, 'keys'), { mode: 0o700 })
      writeFileSync(file, content)
      chmodSync(file, mode)
      const error: unknown = await createTestApp({ basePath: folder.path }).catch((reason: unknown) => reason)
      expect(String(error)).toMatch(why)
      expect(String(error)).not.toContain('canary')
      expect(readFileSync(file, 'utf8')).toBe(content)
    } finally {
      folder.remove()
    }
  })

  fullOnly(it)('a key file that was named and is missing: secrets are refused, the rest works', async () => {
    await withApp({ settings: { 'keyvalue.encryption_key_path': 'keys/mine.json' } }, async (without) => {
      const refused = await put('s', 'canary', { secret: true }, without)
      expect([refused.status, refused.body.faultstring]).toEqual([
        400,
        expect.stringContaining(
          `Crypto key not found in ${join(without.basePath, 'keys/mine.json')}. Unable to encrypt / decrypt value for key s.`,
        ),
      ])
      expect((await get('s', without)).status).toBe(404)
      expect((await put('p', 'x', {}, without)).status).toBe(200)
      expect(existsSync(join(without.basePath, 'keys/mine.json'))).toBe(false)
    })
  })

  fullOnly(it)('encryption off: secrets are refused with the option that turns it on', async () => {
    await withApp({ settings: { 'keyvalue.enable_encryption': 'False' } }, async (without) => {
      const refused = await put('s', 'canary', { secret: true }, without)
      expect([refused.status, refused.body.faultstring]).toEqual([
        400,
        expect.stringMatching(/^Crypto key not found in .* value for key s\. Turn on keyvalue\.enable_encryption\.$/),
      ])
    })
  })
})

describe('CVE-2022-31044, CVE-2025-2877 secrets are nowhere else', () => {
  it('neither in the database, logs and audit lines nor in any answer that did not ask for them', async () => {
    const folder = makeFolder()
    const secret = `canary${randomBytes(12).toString('hex')}`
    const settings = { 'log.level': 'DEBUG' }
    let logged = ''
    let answers = ''
    const keep = (answer: Answer<unknown>): void => void (answers += `${answer.status} ${answer.text}\n`)
    try {
      await withApp({ basePath: folder.path, settings }, async (place) => {
        keep(await put('s', secret, { secret: true, description: 'a secret' }, place))
        keep(await put('s', `${secret}-changed`, { secret: true, ttl: 1000 }, place))
        keep(await put('mine', secret, { secret: true, scope: 'user' }, place))
        keep(await put('wrong', [secret.slice(0, 3)], { secret: true }, place))
        keep(await put('s', secret, { secret: true, encrypted: 'x' }, place))
        for (const path of ['', '?scope=all', '?scope=user', '?prefix=s', '/s', '/mine?scope=user', '/s?decrypt=no']) {
          keep(await place.call('GET', `/v1/keys${path}`))
        }
        for (const path of ['/s', '/mine?scope=user']) {
          const mark = path.includes('?') ? '&' : '?'
          const open = await place.call<KeyAnswer>('GET', `/v1/keys${path}${mark}decrypt=true`)
          expect(open.body.value).toContain(secret)
        }
        // Into a parameter that is declared secret.
        for (const message of ['{{ svckv.system.s | decrypt_kv | from_json_string }}', '{{ svckv.system.s }}']) {
          keep(await create(place, { action: 'core.echo', parameters: { message } }))
        }
        keep(await place.call('GET', '/v1/executions'))
        keep(await place.call('GET', '/v1/triggerinstances?limit=-1'))
        keep(await place.call('DELETE', '/v1/keys/s'))
        logged = place.log()
      })
      expect(answers).toContain('204')
      expect(answers).not.toContain(secret)
      expect(logged).toContain('/v1/keys/s')
      expect(logged).not.toContain(secret)
      const files = readdirSync(folder.path, { recursive: true, encoding: 'utf8' })
      expect(files).toEqual(expect.arrayContaining(['svc.db', 'logs/svc.audit.log', 'keys/secrets.json']))
      const holding = files.filter((file) => {
        const path = join(folder.path, file)
        return statSync(path).isFile() && readFileSync(path).includes(secret)
      })
      expect(holding).toEqual([])
    } finally {
      rmSync(folder.path, { recursive: true, force: true })
    }
  })
})
