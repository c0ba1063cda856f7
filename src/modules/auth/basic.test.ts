import { expect, test } from 'vitest'
import { readBasic } from './basic.ts'

const encode = (text: string | Uint8Array): string => Buffer.from(text).toString('base64')

test.for([
  ['alice:secret', 'alice', 'secret'],
  ['alice:a:b:c', 'alice', 'a:b:c'],
  ['alice::', 'alice', ':'],
  ['alice::x', 'alice', ':x'],
  ['ü ser:é€😀', 'ü ser', 'é€😀'],
  ['\uFEFFbom:secret', '\uFEFFbom', 'secret'],
  ['alice: blanks ', 'alice', ' blanks '],
] as const)('%s', ([text, user, password]) => {
  for (const scheme of ['Basic', 'basic', 'BASIC']) {
    expect(readBasic([`${scheme} ${encode(text)}`])).toEqual({ user, password })
    expect(readBasic([`${scheme}   ${encode(text).replace(/=+$/, '')}`])).toEqual({ user, password })
  }
})

test.for([
  [undefined, /not provided/],
  ['', /not provided/],
  ['  ', /not provided/],
  ['Basic', /Invalid authorization header/],
  ['Basic ', /Invalid authorization header/],
  [`XBasic ${encode('alice:secret')}`, /Unsupported authorization type: XBasic/],
  [`Bearer ${encode('alice:secret')}`, /Unsupported authorization type: Bearer/],
  [encode('alice:secret'), /Invalid authorization header/],
  [`Basic ${encode('alice:secret')} more`, /Invalid authorization header/],
  [`Basic ${encode('alice secret')}`, /Invalid authorization header/],
  ['Basic alice:secret', /Invalid authorization header/],
  ['Basic %%%%', /Invalid authorization header/],
  [`Basic ${encode('alice:secret')}!`, /Invalid authorization header/],
  [`Basic =${encode('alice:secret')}`, /Invalid authorization header/],
  [`Basic ${encode(Uint8Array.of(0x61, 0x3a, 0xff, 0xfe))}`, /Invalid authorization header/],
  [`Basic ${encode(':secret')}`, /anonymous/],
  [`Basic ${encode('alice:')}`, /anonymous/],
  [`Basic ${encode(':')}`, /anonymous/],
  [`Basic ${encode('alice:sec\0ret')}`, /Invalid credentials/],
  [`Basic ${encode('al\0ice:secret')}`, /Invalid credentials/],
  [`Basic ${encode('al\nice:secret')}`, /Invalid credentials/],
  [`Basic ${encode('alice\u2028:secret')}`, /Invalid credentials/],
  [`Basic ${encode(`${'a'.repeat(257)}:secret`)}`, /Invalid credentials/],
  [`Basic ${encode(`alice:${'é'.repeat(513)}`)}`, /Invalid credentials/],
] as const)('refused: %s', ([header, reason]) => {
  expect(readBasic(header === undefined ? undefined : [header])).toMatch(reason)
})

test('no reason repeats what may be a password', () => {
  for (const header of ['hunter2', 'Basic hunter2 hunter2', 'Basic hunter2', `Basic ${encode('hunter2')}`]) {
    expect(readBasic([header])).not.toMatch(/hunter2/)
  }
})

test('refused: two of them, even of the same value', () => {
  const good = `Basic ${encode('alice:secret')}`
  expect(readBasic([good, good])).toMatch(/more than once/)
  expect(readBasic([])).toMatch(/not provided/)
})
