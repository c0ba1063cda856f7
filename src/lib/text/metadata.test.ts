import { dump } from 'js-yaml'
import { exactDumpSchema } from './yaml.ts'
import { describe, expect, test } from 'vitest'
import { readJsonDocument, readStrictYamlDocument, readYamlDocument, type MetadataDocument } from './metadata.ts'
import { readJson, writeJson } from '../json/index.ts'

function read(text: string): MetadataDocument {
  const document = readYamlDocument(text)
  if ('problem' in document) throw new Error(JSON.stringify(document.problem))
  return document
}

const withoutQuotes: unknown = expect.stringContaining('a value that begins with {{ or {% needs quotes around it')

describe('YAML of metadata files', () => {
  test('is read as YAML 1.1', () => {
    expect(read('a: yes\nb: on\nc: 014\nd: "014"\ne: ~\nf: 1_000\n').value).toEqual({
      a: true,
      b: true,
      c: 12,
      d: '014',
      e: null,
      f: 1000,
    })
  })

  test('merges mappings', () => {
    const text = 'base: &base\n  type: string\n  secret: true\nother:\n  <<: *base\n  secret: false\n'
    expect(read(text).value).toEqual({
      base: { type: 'string', secret: true },
      other: { type: 'string', secret: false },
    })
  })

  test('finds the line of the nearest key', () => {
    const { lineOf } = read(
      '---\n# comment\nname: x\nparameters:\n  cmd:\n    type: string\n\n    order: 1\nlist:\n- a\n- b\n',
    )
    expect(lineOf(['name'])).toBe(3)
    expect(lineOf(['parameters', 'cmd', 'order'])).toBe(8)
    expect(lineOf(['parameters', 'cmd', 'missing'])).toBe(5)
    expect(lineOf(['list', '1'])).toBe(11)
    expect(lineOf(['nothing'])).toBeUndefined()
    expect(lineOf([])).toBeUndefined()
  })

  test('says nothing of quotes where a template has them', () => {
    const document = readYamlDocument('a: 1\nb: "{{ trigger.x }}" and more\n')
    expect(document).toMatchObject({ problem: { line: 2 } })
    expect(JSON.stringify(document)).not.toContain('quotes')
  })

  test.each<[string, string, object]>([
    ['bad syntax', 'a: 1\nb: [1, 2\nc: 3\n', { line: 3 }],
    ['a tag for code', 'a: 1\nb: !!python/object/apply:os.system ["x"]\n', { line: 2 }],
    ['__proto__', 'a:\n  __proto__: {x: 1}\n', { line: 2, key: 'a.__proto__' }],
    [
      'several documents',
      'a: 1\n---\nb: 1\n',
      { line: 2, message: 'one YAML document is needed, and here another one begins' },
    ],
    [
      'a key that is a list',
      'a: 1\nb:\n  ? [c]\n  : d\n',
      { line: 3, message: 'a key is text, not a list or a mapping' },
    ],
    ['a template without quotes', 'a: 1\nb:\n  c: {{ trigger.x }}\n', { line: 3, message: withoutQuotes }],
    ['a template without quotes in a list', '- 1\n- {{ trigger.x }}\n', { line: 2, message: withoutQuotes }],
    ['a template without quotes in {}', 'a: {b: {{ trigger.x }}, c: 1}\n', { line: 1, message: withoutQuotes }],
    [
      'text after a template without quotes',
      'a: 1\nc: {{ trigger.x }} and more\n',
      { line: 2, message: withoutQuotes },
    ],
    ['an index in a template without quotes', 'c: {{ trigger.x[0] }}\n', { line: 1, message: withoutQuotes }],
    [
      'a block of a template without quotes',
      'c: {% if trigger.x %}1{% endif %}\n',
      { line: 1, message: withoutQuotes },
    ],
    ['deep nesting', '['.repeat(5_000), {}],
    ['a loop', 'a: &a [*a]\n', {}],
  ])('%s is refused with its place', (_, text, problem) => {
    expect(readYamlDocument(text)).toEqual({ problem: expect.objectContaining(problem) as unknown })
  })

  test.each([
    ['no document', ''],
    ['only a comment', '# nothing\n'],
  ])('%s is empty', (_, text) => {
    expect(readYamlDocument(text)).toEqual({
      problem: { message: 'one YAML document is needed, and the file has none' },
      isEmpty: true,
    })
  })

  test('aliases that stand for billions of values are refused', () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    for (let i = 1; i < 10; i++)
      lines.push(`a${i}: &a${i} [${Array.from({ length: 10 }, () => `*a${i - 1}`).join(', ')}]`)
    expect(readYamlDocument(lines.join('\n'))).toEqual({
      problem: expect.objectContaining({
        message: expect.stringContaining('more than 20000 values') as unknown,
      }) as unknown,
    })
  })

  test('so are very many aliases', () => {
    const text = `a: &a x\nb: [${Array.from({ length: 1_000 }, () => '*a').join(', ')}]`
    expect(readYamlDocument(text)).toHaveProperty('problem')
  })
})

describe('keys in YAML', () => {
  test.each([
    ['{z: 1, "10": 2, "2": {b: 3, "1": 4}}', '{"z":1,"10":2,"2":{"b":3,"1":4}}'],
    ['{9007199254740993: big, 21.0: float, 7: small}', '{"9007199254740993":"big","21.0":"float","7":"small"}'],
    ['{b: &b {x: 1, "3": 2}, "1": {<<: *b, "0": 5}}', '{"b":{"x":1,"3":2},"1":{"x":1,"3":2,"0":5}}'],
    ['{constructor: 1, toString: 2}', '{"constructor":1,"toString":2}'],
  ])('%s is %s in JSON', (yaml, json) => {
    expect(writeJson(read(yaml).value)).toBe(json)
  })

  test.each([
    ['? [a]\n: 1\n', 'a key is text, not a list or a mapping'],
    ['__proto__: 1\n', 'the key "__proto__" is not allowed'],
    ['&a {b: *a}\n', ''],
  ])('%j is refused', (yaml, message) => {
    expect(readYamlDocument(yaml)).toMatchObject({
      problem: { message: expect.stringContaining(message) as unknown },
    })
  })
})

describe('JSON of metadata files', () => {
  test('is read', () => {
    expect(readJsonDocument('{"a": [1]}')).toMatchObject({ value: { a: [1] } })
    readJsonDocument('{"a": 1, "\\\\": 2}')
    expect(readJsonDocument('{"a": 1, "\\n": 2}')).toMatchObject({ value: { a: 1, '\n': 2 } })
  })

  test('is refused with its line', () => {
    expect(readJsonDocument('{\n"a": 1,\n}')).toEqual({ problem: expect.objectContaining({ line: 3 }) as unknown })
    expect(readJsonDocument('{"__proto__": {}}')).toHaveProperty('problem.key', '__proto__')
  })
})

describe('numbers in YAML', () => {
  test.each([
    ['820982911946154508', '820982911946154508'],
    ['-9_007_199_254_740_993', '-9007199254740993'],
    ['0x20000000000001', '9007199254740993'],
    ['0400000000000000001', '9007199254740993'],
    ['0b1', '1'],
    ['1:30', '90'],
    ['9'.repeat(400), '9'.repeat(400)],
    ['-0', '-0'],
    ['21.0', '21.0'],
    ['+1.10', '1.10'],
    ['.5', '0.5'],
    ['1.', '1.0'],
    ['1.e+3', '1e+3'],
    ['12345678901234567.89', '12345678901234567.89'],
    ['"820982911946154508"', '"820982911946154508"'],
    ['1e3', '"1e3"'],
  ])('%s is %s in JSON', (yaml, json) => {
    const document = readYamlDocument(`n: ${yaml}\n`)
    expect(writeJson('value' in document ? document.value : document)).toBe(`{"n":${json}}`)
  })

  test.each([
    ['n: 1.0e+400', '1.0e+400 is not a number JSON has'],
    [`n: ${'9'.repeat(4301)}`, 'the limit is 4300'],
    ['n: .inf', '.inf is not a number JSON has'],
    ['a: 1\na: 2\n', 'found duplicate key "a"'],
    ['9007199254740993: 1\n9007199254740993: 2\n', 'found duplicate key "9007199254740993"'],
  ])('%s is refused in a file for svc alone', (yaml, message) => {
    expect(readStrictYamlDocument(yaml)).toMatchObject({
      problem: { message: expect.stringContaining(message) as unknown },
    })
  })

  test.each(['820982911946154508', '21.0', '1e+21', '-0', '1.5e-30', '"1e3"', '"21.0"', '{"a":[1.10]}'])(
    '%s is written and read back',
    (json) => {
      const document = readYamlDocument(dump({ n: readJson(json) }, { schema: exactDumpSchema }))
      expect(writeJson('value' in document ? document.value : document)).toBe(`{"n":${json}}`)
    },
  )
})
