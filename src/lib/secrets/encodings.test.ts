/** Secrets as real tools write them. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import { rounds, variants } from '../../../tests/helpers/tiers.ts'
import { MASK } from '../schema/index.ts'
import { createSecretValues } from './secret-values.ts'

const seed = seedOfRun()

/** Writes each form of `$S`, ended by NUL. */
const SHELL = String.raw`
set -e
q() { printf '<%s>\0' "$1"; }
q "$(printf %q "$S")"; q "$(LC_ALL=C.UTF-8 printf %q "$S")"; q "$(printf %q "x=$S")"; q "\${S@Q}"; d=$(declare -p S); q "\${d#declare -x S}"
for p in '' a ab abc 'joe:'; do
  b=$(printf %s "$p$S" | base64 -w0); q "$b"; q "$(printf %s "$b" | tr '+/' '-_' | tr -d =)"
  q "$(printf %s "$p$S" | base64)"; q "$(printf '%s\n' "$p$S" | base64 -w64)"
done
h=$(printf %s "$S" | od -An -v -tx1 | tr -d ' \n'); q "$h"; q "$(printf %s "$h" | tr a-f A-F)"
`.replaceAll('\\$', '$')

const PYTHON = String.raw`
import os, sys, json, shlex, html, urllib.parse, xml.sax.saxutils as x
s = os.environ['S']
j = json.dumps(s)
p = urllib.parse
forms = [s, repr(s), ascii(s), repr(s.encode()), shlex.quote(s), html.escape(s), html.escape(s, False), x.quoteattr(s)[1:-1],
  html.escape(s).encode('ascii', 'xmlcharrefreplace').decode(), p.quote(s), p.quote(s, ''), p.quote_plus(s),
  p.quote(s, '').lower() if s == s.lower() else s, j, json.dumps(j), json.dumps(json.dumps(j)),
  json.dumps(s, ensure_ascii=False), json.dumps(json.dumps(s, ensure_ascii=False), ensure_ascii=False),
  ''.join('&#%d;' % ord(c) for c in s), ''.join('&#x%x;' % ord(c) for c in s), json.dumps([s]), repr({'a': s}),
  s.replace("'", "''"), s.replace('"', '""'), s.encode().hex(' '), s.encode().hex(':')]
sys.stdout.write(''.join('<%s>\0' % f for f in forms))
`

function formsOf(secret: string): string[] {
  const env = { PATH: process.env['PATH'], S: secret, PYTHONIOENCODING: 'utf-8', PYTHONUTF8: '1', LC_ALL: 'C.UTF-8' }
  const outputs = [execFileSync('bash', ['-c', SHELL], { env }), execFileSync('python3', ['-c', PYTHON], { env })]
  return outputs.flatMap((output) => output.toString().split('\0').slice(0, -1))
}

const alphabets = ['abcXYZ019_.-', 'ab19+/=&', `a'"\\ $`, 'pä€🔑<>&;#~', 'x\t\n!{}[]()|*?^`,:@%'] as const

test.each(variants([...alphabets.keys()], 2))(
  `no form that tools write remains, however it is split: alphabet %i (SVC_TEST_SEED=${seed})`,
  (index) => {
    const random = createRandom(seed + index)
    const chars = Array.from(alphabets[index] ?? '') as [string, ...string[]]
    for (let round = 0; round < rounds({ daily: 2, full: 6 }); round++) {
      const text = Array.from({ length: 6 + random.below(70) }, () => random.pick(chars)).join('')
      const secret = `k${text.replaceAll('\n\n', '\n')}k`
      const secrets = createSecretValues([secret])
      for (const form of formsOf(secret)) {
        const shown = secrets?.maskText(form)
        expect({ secret, form, shown }).toMatchObject({ shown: expect.stringContaining(MASK) })
        // Quotes, a user, and the character that this user and the secret share.
        expect({
          secret,
          form,
          left: (shown ?? '').replaceAll(MASK, '').replace(/[<>"'\\\s]/g, '').length < 12,
        }).toMatchObject({ left: true })
        const filter = secrets?.stream()
        let streamed = ''
        for (const unit of form) streamed += filter?.filter(unit) ?? ''
        expect(streamed + (filter?.end() ?? '')).toBe(shown)
      }
    }
  },
)

test('a form that only begins like a secret remains, and so do words beside it', () => {
  const secrets = createSecretValues(['hunter22'])
  const text = 'aHVudGVyMg== 68756e7465723233 hunter2 SGVsbG8= deadbeef /usr/bin/true'
  expect(secrets?.maskText(text)).toBe(text)
  const encoded = Buffer.from('hunter22 and more').toString('base64')
  expect(secrets?.maskText(`x ${encoded} y`)).toBe(`x ${MASK}gYW5kIG1vcmU= y`)
})

test.each(['\n', '\r\n', '\n    ', '\r\n\t\t'])(
  'a form across lines that end for their length, at any place: %j',
  (lineBreak) => {
    const random = createRandom(seed)
    const secret = 'hunter22-Hunter33-hUnter44'
    const secrets = createSecretValues([secret])
    // A blank can separate hexadecimal digits.
    for (const encoding of lineBreak.length > 2 ? (['base64'] as const) : (['base64', 'hex'] as const)) {
      const form = Buffer.from(secret).toString(encoding).slice(0, -4)
      for (let before = 0; before < 84; before += 3) {
        const text = Buffer.from(`${'~'.repeat(before)}${secret}`).toString(encoding)
        const written = `a line of text${lineBreak}${text.replace(/.{76}\B/g, `$&${lineBreak}`)}\n`
        const shown = secrets?.maskText(written) ?? ''
        const left = shown.replaceAll(/\s/g, '')
        const parts = Array.from({ length: form.length - 8 }, (_, i) => form.slice(i, i + 8))
        expect({ before, written, shown, left: parts.filter((part) => left.includes(part)) }).toMatchObject({
          left: [],
        })
        const filter = secrets?.stream()
        let streamed = ''
        for (let at = 0; at < written.length;) {
          const end = at + 1 + random.below(30)
          streamed += filter?.filter(written.slice(at, end)) ?? ''
          at = end
        }
        expect({ before, shown: streamed + (filter?.end() ?? '') }).toEqual({ before, shown })
      }
    }
    // Lines of prose, and short ones, do not belong together.
    const prose = `this is hunter22-Hun${lineBreak}ter33-hUnter44`
    expect(secrets?.maskText(prose)).toBe(prose)
  },
)

test('of many secrets svc searches the forms of the shortest, and all as they are', () => {
  const random = createRandom(seed)
  const textOf = (length: number): string => Array.from({ length }, () => random.below(36).toString(36)).join('')
  const short = Array.from({ length: 100 }, () => textOf(40))
  const long = Array.from({ length: 100 }, () => textOf(4096))
  const secrets = createSecretValues([...long, ...short])
  for (const secret of short) {
    for (const form of ['utf8', 'hex', 'base64', 'base64url'] as const) {
      expect(secrets?.maskText(`<${Buffer.from(secret).toString(form)}>`)).toBe(`<${MASK}>`)
    }
  }
  for (const secret of long) expect(secrets?.maskText(`<${secret}>`)).toBe(`<${MASK.repeat(16)}>`)
})
