/** Both ways to sign are held against what the server checks. */
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { readHeaders } from '../../../../src/modules/webhooks/headers.ts'
import { createVerifier } from '../../../../src/modules/webhooks/signatures.ts'
import type { SignatureParameters } from '../../api/records.ts'
import { recipesOf, authenticationText, authenticationTitle, type Sample } from './authentication.ts'
import { signatureHeaders } from './sign.ts'

/** What is hard for shells is in it. */
const body = { text: `it's "$HOME" \`id\` \\ ! ä😀\n\u001b[201~`, n: [1, null] }
const sample: Sample = {
  address: "http://127.0.0.1:9101/api/v1/webhooks/it's%20here?x=1&y=$(id)",
  body,
  headers: [['X-Source', "Tom's $shop"]],
  hasLogin: true,
}
const base64Secret = `whsec_${Buffer.from('a key of some bytes, long enough').toString('base64')}`

interface Sent {
  url: string
  headers: Record<string, string>
  body: string
}

/** Runs the lines with a curl that only tells what it was given. */
function run(text: string, variables: Record<string, string> = {}): Sent {
  const script = `curl() { printf '%s\\0' "$@"; }\n${text}\n`
  const words = execFileSync('sh', ['-c', script], { env: { PATH: process.env['PATH'], ...variables } })
    .toString()
    .split('\0')
    .slice(0, -1)
  const after = (flag: string): string[] => words.filter((_, i) => words[i - 1] === flag)
  expect(words[0]).toBe('-i')
  return {
    url: words[1] ?? '',
    headers: Object.fromEntries(after('-H').map((line) => line.split(/: (.*)/s, 2) as [string, string])), // as written
    body: after('--data-raw').join(),
  }
}

const signatures: [name: string, signature: SignatureParameters, secret: string][] = [
  ['github', { scheme: 'github', secret: '' }, `it's "$a" secret`],
  ['gitlab, a token', { scheme: 'gitlab', secret: '' }, 'plain token'],
  ['gitlab, signed', { scheme: 'gitlab', secret: '' }, base64Secret],
  ['stripe', { scheme: 'stripe', secret: '' }, 'whsec_stripe'],
  ['stripe, in another header', { scheme: 'stripe', secret: '', header: "X-It's" }, 'x'],
  ['slack', { scheme: 'slack', secret: '' }, 'slack-secret'],
  ['zoom', { scheme: 'zoom', secret: '' }, 'zoom-secret'],
  ['standard', { scheme: 'standard', secret: '' }, base64Secret],
  ['hmac', { scheme: 'hmac', secret: '', header: 'X-Signature' }, 'x'],
  [
    'hmac with everything',
    {
      scheme: 'hmac',
      secret: '',
      header: "X-It's-Signed",
      algorithm: 'sha512',
      encoding: 'base64',
      prefix: `$p='"`,
      template: `{id}.'$x"{timestamp}\\{body}|ä {nothing}`,
      timestamp_header: 'X-Time',
      id_header: 'X-Id',
    },
    '-starts like an option',
  ],
  ['hmac with sha1', { scheme: 'hmac', secret: '', header: 'X-S', algorithm: 'sha1', prefix: 'sha1=' }, 'x'],
]

/** @throws what the server would answer */
function check(signature: SignatureParameters, secret: string, headers: Record<string, string>, sent: string): void {
  const verifier = createVerifier({ ...signature, secret }, (text) => text)
  const raw = Object.entries(headers).flat()
  verifier.verify({ headers: readHeaders(raw), body: Buffer.from(sent) }, Date.now() / 1000)
}

describe('the lines for a shell', () => {
  test('send the example as it is', () => {
    const [recipe, ...others] = recipesOf(undefined, sample)
    expect(others).toEqual([])
    const sent = run(recipe?.text ?? '', { SVC_API_KEY: 'a $key' })
    expect(sent).toEqual({
      url: sample.address,
      headers: { 'Content-Type': 'application/json', 'X-Source': "Tom's $shop", 'Svc-Api-Key': 'a $key' },
      body: expect.any(String) as string,
    })
    expect(JSON.parse(sent.body)).toEqual(body)
    expect(recipe?.variables.map(([name]) => name)).toEqual(['SVC_API_KEY'])
    expect(recipesOf(undefined, { ...sample, hasLogin: false })[0]?.text).not.toContain('Svc-Api-Key')
  })

  test.each(signatures)('sign as the server wants it: %s', (_, signature, secret) => {
    const recipes = recipesOf(signature, sample)
    const recipe = recipes.at(signature.scheme === 'gitlab' && secret === base64Secret ? 1 : 0)
    expect(recipe?.variables.map(([name]) => name)).toEqual(['SECRET'])
    const sent = run(recipe?.text ?? '', { SECRET: secret })
    expect(sent.url).toBe(sample.address)
    expect(JSON.parse(sent.body)).toEqual(body)
    check(signature, secret, sent.headers, sent.body)
    const wrong = secret === base64Secret ? `whsec_${btoa('another key, just as long')}` : `${secret}x`
    expect(() => check(signature, wrong, sent.headers, sent.body)).toThrow('signature is not valid')
  })

  test('are not there for what a terminal would take for keys', () => {
    const signature: SignatureParameters = {
      scheme: 'hmac',
      secret: '',
      header: 'X-S',
      template: '{body}\u001b[201~\u0003',
    }
    expect(recipesOf(signature, sample)).toEqual([])
  })
})

describe('the browser', () => {
  test.each(signatures)('signs as the server wants it: %s', async (_, signature, secret) => {
    const text = JSON.stringify(body)
    const headers = await signatureHeaders(signature, secret, text)
    expect(() => check(signature, secret, headers, text)).not.toThrow()
  })

  test('says that a secret is none of the scheme', async () => {
    const signature: SignatureParameters = { scheme: 'standard', secret: '' }
    await expect(signatureHeaders(signature, 'whsec_***', '{}')).rejects.toThrow('must be base64 text')
  })
})

test('how senders prove themselves is said in words', () => {
  expect([authenticationTitle(undefined, true), authenticationTitle(undefined, false)]).toEqual([
    'API key or token',
    'No authentication',
  ])
  for (const [, signature] of signatures) {
    expect(authenticationTitle(signature, true)).toMatch(/signature|token/)
    expect(authenticationText(signature, true)).toMatch(/^Senders /)
  }
  expect(authenticationText({ scheme: 'stripe', secret: '', tolerance_seconds: 60 }, true)).toContain('more than 60 s')
  expect(authenticationText(signatures.find(([name]) => name === 'hmac with everything')?.[1], true)).toContain(
    "X-It's-Signed",
  )
})

test('only Amazon signs for Amazon SNS', async () => {
  const signature: SignatureParameters = { scheme: 'sns', topics: ['arn:aws:sns:eu-west-1:123456789012:a'] }
  expect([authenticationTitle(signature, true), authenticationText(signature, true)]).toEqual([
    'Amazon SNS signature',
    expect.stringMatching(/^Senders .*7200 s/),
  ])
  expect(recipesOf(signature, sample)).toEqual([])
  await expect(signatureHeaders(signature, '', '{}')).rejects.toThrow('Only Amazon SNS can sign')
})

test('two ways to sign of one’s own are told apart', () => {
  const signatures = ['X-One', 'X-Other'].map((header): SignatureParameters => ({ scheme: 'hmac', secret: '', header }))
  expect(signatures.map((signature) => authenticationTitle(signature, true))).toEqual([
    'HMAC signature in X-One',
    'HMAC signature in X-Other',
  ])
  const titles = [...signatures, undefined]
    .flatMap((signature) => recipesOf(signature, sample))
    .map(({ title }) => title)
  expect(titles).toEqual(['HMAC signature in X-One', 'HMAC signature in X-Other', 'API key or token'])
})
