/** The datastore in templates: what is read, in whose name, and what errors tell. */
import { afterEach, describe, expect, test } from 'vitest'
import { startDatastore, type DatastoreOptions, type TestDatastore } from '../../../tests/helpers/datastore.ts'
import { render, TemplateError } from '../../lib/template/render.ts'
import type { KeyValuePairRecord } from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'

let place: TestDatastore

afterEach(() => place.stop())

const grant = (type: string, name: string) => ({
  permission_types: [type],
  resource_uid: `key_value_pair:svckv.system:${name}`,
})

async function start(options: DatastoreOptions = {}): Promise<void> {
  place = await startDatastore({
    users: {
      root: { role: 'admin' },
      eye: { role: 'observer' },
      ann: { grants: ['a', 'a.b', 's'].map((name) => grant('key_value_pair_view', name)) },
      bob: { grants: [grant('key_value_pair_set', 'a')] },
    },
    ...options,
  })
  await place.put('a', 'text')
  await place.put('a.b', 'inner')
  await place.put('n', '7')
  await place.put('s', 'canary-s', { secret: true })
  await place.put('other', 'canary-other', { secret: true })
  await place.put('__proto__', 'of __proto__')
  await place.put('constructor', 'of constructor')
  for (const user of ['root', 'ann', 'bob']) {
    await place.put('mine', `canary of ${user}`, { scope: 'user' }, user)
    await place.put('hidden', `canary-hidden of ${user}`, { scope: 'user', secret: true }, user)
  }
}

/** What it gives, or the message of the error. */
function run(text: string, reader: TemplateReader | string = 'root', more: Record<string, unknown> = {}): unknown {
  const scope = place.datastore.templates(typeof reader === 'string' ? { user: reader } : reader)
  try {
    return render(text, { ...scope.variables, ...more }, { filters: scope.filters ?? {} })
  } catch (error) {
    if (error instanceof TemplateError) return `error: ${error.message}`
    throw error
  }
}

const refused = (user: string, uid: string): string =>
  `error: User "${user}" doesn't have required permission "key_value_pair_view" on resource "key_value_pair:${uid}"`

describe('values', () => {
  test('of the system and of the reader', async () => {
    await start()
    const cases: [string, unknown][] = [
      ['{{ svckv.system.a }}', 'text'],
      ['<{{ svckv.system.a }}>', '<text>'],
      ['{{ svckv.system.a.b }}', 'inner'],
      ["{{ svckv['system']['a'] }}{{ svckv.system['a.b'] }}{{ svckv['system'].a['b'] }}", 'textinnerinner'],
      ['{{ svckv.system.missing }}', ''],
      ['<{{ svckv.system.missing.deeper }}>', '<>'],
      ['{{ svckv.system.n | int + 1 }}', 8],
      ["{{ 'yes' if svckv.system.a == 'text' else 'no' }}", 'yes'],
      ["{{ svckv.system.a + '-' + svckv.system.n }}", 'text-7'],
      ['{{ [svckv.system.a, {"k": svckv.system.n}] }}', ['text', { k: '7' }]],
      ['{{ svckv.user.mine }}', 'canary of root'],
      ['{{ svckv.user.a }}', ''],
      ["{{ svckv.system['__proto__'] }}{{ svckv.system.constructor }}", 'of __proto__of constructor'],
      ["{{ svckv['__proto__'] is defined }}{{ svckv.constructor is defined }}", 'FalseFalse'],
      ["{{ 'a' in svckv.system }}{{ 'missing' in svckv.system }}", 'TrueFalse'],
      ['{{ svckv.galaxy.a }}', expect.stringMatching(/^error: .*galaxy/)],
      ['{{ svckv }}', expect.stringMatching(/^error: /)],
      ['{{ svckv.system }}', expect.stringMatching(/^error: /)],
      [`{{ svckv.system['${'x'.repeat(2000)}'] }}`, ''],
      ["{{ svckv.system['a\\x00b'] }}", ''],
    ]
    expect(cases.map(([text]) => [text, run(text)])).toEqual(cases)
  })

  test('are current, and absent after they expire', async () => {
    await start()
    const scope = place.datastore.templates({ user: 'root' })
    const read = (): unknown => render('{{ svckv.system.a }}', scope.variables)
    expect(read()).toBe('text')
    await place.put('a', 'new', { ttl: 60 })
    expect(read()).toBe('new')
    await place.expire()
    expect(read()).toBe('')
  })

  test('are never rendered again', async () => {
    await start()
    await place.put('t', '{{ svckv.system.s | decrypt_kv }}')
    expect(run('{{ svckv.system.t }}')).toBe('{{ svckv.system.s | decrypt_kv }}')
    expect(run('<{{ svckv.system.t }}>')).toBe('<{{ svckv.system.s | decrypt_kv }}>')
  })
})

describe('secrets', () => {
  test('are cipher text until they are decrypted', async () => {
    await start()
    const sealed = (await place.call<KeyValuePairRecord>('root', 'GET', '/v1/keys/s')).body.value
    expect(run('{{ svckv.system.s }}')).toBe(sealed)
    const cases: [string, unknown][] = [
      ['{{ svckv.system.s | decrypt_kv }}', 'canary-s'],
      ['<{{ svckv.system.s | decrypt_kv | upper }}>', '<CANARY-S>'],
      ['{% set x = svckv.system.s %}{{ x | decrypt_kv }}', 'canary-s'],
      ['{{ given | decrypt_kv }}', 'canary-s'],
      ['{{ given | lower | decrypt_kv }}', 'canary-s'],
      ['{{ svckv.user.hidden | decrypt_kv }}', 'canary-hidden of root'],
    ]
    expect(cases.map(([text]) => [text, run(text, 'root', { given: sealed })])).toEqual(cases)
    expect(place.log()).toContain('User root decrypted the value s')
    expect(place.log()).not.toContain('canary-s')
  })

  test('only the value of an item is decrypted', async () => {
    await start()
    const before = (await place.call<KeyValuePairRecord>('root', 'GET', '/v1/keys/s')).body.value
    await place.put('s', 'canary-new', { secret: true })
    const none = 'error: the value is not the encrypted value of any key'
    const cases: [string, unknown][] = [
      ['{{ given | decrypt_kv }}', none],
      ['{{ svckv.system.a | decrypt_kv }}', none],
      ["{{ 'text' | decrypt_kv }}", none],
      [
        '{{ svckv.system.missing | decrypt_kv }}',
        expect.stringMatching(/no value to decrypt: the key does not exist or is empty/),
      ],
      ['{{ 5 | decrypt_kv }}', expect.stringMatching(/only the value of a key can be decrypted/)],
      ['{{ none | decrypt_kv }}', expect.stringMatching(/only the value of a key/)],
      ['{{ nothing | decrypt_kv }}', expect.stringMatching(/'nothing' is undefined/)],
    ]
    expect(cases.map(([text]) => [text, run(text, 'root', { given: before })])).toEqual(cases)
  })

  test('cipher text of another user is not decrypted', async () => {
    await start()
    const sealedOf = async (user: string): Promise<string> =>
      (await place.call<KeyValuePairRecord>(user, 'GET', '/v1/keys/hidden?scope=user')).body.value
    const given = await sealedOf('bob')
    expect(run('{{ given | decrypt_kv }}', 'ann', { given })).toBe(refused('ann', 'svckv.user:bob:hidden'))
    expect(run('{{ given | decrypt_kv }}', 'root', { given })).toBe('canary-hidden of bob')
    expect(run('{{ given | decrypt_kv }}', 'bob', { given })).toBe('canary-hidden of bob')
  })
})

describe('templates read only with permission (CVE-2022-44009)', () => {
  test('checked at the time of reading', async () => {
    await start()
    const cases: [string, TemplateReader, unknown][] = [
      ['{{ svckv.system.a }}', { user: 'ann' }, 'text'],
      ['{{ svckv.system.a }}', { user: 'bob' }, 'text'],
      ['{{ svckv.system.a }}', { user: 'eye' }, 'text'],
      ['{{ svckv.system.a }}', { user: 'nobody' }, refused('nobody', 'svckv.system:a')],
      ['{{ svckv.system.n }}', { user: 'ann' }, refused('ann', 'svckv.system:n')],
      ['{{ svckv.system.a.b }}', { user: 'bob' }, refused('bob', 'svckv.system:a.b')],
      // Whether there is such a key is not for them to know.
      ['{{ svckv.system.missing }}', { user: 'ann' }, refused('ann', 'svckv.system:missing')],
      ["{{ 'n' in svckv.system }}", { user: 'ann' }, refused('ann', 'svckv.system:n')],
      ["{{ svckv.system.n | default('x') }}", { user: 'ann' }, refused('ann', 'svckv.system:n')],
      ['{{ svckv.system.s | decrypt_kv }}', { user: 'ann' }, 'canary-s'],
      ['{{ svckv.system.other | decrypt_kv }}', { user: 'ann' }, refused('ann', 'svckv.system:other')],
      ['{{ svckv.system.s | decrypt_kv }}', { user: 'eye' }, refused('eye', 'svckv.system:s')],
      ['{{ svckv.system.s | decrypt_kv }}', { user: 'root', author: 'eye' }, refused('eye', 'svckv.system:s')],
      ['{{ svckv.user.mine }}', { user: 'ann' }, 'canary of ann'],
      ['{{ svckv.user.mine }}', { user: 'nobody' }, ''],
    ]
    expect(cases.map(([text, reader]) => [text, reader, run(text, reader)])).toEqual(cases)
  })

  test('of the author of the template as well', async () => {
    await start()
    const cases: [string, TemplateReader, unknown][] = [
      ['{{ svckv.system.a }}', { user: 'root', author: 'ann' }, 'text'],
      ['{{ svckv.system.s | decrypt_kv }}', { user: 'root', author: 'ann' }, 'canary-s'],
      ['{{ svckv.system.n }}', { user: 'root', author: 'ann' }, refused('ann', 'svckv.system:n')],
      ['{{ svckv.system.other | decrypt_kv }}', { user: 'root', author: 'ann' }, refused('ann', 'svckv.system:other')],
      ['{{ svckv.system.s }}', { user: 'bob', author: 'ann' }, refused('bob', 'svckv.system:s')],
      ['{{ svckv.system.a }}', { user: 'ann', author: 'ann' }, 'text'],
      // Items of one user are not for whoever writes what runs in that user's name.
      ['{{ svckv.user.mine }}', { user: 'root', author: 'ann' }, refused('ann', 'svckv.user:root:mine')],
      ['{{ svckv.user.mine }}', { user: 'ann', author: 'root' }, 'canary of ann'],
    ]
    expect(cases.map(([text, reader]) => [text, reader, run(text, reader)])).toEqual(cases)
  })

  test('within the scopes of the credential', async () => {
    await start()
    const scopes = [
      { permission_types: ['key_value_pair_view' as const], resource_uid: 'key_value_pair:svckv.system:a' },
    ]
    const cases: [string, TemplateReader, unknown][] = [
      ['{{ svckv.system.a }}', { user: 'root', scopes }, 'text'],
      ['{{ svckv.system.n }}', { user: 'root', scopes }, refused('root', 'svckv.system:n')],
      ['{{ svckv.user.mine }}', { user: 'root', scopes }, refused('root', 'svckv.user:root:mine')],
      ['{{ svckv.system.a }}', { user: 'nobody', scopes }, refused('nobody', 'svckv.system:a')],
      ['{{ svckv.system.a }}', { user: 'root', scopes, author: 'root' }, 'text'],
      ['{{ svckv.system.n }}', { user: 'root', scopes, author: 'root' }, refused('root', 'svckv.system:n')],
    ]
    expect(cases.map(([text, reader]) => [text, reader, run(text, reader)])).toEqual(cases)
  })

  test('without access control everybody can read everything except items of other users', async () => {
    await start({ accessControl: false })
    const given = (await place.call<KeyValuePairRecord>('bob', 'GET', '/v1/keys/hidden?scope=user')).body.value
    const cases: [string, TemplateReader, unknown][] = [
      ['{{ svckv.system.other | decrypt_kv }}', { user: 'nobody' }, 'canary-other'],
      ['{{ svckv.system.n }}', { user: 'nobody', author: 'somebody' }, '7'],
      ['{{ svckv.user.mine }}', { user: 'bob' }, 'canary of bob'],
      ['{{ given | decrypt_kv }}', { user: 'bob' }, 'canary-hidden of bob'],
      ['{{ given | decrypt_kv }}', { user: 'ann' }, refused('ann', 'svckv.user:bob:hidden')],
      ['{{ svckv.user.mine }}', { user: 'bob', author: 'ann' }, refused('ann', 'svckv.user:bob:mine')],
    ]
    expect(cases.map(([text, reader]) => [text, reader, run(text, reader, { given })])).toEqual(cases)
  })

  test('errors contain no values', async () => {
    await start()
    const texts = [
      '{{ svckv.system.other }}',
      '{{ svckv.system.s | decrypt_kv | from_json_string }}',
      '{{ (svckv.system.s | decrypt_kv) + 1 }}',
      '{{ (svckv.system.s | decrypt_kv).missing }}',
      '{{ (svckv.system.s | decrypt_kv) | nofilter }}',
      '{{ {}[svckv.system.s | decrypt_kv] }}',
      '{{ svckv[svckv.system.s | decrypt_kv] | upper }}',
      "{{ 'x' | replace }}{{ svckv.system.s | decrypt_kv }}",
      '{{ svckv.system.s | decrypt_kv | int / 0 }}',
      '{{ svckv.user.hidden | decrypt_kv | from_yaml_string | nothing }}',
    ]
    const errors = texts.map((text) => String(run(text, 'ann')))
    expect(errors.filter((error) => !error.startsWith('error: ') && error !== '')).toEqual([])
    expect(errors.join('\n')).not.toMatch(/canary|[0-9A-F]{40}/)
  })
})
