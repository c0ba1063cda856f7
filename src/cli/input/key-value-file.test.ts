import { afterAll, describe, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { CliFailure } from '../failures.ts'
import { readPairFile } from './key-value-file.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

const SECOND = 1_000_000

const write = (entries: unknown, name = 'pairs.json'): string => folder.write(name, entries)

describe('files of key-value pairs', () => {
  test('what a list prints is taken back', async () => {
    const record = {
      id: '6000000000000000000000aa',
      uid: 'key_value_pair:svckv.system:web.password',
      name: 'web.password',
      description: 'of the shop',
      value: '00AABB',
      scope: 'svckv.system',
      secret: true,
      encrypted: true,
      user: null,
    }
    const { name, description, value, scope, secret, encrypted } = record
    const sent = { name, description, value, scope, secret, encrypted }
    expect(await readPairFile(write([record]), false)).toEqual([{ name, body: sent, isExpired: false }])
    expect(await readPairFile(write(record), false)).toHaveLength(1)
    const yaml = '- name: a\n  value: "1"\n- name: b\n  value: text\n  ttl: 60\n  user: alice\n  scope: user\n'
    expect(await readPairFile(write(yaml, 'pairs.yaml'), false)).toEqual([
      { name: 'a', body: { name: 'a', value: '1' }, isExpired: false },
      { name: 'b', body: { name: 'b', value: 'text', ttl: 60, user: 'alice', scope: 'user' }, isExpired: false },
    ])
  })

  test('what is left of the time to be kept is what counts, and a ttl more than that', async () => {
    const at = (seconds: number): string => formatMicros(nowMicros() + seconds * SECOND)
    const entries = await readPairFile(
      write([
        { name: 'a', value: '', expire_timestamp: at(100) },
        { name: 'b', value: '', expire_timestamp: at(-1) },
        { name: 'c', value: '', expire_timestamp: at(-1), ttl: 5 },
      ]),
      false,
    )
    expect(entries.map(({ isExpired }) => isExpired)).toEqual([false, true, false])
    const [left, , given] = entries.map(({ body }) => body['ttl'])
    expect(left).toBeGreaterThan(90)
    expect(left).toBeLessThanOrEqual(100)
    expect(given).toBe(5)
  })

  test('values that are no text are converted when that is asked for', async () => {
    const values = [{ a: [1, null] }, [1, 'zwei'], 5, true, null, 'text', '{"a": 1}']
    const path = write(values.map((value, n) => ({ name: `k${n}`, value })))
    const bodies = (await readPairFile(path, true)).map(({ body }) => body['value'])
    expect(bodies).toEqual(['{"a":[1,null]}', '[1,"zwei"]', '5', 'true', 'null', 'text', '{"a": 1}'])
    await expect(readPairFile(path, false)).rejects.toThrow(
      'entry 1: value is not text; to convert it to JSON, use -c/--convert',
    )
    expect((await readPairFile(write('name: at\nvalue: 2030-01-01\n', 'x.yaml'), false))[0]?.body['value']).toBe(
      '2030-01-01',
    )
  })

  test.each<[string, unknown, RegExp]>([
    ['no list', 5, /entry 1: it must be an object with name and value/],
    ['nothing', [], /contains no key-value pair/],
    [
      'an entry without a name',
      [{ name: 'a', value: '' }, { value: '' }],
      /nothing was sent:\n {2}entry 2: name is missing/,
    ],
    ['an empty name', [{ name: '', value: '' }], /name is missing or not text/],
    ['no value', [{ name: 'a' }], /value is missing/],
    ['a scope that is no text', [{ name: 'a', value: '', scope: 1 }], /scope must be text/],
    ['a user that is no text', [{ name: 'a', value: '', user: [] }], /user must be text/],
    ['a secret that is a word', [{ name: 'a', value: '', secret: 'yes' }], /secret must be true or false/],
    ['a lifetime of nothing', [{ name: 'a', value: '', ttl: 0 }], /ttl must be a whole number of seconds, 1 or more/],
    ['a lifetime that is text', [{ name: 'a', value: '', ttl: '60' }], /ttl must be a whole number/],
    ['no time', [{ name: 'a', value: '', expire_timestamp: 'soon' }], /expire_timestamp must be a time such as/],
  ])('%s is refused', async (_, entries, message) => {
    const refusal = readPairFile(write(entries), false)
    await expect(refusal).rejects.toThrow(message)
    await expect(refusal).rejects.toBeInstanceOf(CliFailure)
    await expect(refusal).rejects.toMatchObject({ exitCode: 2 })
  })

  test('a number that JSON would make null of is refused', async () => {
    await expect(readPairFile(write('[{"name": "a", "value": {"n": 1e400}}]', 'huge.json'), true)).rejects.toThrow(
      'cannot be read: a number is too large',
    )
  })

  test('aliases that stand for very much are refused', async () => {
    const levels = Array.from(
      { length: 12 },
      (_, n) => `  - &l${n} [${Array.from({ length: 9 }, () => (n === 0 ? 'x' : `*l${n - 1}`)).join(', ')}]`,
    )
    await expect(readPairFile(write(`name: a\nvalue:\n${levels.join('\n')}\n`, 'bomb.yaml'), true)).rejects.toThrow(
      'value contains more than 65536 values',
    )
  })
})
