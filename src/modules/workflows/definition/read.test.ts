import { describe, expect, test } from 'vitest'
import { writeJson } from '../../../lib/json/index.ts'
import { loadDefinition } from './read.ts'

const problemOf = (text: string): string => {
  const read = loadDefinition(text)
  return 'problem' in read ? read.problem : ''
}

const valueOf = (text: string): unknown => {
  const read = loadDefinition(text)
  if ('problem' in read) throw new Error(read.problem)
  return read.value
}

describe('a definition', () => {
  test('keeps numbers and the order of keys', () => {
    expect(writeJson(valueOf('vars: [{a: 820982911946154508}, {b: 21.0}]\ntasks: {z: {delay: 1}, "1": {}}'))).toBe(
      '{"vars":[{"a":820982911946154508},{"b":21.0}],"tasks":{"z":{"delay":1},"1":{}}}',
    )
  })

  test('may have aliases', () => {
    const text = "tasks:\n  a: &x {with: '<% [1] %>'}\n  b: *x\n"
    expect(valueOf(text)).toEqual({
      tasks: { a: { with: { items: '<% [1] %>' } }, b: { with: { items: '<% [1] %>' } } },
    })
  })

  test('knows the line of each key', () => {
    const read = loadDefinition('tasks:\n  a:\n    next:\n      - do: b\n')
    expect('problem' in read ? undefined : read.lineOf(['tasks', 'a', 'next', '0', 'do'])).toBe(4)
  })
})

describe('what is no definition is refused', () => {
  test.each([
    ['tasks:\n  a: {}\n  b: {}\n  a: {}\n', 'found duplicate key "a". See line 4.'],
    ['tasks:\n  a:\n    input: {x: 1, "x": 2}\n', 'found duplicate key "x". See line 3.'],
    ['x: &x {a: 1}\ntasks:\n  a: {<<: *x}\n', 'the merge key "<<" is not supported: write the keys out. See line 3.'],
    ['version: 1.0\n---\ntasks: {}\n', 'one YAML document is needed, and here another one begins. See line 2.'],
    ['', 'it is empty.'],
    ['# nothing\n', 'it is empty.'],
    ['text', `it is 'text', and a mapping with the key "tasks" is needed.`],
    ['7\n', 'it is 7, and a mapping'],
    ['null\n', 'it is None, and a mapping'],
    ['a: [\n', 'See line 2.'],
    ['tasks: 5', 'tasks is 5, and a mapping is needed. See line 1.'],
    ['tasks:\n  a:\n    with: 5\n', 'tasks.a.with is 5, and a text or a mapping is needed. See line 3.'],
    ['tasks:\n  a:\n    next: [{do: b}, 2]\n', 'tasks.a.next[1] is 2, and a mapping is needed. See line 3.'],
  ])('%j', (text, reason) => {
    expect(problemOf(text)).toContain(reason)
  })
})

describe('what is too large is refused', () => {
  const many = (count: number, item: (index: number) => string): string =>
    Array.from({ length: count }, (_, i) => item(i)).join('')

  test.each([
    ['text', `tasks: {a: {description: "${'x'.repeat(1_048_576)}"}}`, 'it has more than 1048576 bytes'],
    ['tasks', `tasks:\n${many(10_001, (i) => `  t${i}: {delay: 1}\n`)}`, 'it has 10001 tasks and 10000 are the limit'],
    ['nesting', `tasks: ${'['.repeat(60)}${']'.repeat(60)}`, 'nested more than 50 deep'],
    [
      'aliases of lists',
      `x: &n [${many(10_000, () => '{do: b},')}]\ntasks:\n${many(10_000, (i) => `  t${i}: {next: *n}\n`)}`,
      'values',
    ],
    [
      'aliases of texts',
      `x: &d "${'b,'.repeat(50_000)}"\ntasks:\n${many(9_000, (i) => `  t${i}: {next: [{do: *d}]}\n`)}`,
      'characters',
    ],
  ])('%s', (_, text, reason) => {
    expect(problemOf(text)).toContain(reason)
  })
})
