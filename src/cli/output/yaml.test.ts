import { JSON_SCHEMA, load, YAML11_SCHEMA } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { createRandom } from '../../../tests/helpers/random.ts'
import { toYaml } from './yaml.ts'

const texts = [
  '', ' ', 'a', 'yes', 'NO', 'null', '~', '0', '-1', '1.5', '.5', '1e3', '0x1F', '0o17', '017', '0b1', '1_000', '12:30:45', '.inf', '-.INF',
  '.nan', '2030-01-01', '2030-01-01T00:00:00Z', '=', '<<', '- a', '-', '--- a', '...', '? a', ': a', 'a: b', 'a #b', '#a', '&a', '*a', '!a', '|', '>',
  "it's", '"q"', '%a', '@a', '`a', '{a}', '[a]', 'a,b', 'a\nb', 'a\n', 'a\n\n', '\na', '\n', '  a\nb', 'a\n  b\n\n\nc\n', 'a\n \nb', 'tab\tin', '\ta\nb',
  'a\r\nb', '\u001b[31mred', '\u0085', '\u2028', '\ufeffa', 'ü€😀', '\u{e0001}', '\u202e', 'a:', 'a ', '6b01aef89ced91c48c2e9dbe', '65e12345', '\\n', 'a\\b\n"c"\n',
] // prettier-ignore

describe('toYaml', () => {
  test('each awkward text reads back as it was, for readers of both versions', () => {
    for (const text of texts) {
      for (const value of [text, [text], { [text]: text }, { a: { b: [text, [text], { c: text }] } }]) {
        const yaml = toYaml(value)
        expect({ yaml, value: load(yaml, { schema: JSON_SCHEMA }) }).toEqual({ yaml, value })
        expect({ yaml, value: load(yaml, { schema: YAML11_SCHEMA }) }).toEqual({ yaml, value })
      }
    }
  })

  test('random structures read back as they were', () => {
    const random = createRandom(7)
    const pick = (): string => texts[random.below(texts.length)] ?? ''
    const make = (depth: number): unknown => {
      switch (random.below(depth > 4 ? 5 : 8)) {
        case 0:
          return pick()
        case 1:
          return [0, -1, 1.5, 1e21, 1e-7, -2.5e-9, Number.MAX_SAFE_INTEGER][random.below(7)]
        case 2:
          return random.below(2) === 0
        case 3:
          return null
        case 4:
          return pick() + pick()
        case 5:
          return Array.from({ length: random.below(4) }, () => make(depth + 1))
        default:
          return Object.fromEntries(Array.from({ length: random.below(4) }, () => [pick(), make(depth + 1)]))
      }
    }
    for (let round = 0; round < 1000; round += 1) {
      const value = make(0)
      const yaml = toYaml(value, { sortKeys: round % 2 === 0 })
      expect({ yaml, value: load(yaml, { schema: YAML11_SCHEMA }) }).toEqual({ yaml, value })
      expect({ yaml, value: load(yaml, { schema: JSON_SCHEMA }) }).toEqual({ yaml, value })
    }
  })

  test('long texts are written whole, in time that grows with their length', () => {
    const lines = 'line\n'.repeat(300_000)
    for (const text of [lines, `${'1'.repeat(300_000)}x`, `a${'\n'.repeat(300_000)}x`]) {
      for (const value of [{ text }, [{ text }]]) expect(load(toYaml(value), { schema: JSON_SCHEMA })).toEqual(value)
    }
  })

  test('names too long for the colon behind them are marked', () => {
    const name = 'k'.repeat(1001)
    expect(toYaml({ [name]: 1, a: { [name]: [name] } })).toBe(`? ${name}\n: 1\na:\n  ? ${name}\n  :\n  - ${name}\n`)
    for (const value of [name, [name], { [name]: { [name]: [[name], { [name]: '' }] } }, [{ [name]: {} }]]) {
      expect(load(toYaml(value), { schema: JSON_SCHEMA })).toEqual(value)
      expect(load(toYaml(value), { schema: YAML11_SCHEMA })).toEqual(value)
    }
  })

  test('reads well: plain words, lines as lines', () => {
    expect(toYaml({ b: 'Tue Jan 1', a: { cmd: 'echo a\necho b', empty: '', list: [1, { x: 'y' }] } })).toBe(
      "b: Tue Jan 1\na:\n  cmd: |-\n    echo a\n    echo b\n  empty: ''\n  list:\n  - 1\n  - x: 'y'\n",
    )
  })

  test('a character that YAML does not know makes nothing unreadable', () => {
    for (const text of ['a\ufffeb', '\uffff', 'two\nlines\ufffe']) {
      const yaml = toYaml({ [text]: text })
      expect(yaml).toMatch(/^[\x20-\x7e\n]+$/)
      expect(load(yaml, { schema: YAML11_SCHEMA })).toEqual({ [text]: text })
    }
  })

  test('nothing written can be obeyed by a terminal', () => {
    // oxlint-disable-next-line no-control-regex -- these are what is looked for
    for (const text of texts) expect(toYaml({ text })).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  })
})
