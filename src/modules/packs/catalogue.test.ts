import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { HttpProblem, type HttpGet } from '../../runners/index.ts'
import { createCatalogue } from './catalogue.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

const file = (name: string, text: string | Uint8Array): string => {
  const path = join(folder.path, name)
  mkdirSync(folder.path, { recursive: true })
  writeFileSync(path, text)
  return `file://${path}`
}
const index = (packs: unknown): string => JSON.stringify({ metadata: {}, packs })
const unasked: HttpGet = () => Promise.reject(new Error('nobody is asked'))
const answering = (statusCode: number, body: string): HttpGet =>
  vi.fn<HttpGet>(async () => ({ statusCode, body: Buffer.from(body) }))

test('without indexes nothing is asked and there is nothing', async () => {
  const catalogue = createCatalogue([], unasked)
  expect(catalogue.isConfigured).toBe(false)
  expect(await catalogue.read()).toEqual({ status: [], packs: new Map(), localRefs: new Set() })
  expect(await catalogue.search('x')).toEqual([])
})

test('packs keep the keys of the index; of several indexes the first counts', async () => {
  const get = answering(200, index({ web: { name: 'Web', version: '2', repo_url: 'https://b/web' }, b: {}, c: 'no' }))
  const first = file('first.json', index({ web: { ref: 'web', name: 'Web', version: '1', content: { a: [1] } } }))
  const catalogue = createCatalogue([first, 'https://user:secret@b.example/index.json'], get)
  const { status, packs } = await catalogue.read()
  expect([...packs.values()].toSorted((a, b) => (a.ref < b.ref ? -1 : 1))).toEqual([
    { ref: 'b', name: 'b' },
    { ref: 'web', name: 'Web', version: '1', content: { a: [1] } },
  ])
  expect(status).toEqual([
    { url: first, packs: 1, message: 'Success.', error: null },
    { url: 'https://b.example/index.json', packs: 2, message: 'Success.', error: null },
  ])
})

test.each<[string, string | Uint8Array, string, RegExp]>([
  ['no JSON', '{', 'malformed', /not JSON/],
  ['no object', '[]', 'malformed', /no object with an object "packs"/],
  ['no packs', '{"packs": []}', 'malformed', /no object with an object "packs"/],
  ['an empty one', '{"packs": {}}', 'empty', /no packs/],
  ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'malformed', /UTF-8/],
  ['deep', `{"packs": ${'{"a":'.repeat(50)}1${'}'.repeat(50)}}`, 'malformed', /40 levels/],
  ['many values', `{"packs": {"a": [${'1,'.repeat(500_000)}1]}}`, 'malformed', /500000 values/],
  ['many packs', index(Object.fromEntries(Array.from({ length: 5001 }, (_, n) => [`p${n}`, {}]))), 'malformed', /5000/],
  ['a large one', ' '.repeat(8 * 1024 * 1024 + 1), 'unresponsive', /larger/],
])('an index that is %s is named, and the others count', async (name, text, kind, message) => {
  const good = file('good.json', index({ web: { name: 'web' } }))
  const { status, packs } = await createCatalogue([file(`${name}.json`, text), good], unasked).read()
  expect(status).toMatchObject([
    { packs: 0, error: kind, message: expect.stringMatching(message) as unknown },
    { packs: 1, error: null },
  ])
  expect([...packs.keys()]).toEqual(['web'])
})

test.each<[string, HttpGet, RegExp]>([
  ['another status', answering(503, ''), /answers 503/],
  [
    'no connection',
    () => Promise.reject(new HttpProblem('https://a is not on the public internet')),
    /public internet\.$/,
  ],
  ['another failure', () => Promise.reject(new Error('with /a/path')), /^The request failed\.$/],
])('a server of an index with %s', async (_, get, message) => {
  const { status } = await createCatalogue(['https://a.example/i.json'], get).read()
  expect(status).toMatchObject([{ error: 'unresponsive', message: expect.stringMatching(message) as unknown }])
})

test('callers share a request, which holds five minutes, after a failure fifteen seconds', async () => {
  let now = 0
  let answer = { statusCode: 500, body: Buffer.from('') }
  const get = vi.fn<HttpGet>(async () => answer)
  const catalogue = createCatalogue(['http://a.example/i.json'], get, () => now)
  await Promise.all([catalogue.read(), catalogue.find('web'), catalogue.search('')])
  expect(get).toHaveBeenCalledTimes(1)
  expect(get.mock.calls[0]?.[1]).toMatchObject({ allowsHttp: true, followsRedirects: true })
  now = 14_999
  await catalogue.read()
  expect(get).toHaveBeenCalledTimes(1)
  answer = { statusCode: 200, body: Buffer.from(index({ web: {} })) }
  now = 15_000
  expect(await catalogue.find('web')).toEqual({ ref: 'web', name: 'web' })
  now += 299_999
  await catalogue.read()
  expect(get).toHaveBeenCalledTimes(2)
  now += 1
  await catalogue.read()
  expect(get).toHaveBeenCalledTimes(3)
})

test('a search needs every word anywhere, in any case; names come first', async () => {
  const url = file(
    'search.json',
    index({
      zabbix: { name: 'zabbix', description: 'Watches hosts.', keywords: ['Monitoring'] },
      monitoring: { name: 'monitoring', description: 'All of it.' },
      'monitoring-x': { name: 'x', description: 'hosts' },
      other: { name: 'other' },
    }),
  )
  const catalogue = createCatalogue([url], unasked)
  const refs = async (query: string): Promise<string[]> => (await catalogue.search(query)).map(({ ref }) => ref)
  expect(await refs('MONITORING')).toEqual(['monitoring', 'monitoring-x', 'zabbix'])
  expect(await refs(' hosts  monitoring ')).toEqual(['monitoring-x', 'zabbix'])
  expect(await refs('')).toEqual(['monitoring', 'monitoring-x', 'other', 'zabbix'])
  expect(await refs('nowhere')).toEqual([])
})
