/** What the server's own requests refuse; the exchange itself is tested with http-request actions. */
import { expect, test } from 'vitest'
import { createHttpGet } from './get.ts'

const limits = { maxBytes: 10, signal: new AbortController().signal }

test.each([
  ['http://192.0.2.1/', 'not one of https'],
  ['https://127.0.0.1:1/', 'not on the public internet'],
  ['https://[::1]:1/', 'not on the public internet'],
  ['https://localhost:1/', 'not on the public internet'],
])('%s: %s', async (url, text) => {
  await expect(createHttpGet([])(new URL(url), limits)).rejects.toThrow(text)
})

test('networks of the configuration may be reached', async () => {
  await expect(createHttpGet(['127.0.0.1'])(new URL('https://127.0.0.1:1/'), limits)).rejects.toThrow('ECONNREFUSED')
})
