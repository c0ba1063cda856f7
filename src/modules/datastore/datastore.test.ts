/** The endpoints of the datastore over real HTTP and a real database file; lists and templates are tested apart. */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { startDatastore, type DatastoreOptions, type TestDatastore } from '../../../tests/helpers/datastore.ts'
import type { KeyValuePairRecord } from './types.ts'

let place: TestDatastore

afterEach(() => place.stop())

async function start(options: DatastoreOptions = {}): Promise<void> {
  place = await startDatastore({ users: { root: { role: 'admin' } }, ...options })
}

const get = (path: string, as = 'root') => place.call<KeyValuePairRecord>(as, 'GET', `/v1/keys/${path}`)
const put = (name: string, body: object, as = 'root') =>
  place.call<KeyValuePairRecord>(as, 'PUT', `/v1/keys/${encodeURIComponent(name)}`, { name, ...body })
const countRows = (): number =>
  place.database.all(place.database.build.selectFrom('key_value_pairs').select('id')).length

describe('an item', () => {
  test('is set, read, changed and deleted', async () => {
    await start()
    const made = await put('a', { value: 'one', description: 'what it is for' })
    expect(made.status).toBe(200)
    expect(made.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      uid: 'key_value_pair:svckv.system:a',
      name: 'a',
      scope: 'svckv.system',
      description: 'what it is for',
      value: 'one',
      secret: false,
      encrypted: false,
    })
    expect((await get('a')).body).toEqual(made.body)
    const changed = await put('a', { value: '' })
    expect(changed.body).toEqual({ ...made.body, value: '' })
    expect((await put('a', { value: '', description: '' })).body).not.toHaveProperty('description')
    const gone = await place.call('root', 'DELETE', '/v1/keys/a')
    expect([gone.status, gone.text]).toEqual([204, ''])
    for (const method of ['GET', 'DELETE']) {
      const missing = await place.call('root', method, '/v1/keys/a')
      expect(missing.status).toBe(404)
      expect(missing.body.faultstring).toBe('KeyValuePair with name: a and scope: svckv.system not found in db.')
    }
  })

  test.for([
    'a/b',
    '../../etc/passwd',
    'pack.Class:key',
    'ключ 🔑',
    'a b+c%20d?e#f&g=h',
    '__proto__',
    'constructor',
    'toString',
    "'; drop table key_value_pairs; --",
    '%',
    '_',
    '*',
    'line\nbreak\t',
    '{{ svckv.system.a }}',
    '<script>alert(1)</script>',
    'x'.repeat(1024),
  ])('can have any name: %j', async (name) => {
    await start()
    const encoded = encodeURIComponent(name)
    const body = { name, value: `value of ${name}` }
    const made = await place.call<KeyValuePairRecord>('root', 'PUT', `/v1/keys/${encoded}`, body)
    expect(made.status).toBe(200)
    expect(made.body).toMatchObject({ name, value: `value of ${name}`, uid: `key_value_pair:svckv.system:${name}` })
    expect((await get(encoded)).body).toEqual(made.body)
    const list = await place.call<KeyValuePairRecord[]>('root', 'GET', `/v1/keys?name=${encodeURIComponent(name)}`)
    expect(list.body).toEqual([made.body])
    expect((await place.call('root', 'DELETE', `/v1/keys/${encoded}`)).status).toBe(204)
    expect(countRows()).toBe(0)
  })

  test.for<[path: string, why: RegExp]>([
    ['a%00b', /NUL/],
    ['x'.repeat(1025), /longer than 1024/],
    ['%ff', /percent-encoded UTF-8/],
  ])('cannot have this name: %j', async ([path, why]) => {
    await start()
    for (const method of ['GET', 'DELETE']) {
      const answer = await place.call('root', method, `/v1/keys/${path}`)
      expect(answer.status).toBe(400)
      expect(answer.body.faultstring).toMatch(why)
    }
  })

  test.for<[body: unknown, why: RegExp]>([
    [{ name: 'a' }, /'value' is a required property/],
    [{ value: 'a' }, /'name' is a required property/],
    [{ name: 'b', value: 'x' }, /name in the body, "b", differs from the name in the path, "a"/],
    [{ name: 'a', value: 5 }, /5 is not of type 'string'/],
    [{ name: 'a', value: null }, /is not of type 'string'/],
    [{ name: 'a', value: { a: 1 } }, /is not of type 'string'/],
    [{ name: 'a', value: 'x', secret: 'yes' }, /is not of type 'boolean', 'null'/],
    [{ name: 'a', value: 'x', ttl: 1.5 }, /is not of type 'integer', 'null'/],
    [{ name: 'a', value: 'x', ttl: 0 }, /minimum of 1/],
    [{ name: 'a', value: 'x', ttl: -5 }, /minimum of 1/],
    [{ name: 'a', value: 'x', ttl: 1e15 }, /maximum of/],
    [{ name: 'a', value: 'x', colour: 1 }, /Additional properties are not allowed \('colour' was unexpected\)/],
    [{ name: 'a', value: 'x', scope: 'galaxy' }, /^Scope galaxy is not in allowed scopes list: \['all', 'system'/],
    [{ name: 'a', value: 'x', user: 'root' }, /"user" is only for items of the user scope/],
    [{ name: 'a', value: 'x'.repeat(1_048_577) }, /^value: 1048577 bytes are more than the maximum of 1048576/],
    [{ name: 'a', value: 'é'.repeat(524_289) }, /^value: 1048578 bytes/],
    ['{"name": "a", "value": "\\ud800"}', /^value: not valid Unicode/],
    [[], /needs to be an object/],
    ['{"name": "a", "value": "x", "__proto__": {"secret": true}}', /__proto__/],
  ])('is rejected: %j', async ([body, why]) => {
    await start()
    const answer = await place.call('root', 'PUT', '/v1/keys/a', body)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(why)
    expect(countRows()).toBe(0)
    expect(place.events).toEqual([])
  })

  test('can have 1 MiB of any characters', async () => {
    await start()
    const value = `\0"\\\u{1f511}${'é'.repeat(524_284)}`
    expect(Buffer.byteLength(value)).toBeLessThanOrEqual(1_048_576)
    expect((await put('a', { value, secret: true })).status).toBe(200)
    expect((await get('a?decrypt=true')).body.value).toBe(value)
  })

  test('accepts a record that a client read before', async () => {
    await start()
    const { body } = await put('a', { value: 'x', ttl: 100 })
    expect((await put('a', body)).status).toBe(200)
    expect((await get('a')).body).not.toHaveProperty('expire_timestamp')
  })
})

describe('scopes', () => {
  test('each user has items besides those of the system', async () => {
    await start({ accessControl: false })
    await put('a', { value: 'system' })
    await put('a', { value: 'of alice', scope: 'user' }, 'alice')
    await put('a', { value: 'of bob', scope: 'svckv.user' }, 'bob')
    const mine = await get('a?scope=user', 'alice')
    expect(mine.body).toMatchObject({
      value: 'of alice',
      scope: 'svckv.user',
      user: 'alice',
      uid: 'key_value_pair:svckv.user:alice:a',
    })
    expect((await get('a?user=alice', 'alice')).body).toEqual(mine.body)
    expect((await get('a?scope=svckv.user', 'bob')).body.value).toBe('of bob')
    for (const query of ['', '?scope=', '?scope=system', '?scope=svckv.system', '?scope=all']) {
      const { body } = await get(`a${query}`, 'alice')
      expect(body).toMatchObject({ value: 'system', scope: 'svckv.system' })
      expect(body).not.toHaveProperty('user')
    }
    expect((await get('a?scope=user', 'carol')).body.faultstring).toBe(
      'KeyValuePair with name: a and scope: svckv.user not found in db.',
    )
    await place.call('alice', 'DELETE', '/v1/keys/a?scope=user')
    expect((await get('a?scope=user', 'alice')).status).toBe(404)
    expect((await get('a?scope=user', 'bob')).status).toBe(200)
    expect((await get('a', 'alice')).status).toBe(200)
  })

  test.for(['galaxy', 'SYSTEM', 'svckv', '__proto__', "' or 1=1 --"])('"%s" is no scope', async (scope) => {
    await start()
    const query = `scope=${encodeURIComponent(scope)}`
    for (const method of ['GET', 'DELETE']) {
      const answer = await place.call('root', method, `/v1/keys/a?${query}`)
      expect(answer.status).toBe(400)
      expect(answer.body.faultstring).toMatch(/^Scope .* is not in allowed scopes list: \[/)
    }
    const list = await place.call('root', 'GET', `/v1/keys?${query}`)
    expect(list.status).toBe(400)
    expect(list.body.faultstring).toMatch(/^Invalid scope: /)
  })

  describe.for([false, true])('another user (access control: %s)', (accessControl) => {
    test('can be named only by administrators with access control', async () => {
      await start({ accessControl, users: { root: { role: 'admin' }, eye: { role: 'observer' } } })
      await put('k', { value: 'of alice', scope: 'user' }, 'alice')
      const attempts = (as: string) => [
        get('k?user=alice', as),
        get('k?scope=user&user=alice', as),
        place.call(as, 'GET', '/v1/keys?user=alice'),
        place.call(as, 'GET', '/v1/keys?scope=all&user=alice'),
        put('k', { value: 'new', scope: 'user', user: 'alice' }, as),
        put('k', { value: 'new', user: 'alice' }, as),
        place.call(as, 'DELETE', '/v1/keys/nothing?scope=user&user=alice'),
        place.call(as, 'DELETE', '/v1/keys/nothing?user=alice'),
      ]
      const suffix = accessControl ? '' : ' when RBAC is enabled'
      for (const as of accessControl ? ['bob', 'eye'] : ['bob', 'root']) {
        for (const answer of await Promise.all(attempts(as))) {
          expect(answer.status).toBe(403)
          expect((answer.body as { faultstring: string }).faultstring).toBe(
            `"user" attribute can only be provided by admins${suffix}`,
          )
        }
      }
      expect((await get('k?scope=user', 'alice')).body.value).toBe('of alice')
      if (!accessControl) return
      expect((await Promise.all(attempts('root'))).map(({ status }) => status)).toEqual([
        200, 200, 200, 200, 200, 400, 404, 400,
      ])
      expect((await get('k?scope=user', 'alice')).body).toMatchObject({ value: 'new', user: 'alice' })
    })
  })
})

describe('secrets', () => {
  test('are decrypted for administrators, owners and holders of a grant, but not for observers', async () => {
    const grants = [{ permission_types: ['key_value_pair_view'], resource_uid: 'key_value_pair:svckv.system:s' }]
    await start({ users: { root: { role: 'admin' }, eye: { role: 'observer' }, ann: { grants } } })
    const { value } = (await put('s', { value: 'canary', secret: true })).body
    await put('own', { value: 'mine', secret: true, scope: 'user' }, 'eye')
    expect((await get('s', 'eye')).body).toMatchObject({ value, encrypted: true })
    const refused = await get('s?decrypt=true', 'eye')
    expect([refused.status, refused.text.includes('canary')]).toEqual([403, false])
    const list = await place.call('eye', 'GET', '/v1/keys?decrypt=true')
    expect([list.status, list.text.includes('canary')]).toEqual([403, false])
    for (const as of ['root', 'ann']) expect((await get('s?decrypt=true', as)).body.value).toBe('canary')
    expect((await get('own?scope=user&decrypt=true', 'eye')).body.value).toBe('mine')
  })

  test('are cipher text unless decryption is requested', async () => {
    await start()
    const canary = 'canary-of-the-secret'
    const made = await put('s', { value: canary, secret: true })
    expect(made.body).toMatchObject({
      secret: true,
      encrypted: true,
      value: expect.stringMatching(/^01[0-9A-F]{64,}$/),
    })
    expect((await get('s')).body).toEqual(made.body)
    expect((await get('s?decrypt=false')).body).toEqual(made.body)
    const open = await get('s?decrypt=true')
    expect(open.body).toEqual({ ...made.body, value: canary, encrypted: false })
    expect(place.log()).not.toContain(canary)
    const files = readdirSync(place.folder).filter((file) => file.startsWith('svc.db'))
    expect(files).toContain('svc.db')
    expect(files.filter((file) => readFileSync(join(place.folder, file)).includes(canary))).toEqual([])
    expect((await put('s', { value: canary, secret: true })).body.value).not.toBe(made.body.value)
    const plain = await put('s', { value: 'plain' })
    expect(plain.body).toMatchObject({ value: 'plain', secret: false, encrypted: false })
    expect((await get('s?decrypt=true')).body).toEqual(plain.body)
  })

  test('can be set as cipher text by administrators, for the item it was created for', async () => {
    await start({
      users: {
        root: { role: 'admin' },
        ann: { grants: [{ permission_types: ['key_value_pair_set'], resource_uid: 'key_value_pair:svckv.system:s' }] },
      },
    })
    const { value } = (await put('s', { value: 'plain', secret: true })).body
    await place.call('root', 'DELETE', '/v1/keys/s')
    const back = await put('s', { value: value.toLowerCase(), encrypted: true })
    expect(back.body).toMatchObject({ value, secret: true, encrypted: true })
    expect((await get('s?decrypt=1')).body.value).toBe('plain')

    const refused = await put('s', { value, encrypted: true }, 'ann')
    expect([refused.status, refused.body.faultstring]).toEqual([
      403,
      'Pre-encrypted option requires administrator access',
    ])
    for (const [name, text] of [
      ['other', value],
      ['s', value.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))],
      ['s', 'plain'],
      ['s', ''],
    ] as const) {
      const wrong = await put(name, { value: text, encrypted: true })
      expect([wrong.status, wrong.body.code]).toEqual([400, 'CIPHER_TEXT_INVALID'])
      expect(wrong.body.faultstring).toMatch(new RegExp(`^Unable to decrypt value for key ${name}: .*the name counts`))
    }
    const ofUser = await put('s', { value, encrypted: true, scope: 'user' })
    expect([ofUser.status, ofUser.body.faultstring]).toEqual([400, expect.stringMatching(/the scope and the user/)])
    expect((await get('other')).status).toBe(404)
    expect((await get('s?decrypt=1')).body.value).toBe('plain')
  })

  test('are rejected without an encryption key; other values are not', async () => {
    await start({ keyPath: '/nonexistent/keys.json' })
    const answer = await put('s', { value: 'canary', secret: true })
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(
      /^Crypto key not found in \/nonexistent\/keys\.json\. Unable to encrypt \/ decrypt value for key s\./,
    )
    expect(countRows()).toBe(0)
    expect((await put('s', { value: 'x' })).status).toBe(200)
  })

  test('whose encryption key is lost are still listed, with an error in the log at start', async () => {
    await start()
    await place.put('s', 'canary', { secret: true })
    await place.put('t', 'plain')
    const file = join(place.folder, 'keys', 'secrets.json')
    const [digest, other] = ['d'.repeat(43), 'e'.repeat(43)]
    writeFileSync(file, JSON.stringify({ digest_key: digest, keys: [other] }))
    await place.datastore.reload?.()
    expect(place.log()).toMatch(/Could not decrypt datastore secrets.*key [0-9a-f]{8}, which is not in the key file/)
    const one = await get('s?decrypt=true')
    expect([one.status, one.body.code]).toEqual([400, 'CIPHER_TEXT_INVALID'])
    const list = await place.call<KeyValuePairRecord[]>('root', 'GET', '/v1/keys?decrypt=true')
    expect(list.body.map(({ name, encrypted }) => [name, encrypted])).toEqual([
      ['s', true],
      ['t', false],
    ])
    expect((await put('s', { value: 'new', secret: true })).status).toBe(200)
    expect((await get('s?decrypt=true')).body.value).toBe('new')
  })
})

describe('time to live', () => {
  test('starts with each change of the item; a change without one removes it', async () => {
    await start()
    const before = Date.now()
    const { expire_timestamp: expiry = '' } = (await put('a', { value: 'x', ttl: 3600 })).body
    expect(Date.parse(expiry)).toBeGreaterThanOrEqual(before + 3_600_000 - 100)
    expect(Date.parse(expiry)).toBeLessThanOrEqual(Date.now() + 3_600_000 + 100)
    expect((await put('a', { value: 'x' })).body).not.toHaveProperty('expire_timestamp')
  })

  test('an expired item is absent at once and can be created again', async () => {
    await start()
    const old = await put('a', { value: 'canary', ttl: 3600, secret: true })
    await place.put('b', 'stays')
    await place.expire()
    expect((await get('a')).status).toBe(404)
    expect((await place.call('root', 'DELETE', '/v1/keys/a')).status).toBe(404)
    const list = await place.call<KeyValuePairRecord[]>('root', 'GET', '/v1/keys')
    expect([list.body.map(({ name }) => name), list.headers.get('x-total-count')]).toEqual([['b'], '1'])
    place.events.length = 0
    const fresh = await put('a', { value: 'new' })
    expect(fresh.body.id).not.toBe(old.body.id)
    expect(place.events.map(({ ref }) => ref)).toEqual(['core.svc.key_value_pair.create'])
    expect(countRows()).toBe(2)
  })

  test('each change deletes a few expired rows, maintenance deletes all', async () => {
    await start()
    for (let n = 0; n < 12; n += 1) await place.put(`k${n}`, 'x', { ttl: 60 })
    await place.put('stays', 'x')
    await place.expire()
    expect(countRows()).toBe(13)
    await place.put('another', 'x')
    expect(countRows()).toBe(10)
    for (const task of place.datastore.maintenance ?? []) await task.run(new AbortController().signal)
    expect(countRows()).toBe(2)
  })
})

describe('events of items', () => {
  const refs = () => place.events.map(({ ref }) => ref.replace('core.svc.key_value_pair.', ''))

  test('one per change, with the record', async () => {
    await start()
    const { body } = await put('a', { value: 'one' })
    const changed = await put('a', { value: 'two', ttl: 50 })
    await put('a', { value: 'two' })
    await place.call('root', 'DELETE', '/v1/keys/a')
    expect(refs()).toEqual(['create', 'update', 'value_change', 'update', 'delete'])
    expect(place.events.map(({ payload }) => payload)).toEqual([
      { object: body },
      { object: changed.body },
      { old_object: body, new_object: changed.body },
      { object: { ...body, value: 'two' } },
      { object: { ...body, value: 'two' } },
    ])
  })

  test('secrets are masked, and compared by their plain text', async () => {
    await start()
    await put('s', { value: 'canary-1', secret: true })
    await put('s', { value: 'canary-1', secret: true })
    await put('s', { value: 'canary-2', secret: true })
    await put('s', { value: 'canary-2' })
    await put('s', { value: 'canary-3', secret: true })
    await place.call('root', 'DELETE', '/v1/keys/s')
    expect(refs()).toEqual(['create', 'update', 'update', 'value_change', 'update', 'update', 'value_change', 'delete'])
    // Once it was no secret.
    expect(JSON.stringify(place.events).match(/canary-\d/g)).toEqual(['canary-2', 'canary-2'])
    expect(place.events[0]?.payload).toMatchObject({ object: { value: '********', secret: true } })
  })

  test('concurrent changes have ordered events', async () => {
    await start()
    const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => put('a', { value: `v${n}` })))
    expect(answers.map(({ status }) => status)).toEqual(Array(60).fill(200))
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    expect(refs().filter((ref) => ref === 'create')).toHaveLength(1)
    const changes = place.events.filter(({ ref }) => ref.endsWith('value_change')).map(({ payload }) => payload)
    expect(changes).toHaveLength(59)
    const valueOf = (record: unknown): string => (record as KeyValuePairRecord).value
    let last = valueOf(place.events[0]?.payload['object'])
    for (const { old_object: before, new_object: after } of changes) {
      expect(valueOf(before)).toBe(last)
      last = valueOf(after)
    }
    expect((await get('a')).body.value).toBe(last)
  })
})

test('the audit log records who set, deleted and decrypted items', async () => {
  await start({ users: { root: { role: 'admin' } } })
  const audits = (): string[] =>
    place
      .log()
      .split('\n')
      .filter((line) => line.includes(' AUDIT '))
  const { id } = (await put('s', { value: 'canary', secret: true })).body
  await put('t', { value: 'x' })
  await get('s')
  await get('t?decrypt=true')
  expect(audits().filter((line) => line.includes('decrypted'))).toEqual([])
  await get('s?decrypt=true')
  await place.call('root', 'GET', '/v1/keys?decrypt=true')
  await place.call('root', 'DELETE', '/v1/keys/s')
  const lines = audits()
  const texts = [
    `PUT /v1/keys/s succeeded id=${id}`,
    'User root decrypted the value s',
    'User root decrypted the values [s]',
    `DELETE /v1/keys/s succeeded id=${id}`,
  ]
  expect(texts.map((text) => lines.filter((line) => line.includes(text)).length)).toEqual([1, 1, 1, 1])
  expect(place.log()).not.toContain('canary')
})
