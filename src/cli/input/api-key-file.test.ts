import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { readApiKeyFile } from './api-key-file.ts'
import { CliFailure } from '../failures.ts'
import { toYaml } from '../output/yaml.ts'

const folder = makeFolder()
const { write } = folder
afterAll(() => folder.remove())

const id = '0123456789abcdef01234567'
const hash = 'ab'.repeat(64)

describe('files of API keys', () => {
  test('one object or a list, JSON or YAML', async () => {
    const one = { user: 'alice', key_hash: hash }
    const entry = { id: undefined, body: { user: 'alice', key_hash: hash, enabled: false } }
    expect(await readApiKeyFile(write('a.json', JSON.stringify(one)))).toEqual([entry])
    expect(await readApiKeyFile(write('a.JSON', JSON.stringify([one, one])))).toEqual([entry, entry])
    expect(await readApiKeyFile(write('a.yaml', toYaml(one)))).toEqual([entry])
    expect(await readApiKeyFile(write('a.yml', `---\n${toYaml([one, one])}`))).toEqual([entry, entry])
    expect(await readApiKeyFile(write('b.yml', `---\n${toYaml(one)}---\n${toYaml(one)}`))).toEqual([entry, entry])
  })

  test('what a list with secrets prints is taken back, times as the text they are', async () => {
    const record = {
      id,
      uid: `api_key:${hash}`,
      user: 'alice',
      key_hash: hash,
      metadata: { since: '2030-01-01', n: 1, yes: 'no' },
      created_at: '2030-01-01T00:00:00.000000Z',
      enabled: true,
      expires_at: '2031-01-01T00:00:00.000000Z',
      scopes: [{ permission_types: ['webhook_send'], resource_uid: 'webhook:sample' }],
      last_used_at: null,
    }
    const { user, key_hash, metadata, enabled, expires_at, scopes } = record
    const expected = [{ id, body: { user, key_hash, metadata, enabled, expires_at, scopes } }]
    expect(await readApiKeyFile(write('c.yaml', `---\n${toYaml([record], { sortKeys: true })}`))).toEqual(expected)
    const bare = `user: alice\nkey_hash: ${hash}\nmetadata:\n  at: 2030-01-01\ncreated_at: 2030-01-01T00:00:00Z\n`
    expect((await readApiKeyFile(write('d.yaml', bare)))[0]?.body['metadata']).toEqual({ at: '2030-01-01' })
  })

  test.each<[string, string, string | Uint8Array, RegExp]>([
    ['an unknown ending', 'x.txt', '{}', /must end with \.json, \.yaml or \.yml/],
    ['broken JSON', 'x.json', `[\n{"user": "a", "key_hash": "${hash}",]`, /is not JSON/],
    ['broken YAML', 'x.yaml', `a: 1\nb: [${hash}`, /is not YAML: see line \d/],
    ['dangerous YAML', 'x.yaml', 'a: !!js/function "x"', /is not YAML/],
    ['bytes', 'x.json', new Uint8Array([0x22, 0xff, 0x22]), /is not UTF-8/],
    ['nothing', 'x.json', '[]', /contains no API key/],
    ['an empty file', 'x.yaml', '', /contains no API key/],
    ['text', 'x.json', '"a"', /entry 1: it must be an object/],
    ['no user', 'x.json', JSON.stringify({ key_hash: hash }), /entry 1: user is missing/],
    [
      'no hash',
      'x.json',
      JSON.stringify([{ user: 'a', key_hash: hash }, { user: 'a' }]),
      /entry 2: key_hash is missing/,
    ],
    [
      'a masked hash',
      'x.json',
      JSON.stringify({ user: 'a', key_hash: '********' }),
      /entry 1: key_hash is masked .*--show-secrets/,
    ],
    [
      'metadata',
      'x.json',
      JSON.stringify({ user: 'a', key_hash: hash, metadata: [] }),
      /entry 1: metadata must be an object/,
    ],
    [
      'enabled',
      'x.json',
      JSON.stringify({ user: 'a', key_hash: hash, enabled: 'yes' }),
      /entry 1: enabled must be true or false/,
    ],
    [
      'id',
      'x.json',
      JSON.stringify({ user: 'a', key_hash: hash, id: '../x' }),
      /entry 1: id must be 24 hexadecimal digits/,
    ],
    [
      'aliases that stand for more than any memory holds',
      'x.yaml',
      [
        'a0: &a0 x',
        ...Array.from({ length: 12 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`),
        `user: a\nkey_hash: ${hash}\nmetadata: {a: *a12}\n`,
      ].join('\n'),
      /entry 1: it holds more than 65536 values/,
    ],
    ['many', 'x.json', JSON.stringify(Array.from({ length: 30 }, () => ({ a: 1 }))), /entry 1: user[^]*and 40 more/],
  ])('refused: %s', async (_what, name, content, message) => {
    const refusal: unknown = await readApiKeyFile(write(name, content)).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(CliFailure)
    expect(refusal).toMatchObject({ exitCode: 2, message: expect.stringMatching(message) })
    expect(String(refusal)).not.toContain(hash)
  })

  test('a missing file and a folder are named', async () => {
    await expect(readApiKeyFile(join(folder.path, 'none.json'))).rejects.toThrow(/none\.json does not exist/)
    await expect(readApiKeyFile(folder.path)).rejects.toThrow(/is not a file/)
  })
})
