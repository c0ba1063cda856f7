import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import type { Database } from '../../db/database.ts'
import { loadEncryption } from '../../core/encryption.ts'
import { readYamlDocument } from '../../lib/text/metadata.ts'
import { MASK } from '../../lib/schema/index.ts'
import { TemplateError, type TemplateScope } from '../../lib/template/render.ts'
import { createConfigs, type Configs } from './configs.ts'
import { createPackStore } from './store.ts'
import { readJson } from '../../lib/json/index.ts'

let folder: TemporaryFolder
let database: Database
let configs: Configs
let reads: string[]

const cipherText = 'AB'.repeat(40)
const keys: Readonly<Record<string, string>> = { host: 'db.example', token: cipherText, plain: 'hello', number: '7' }

/** As the datastore gives them: what does not exist is an empty text. */
function templates({ user }: { user: string }): TemplateScope {
  const read = (name: string): string => {
    reads.push(`${user}:${name}`)
    if (name === 'forbidden') throw new TemplateError('FILTER', 'it may not be viewed')
    return keys[name] ?? ''
  }
  const items = { get: (name: string) => ({ get: () => undefined, has: () => false, value: () => read(name) }) }
  return {
    variables: { svckv: { get: () => items } },
    filters: {
      decrypt_kv: ([value]) => {
        if (value !== cipherText) throw new TemplateError('FILTER', 'it is not the value of any key')
        return 'opened'
      },
    },
  }
}

beforeEach(async () => {
  folder = makeFolder()
  ;({ database } = await openDatabase(folder.path))
  reads = []
  configs = createConfigs({
    database,
    store: createPackStore(database),
    encryption: await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder.path, 'keys.json') }),
    templates,
    folder: join(folder.path, 'configs'),
  })
  mkdirSync(join(folder.path, 'configs'))
})
afterEach(async () => {
  await database.close()
  folder.remove()
})

async function register(schema: string | undefined, values?: string) {
  if (values !== undefined) writeFileSync(join(folder.path, 'configs', 'mine.yaml'), values)
  const document = schema === undefined ? undefined : readYamlDocument(schema)
  if (document !== undefined && 'problem' in document) throw new Error(document.problem.message)
  const registration = await configs.register({
    ref: 'mine',
    configSchema: document && { path: 'config.schema.yaml', document },
  })
  return registration
}

const resolve = (user = 'somebody') => configs.resolve('mine', { user })

describe('resolving', () => {
  test('defaults fill what is missing, at every depth', async () => {
    await register(
      [
        'a: {type: string, default: x}',
        'b: {type: object, properties: {c: {type: integer, default: 1}, d: {type: string}}}',
        'e: {type: object, properties: {f: {type: string}}}',
        'g: {type: array, items: {type: object, properties: {h: {type: integer, default: 2}}}}',
        'i: {type: object, additionalProperties: {type: object, properties: {j: {type: integer, default: 3}}}}',
        'k: {type: array, items: [{type: string}], additionalItems: {type: object, properties: {l: {default: 4}}}}',
        'm: {type: object, patternProperties: {"^x": {type: object, properties: {n: {default: 5}}}}}',
      ].join('\n'),
      'g: [{}, {h: 9}]\ni: {one: {}}\nk: [a, {}]\nm: {x1: {}, y: {}}\n',
    )
    expect(resolve().values).toEqual({
      a: 'x',
      b: { c: 1 },
      e: {},
      g: [{ h: 2 }, { h: 9 }],
      i: { one: { j: 3 } },
      k: ['a', { l: 4 }],
      m: { x1: { n: 5 }, y: {} },
    })
  })

  test('without a file the defaults count, without a schema the file', async () => {
    await register('a: {default: 1}\n')
    expect(resolve()).toMatchObject({ values: { a: 1 }, secrets: [] })
    await register(undefined, 'anything: [goes]\n')
    expect(resolve()).toMatchObject({ values: { anything: ['goes'] }, secrets: [] })
    expect(configs.resolve('nothing', { user: 'somebody' })).toMatchObject({ values: {}, secrets: [] })
  })

  test('templates are rendered in the name of the reader', async () => {
    await register(
      'url: {type: string}\nlist: {type: array, items: {type: string}}\n',
      'url: "https://{{ svckv.system.host }}/"\nlist: ["{{ svckv.user.plain }}"]\nn: "{{ svckv.system.number | int }}"\n',
    )
    expect(resolve('jane').values).toEqual({ url: 'https://db.example/', list: ['hello'], n: '7' })
    expect(reads).toEqual(['jane:host', 'jane:plain', 'jane:number'])
  })

  test('schemas are followed through references: values, defaults and secrets', async () => {
    const schema = [
      'site: {type: object, properties: {host: {type: string}, port: {type: integer, default: 22}, token: {type: string, secret: true}}, additionalProperties: false}',
      'sites: {type: object, additionalProperties: {$ref: "#/properties/site"}}',
      'tree: {type: object, properties: {kids: {type: array, items: {$ref: "#/properties/tree"}}, pass: {type: string, secret: true}}}',
    ]
      .join('\n')
      .replace('', '')
    await register(schema, 'sites: {a: {host: x, token: one}}\ntree: {kids: [{kids: [{pass: two}]}]}\n')
    const { values, secrets } = resolve()
    expect(values).toEqual({
      site: { port: 22 },
      sites: { a: { host: 'x', port: 22, token: 'one' } },
      tree: { kids: [{ kids: [{ pass: 'two' }] }] },
    })
    expect(new Set(secrets)).toEqual(new Set(['one', 'two']))
    const { problems } = await register(schema, 'sites: {a: {nohost: x}}\n')
    expect(problems).toMatchObject([{ key: 'sites.a.nohost' }])
    // The configuration is checked against the schema from before.
    expect((await register('a: {type: array, items: {$ref: "#/properties/none"}}\n')).problems).toMatchObject([
      { file: 'config.schema.yaml' },
      { file: 'configs/mine.yaml', isWarning: true },
      { file: 'configs/mine.yaml', key: 'sites.a.nohost' },
    ])
  })

  test('references that double the work on each level cost no more than the bound', async () => {
    const twice = 'allOf: [{$ref: "#/properties/a"}, {$ref: "#/properties/a"}]'
    const deep = `${'{b: '.repeat(40)}1${'}'.repeat(40)}`
    const { problems } = await register(`a: {type: object, properties: {b: {${twice}}}}\n`, `a: ${deep}\n`)
    expect(problems).toMatchObject([{ message: expect.stringContaining('$ref') as unknown }])
  })

  test('a template that is none fails, and names its key', async () => {
    await register(undefined, 'a: {b: "{{ }}"}\n')
    expect(() => resolve()).toThrow(/key "a\.b"/)
  })

  test('what does not exist is null', async () => {
    await register(undefined, 'a: "{{ svckv.system.nothing }}"\n')
    expect(resolve().values).toEqual({ a: null })
  })

  test('secrets are decrypted and told', async () => {
    await register(
      [
        'token: {type: string, secret: true}',
        'plain: {type: string, secret: true}',
        'fixed: {type: string, secret: true}',
        'whole: {type: object, secret: true}',
        'open: {type: string}',
      ].join('\n'),
      [
        'token: "{{ svckv.system.token }}"',
        'plain: "{{ svckv.system.plain }}"',
        'fixed: abc',
        'whole: {deep: [def]}',
        'open: "{{ svckv.system.token | decrypt_kv }}!"',
      ].join('\n'),
    )
    const { values, secrets } = resolve()
    expect(values).toEqual({ token: 'opened', plain: 'hello', fixed: 'abc', whole: { deep: ['def'] }, open: 'opened!' })
    expect(new Set(secrets)).toEqual(new Set(['opened', 'hello', 'abc', { deep: ['def'] }]))
  })

  test.each([
    ['{{ svckv.system.forbidden }}', 'it may not be viewed'],
    ['{{ unheard.of }}', "'unheard' is undefined\\. To keep such text as it is, write {% raw %} before it"],
    ['{{ svckv.system.plain | decrypt_kv }}', 'it is not the value of any key'],
  ])('%s fails, and says where', async (template, why) => {
    await register('b: {type: object}\n', `b: {c: "${template}"}\n`)
    expect(() => resolve()).toThrow(
      expect.objectContaining({
        code: 'TEMPLATE_FAILED',
        message: expect.stringMatching(
          new RegExp(
            `^Failed to render dynamic configuration value for key "b\\.c" with value ".*" for pack "mine" config: .*${why}`,
          ),
        ),
      }),
    )
  })

  test('what the schema says nothing about is secret by its name, as in what is shown', async () => {
    await register('host: {type: string}\n', 'host: a\npassword: hunter22\ndeep: {token: "{{ svckv.system.plain }}"}\n')
    expect(configs.get('mine', false).values).toEqual({ host: 'a', password: MASK, deep: { token: MASK } })
    expect(resolve()).toMatchObject({
      values: { host: 'a', password: 'hunter22', deep: { token: 'hello' } },
      secrets: ['hunter22', 'hello'],
    })
    await register(undefined, 'password: hunter22\n')
    expect(resolve().secrets).toEqual(['hunter22'])
  })

  test('the template of a secret is not repeated', async () => {
    await register('a: {type: string, secret: true}\n', 'a: "prefix {{ svckv.system.forbidden }}"\n')
    expect(() => resolve()).toThrow('with value "********"')
  })

  test('is the same object while nothing changes, and another afterwards', async () => {
    await register('a: {default: 1}\n', 'b: 1\n')
    const first = resolve()
    expect(resolve()).toBe(first)
    await configs.put('mine', { b: 2 })
    expect(resolve().values).toEqual({ b: 2, a: 1 })
  })
})

describe('checking', () => {
  test.each<[string, string, string, string]>([
    ['a template in an enum', 'a: {type: string, enum: [x]}', 'a: "{{ svckv.system.a }}"', ''],
    [
      'a template under a pattern',
      'a: {type: object, properties: {b: {type: string, pattern: "^x"}}}',
      'a: {b: "{{ a }}"}',
      '',
    ],
    ['a template in a list', 'a: {type: array, items: {type: string, maxLength: 2}}', 'a: ["{{ abc }}", ok]', ''],
    ['a long text beside it', 'a: {type: array, items: {type: string, maxLength: 2}}', 'a: ["{{ abc }}", long]', 'a.1'],
    [
      'a template under a name pattern',
      'a: {type: object, patternProperties: {"^x": {type: string, enum: [v]}}, additionalProperties: false}',
      'a: {x1: "{{ b }}"}',
      '',
    ],
    [
      'a name that fits none',
      'a: {type: object, patternProperties: {"^x": {type: string}}, additionalProperties: false}',
      'a: {x1: "{{ b }}", y: 1}',
      'a.y',
    ],
    ['a template for a number', 'a: {type: integer}', 'a: "{{ b }}"', 'a'],
    ['null of what is optional', 'a: {type: integer}', 'a: null', ''],
    ['what is required has a default', 'a: {type: integer, required: true, default: 1}', '{}', ''],
    ['required deep inside', 'a: {type: object, properties: {b: {type: string, required: true}}}', 'a: {}', 'a.b'],
    [
      'required in what is not there',
      'a: {type: object, properties: {b: {type: string, required: true}, c: {default: 1}}}',
      '{}',
      '',
    ],
    ['items beyond the list', 'a: {type: array, items: [{type: string}], additionalItems: false}', 'a: [x, y]', 'a'],
  ])('%s', async (_, schema, values, path) => {
    const { registered, problems } = await register(`${schema}\n`, `${values}\n`)
    expect([registered, problems.map(({ key }) => key)]).toEqual(path === '' ? [1, []] : [0, [path]])
  })

  test('what is broken leaves what was there', async () => {
    await register('a: {type: integer}\n', 'a: 1\n')
    const message =
      'config.schema.yaml is invalid, so the configuration is checked against the schema that was registered last'
    expect(await register('a: {type: word}\n', 'a: x\n')).toMatchObject({
      registered: 0,
      problems: [{ key: 'a.type' }, { file: 'configs/mine.yaml', message, isWarning: true }, { key: 'a' }],
    })
    expect(resolve().values).toEqual({ a: 1 })
    expect(await register('a: {type: word}\n', 'a: 2\n')).toMatchObject({ registered: 1 })
    expect(resolve().values).toEqual({ a: 2 })
    expect(await register('a: {type: integer}\n', 'a: 1\n')).toMatchObject({ registered: 1, problems: [] })
    expect(await register('a: {type: integer}\n', 'a: [\n')).toMatchObject({ registered: 0, removed: 0 })
    expect(resolve().values).toEqual({ a: 1 })
  })

  test.each([
    ['a reference to nothing', 'a: {$ref: "#/properties/nosuch"}\n'],
    ['a whole schema in the place of attributes', 'type: object\nproperties: {a: {type: string}}\n'],
    ['a list', '- a\n'],
  ])('a schema that is refused does not take the configuration along: %s', async (_, schema) => {
    expect(await register(schema, 'a: "{{ svckv.system.plain }}"\ntoken: t\n')).toMatchObject({
      registered: 1,
      problems: expect.arrayContaining([
        expect.objectContaining({ file: 'config.schema.yaml' }),
        {
          file: 'configs/mine.yaml',
          message: 'config.schema.yaml is invalid, so the configuration is used unchecked',
          isWarning: true,
        },
      ]) as unknown,
    })
    expect(resolve().values).toEqual({ a: 'hello', token: 't' })
    // Without a schema names say what is secret.
    expect(configs.get('mine', false).values).toMatchObject({ token: MASK })
  })

  test('an empty file says nothing', async () => {
    expect(await register('a: {default: 1}\n', '# nothing\n')).toMatchObject({ registered: 1, problems: [] })
    expect(resolve().values).toEqual({ a: 1 })
  })
})

describe('writing', () => {
  test.each<[string, unknown]>([
    ['text that looks like something else', ['yes', 'y', 'null', '1', '0o17', '1:30', '2024-01-01', '1e3', '~', '']],
    [
      'characters',
      ['é 漢 😀', '\u0000\u0007', '\u2028', 'a\nb\n', '  x ', '#', '- a', '{{ a }}', "it's", '"', '\ufeff', '\u0085'],
    ],
    ['numbers', readJson('[0,-1,-0,1.5,1e-7,9007199254740991,820982911946154508,21.0,1.10,1e+21,1.5e-30]')],
    ['nesting', { a: { b: [{ c: [] }, {}, null, true] } }],
    ['names', { 'a b': 1, '': 2, '1': 3, yes: 4, '<<': 5, ['long'.repeat(500)]: 6, '? x': 7, '[a]': 8 }],
    ['halves of characters', ['\ud800', 'a\udc00b']],
  ])('%s reads as it was written', async (_, value) => {
    await register(undefined, '{}\n')
    await configs.put('mine', { value })
    const text = readFileSync(configs.fileOf('mine'), 'utf8')
    expect(readYamlDocument(text)).toMatchObject({ value: { value } })
    expect(configs.get('mine', true).values).toEqual({ value })
  })

  test.each<[string, unknown]>([
    ['too large', 'x'.repeat(1_048_576)],
    ['too many values', Array.from({ length: 30_000 }, () => 1)],
    ['too deep', JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`)],
  ])('what could not be read again is refused, and nothing is changed: %s', async (_, value) => {
    await register(undefined, 'value: 1\n')
    await expect(configs.put('mine', { value })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    expect(readFileSync(configs.fileOf('mine'), 'utf8')).toBe('value: 1\n')
    expect(configs.get('mine', true).values).toEqual({ value: 1 })
  })

  test('gives a configuration back its use when the key of what is stored is gone', async () => {
    await register('token: {type: string, secret: true}\nhost: {type: string}\n', 'token: old\n')
    const later = createConfigs({
      database,
      store: createPackStore(database),
      encryption: await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder.path, 'other.json') }),
      templates,
      folder: join(folder.path, 'configs'),
    })
    expect(() => later.get('mine', false)).toThrow('Crypto key not found')
    const values = { token: MASK, host: 'a' }
    await expect(later.put('mine', values)).rejects.toMatchObject({ code: 'CRYPTO_KEY_MISSING' })
    await later.put('mine', { token: 'new', host: 'a' })
    expect(later.get('mine', false).values).toEqual(values)
    expect(later.resolve('mine', { user: 'somebody' }).values).toEqual({ token: 'new', host: 'a' })
  })
})
