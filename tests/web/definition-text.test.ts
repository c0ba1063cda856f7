/** The definition of a rule that the web client shows: the command line reads the same from it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { readDefinition } from '../../src/cli/resources.ts'
import type { RuleDefinition } from '../../src/modules/rules/types.ts'
import { definitionText } from '../../web/src/screens/rules/definition-text.ts'
import { makeFolder } from '../helpers/folders.ts'
import { JsonNumber } from '../../src/lib/json/index.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

/** What readers of YAML take for something else, and what its own signs are. */
const awkward = [
  'yes',
  'No',
  'on',
  'y',
  'n',
  '~',
  'null',
  'true',
  '',
  ' ',
  ' a ',
  '12:30',
  '1_000',
  '0o17',
  '017',
  '0x1f',
  '1e3',
  '.5',

  '2030-01-01',
  '2030-01-01 00:00:00',
  '.inf',
  '<<',
  '=',
  '- a',
  '? a',
  'a: b',
  'a #b',
  '#a',
  '&a',
  '*a',
  '!a',
  '|',
  '>',
  '%a',

  '@a',
  '`a`',
  '"a"',
  "'a'",
  '{a}',
  '[a]',
  '{{ trigger.body.id }}',
  '{% if a %}b{% endif %}',
  '---',
  '...',
  'a\\nb',

  'two\nlines',
  'ends\n',
  '\n\nbegins',
  '\ttab',
  '  indented\nmore',
  'x'.repeat(3000),
  'ä€😀\u202e',
  '\u0000\u0007',
  '<b>a</b>',
]

const large = [new JsonNumber('1e+21'), new JsonNumber('820982911946154508'), new JsonNumber('21.0')]
const rule: RuleDefinition = {
  name: 'awkward',
  pack: 'test',
  description: awkward.join('|'),
  enabled: true,
  type: { ref: 'standard' },
  trigger: { type: 'core.svc.webhook', parameters: { url: 'y' } },
  criteria: {
    "trigger.headers['X-Custom']#2": { type: 'equals', pattern: 'no' },
    'trigger.n': { type: 'in', pattern: [1, -0.5, large, '1', null, true, [], {}] },
  },
  action: {
    ref: 'core.local',
    parameters: {
      ...Object.fromEntries(awkward.map((text) => [text, text])),
      list: awkward,
      deep: { a: [{ b: ['no'] }] },
    },
  },
}

it.each(['yaml', 'json'] as const)('as %s says the same to svc rule create', async (form) => {
  const file = join(folder.path, `rule.${form}`)
  writeFileSync(file, await definitionText(rule, form))
  expect(await readDefinition(file)).toEqual(rule)
})

it('as YAML is what people write', async () => {
  const plain: RuleDefinition = {
    name: 'on_push',
    trigger: { type: 'core.svc.webhook', parameters: { url: 'push' } },
    criteria: { 'trigger.body.branch': { type: 'equals', pattern: 'main' } },
    action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.id }}\ntrue\n' } },
  }
  expect(await definitionText(plain, 'yaml')).toBe(`name: on_push
trigger:
  type: core.svc.webhook
  parameters:
    url: push
criteria:
  trigger.body.branch:
    type: equals
    pattern: main
action:
  ref: core.local
  parameters:
    cmd: |
      echo {{ trigger.body.id }}
      true
`)
})
