import { describe, expect, test } from 'vitest'
import { loadDefinition } from './read.ts'
import { inspectShape } from './schema.ts'

function messagesOf(text: string): [string | null, string][] {
  const read = loadDefinition(text)
  if ('problem' in read) throw new Error(read.problem)
  return Array.from(inspectShape(read.value), ({ spec_path, message }) => [spec_path, message])
}

describe('names of tasks', () => {
  test.each([
    ['a b', `'a b' does not match any of the regexes: '^\\w+$'`, 'tasks'],
    ['yes', `The name 'true' is not text to YAML. Put it in quotes.`, 'tasks.true'],
    ['1', `The name '1' is not text to YAML. Put it in quotes.`, 'tasks.1'],
    ['null', `The name 'null' is not text to YAML. Put it in quotes.`, 'tasks.null'],
  ])('%s is none', (name, message, path) => {
    expect(messagesOf(`tasks: {${name}: {action: core.noop}}`)).toEqual([[path, message]])
  })

  test('quotes make text of them, and letters may be foreign', () => {
    expect(messagesOf('tasks: {"yes": {delay: 1}, "1": {delay: 1}, úkol: {delay: 1}}')).toEqual([])
  })
})

describe('tasks and transitions', () => {
  test.each([
    ['tasks: {a: {}}', 'tasks.a', '{} does not have enough properties'],
    ['tasks: {a: null}', 'tasks.a', `None is not of type 'object'`],
    ['tasks: {a: core.noop}', 'tasks.a', `'core.noop' is not of type 'object'`],
    ['tasks: {a: {next: [{}]}}', 'tasks.a.next[0]', '{} does not have enough properties'],
    ['tasks: {a: {next: {do: b}}}', 'tasks.a.next', `{'do': 'b'} is not of type 'array'`],
    ['tasks: {a: {join: 1.0}}', 'tasks.a.join', '1.0 is not valid under any of the given schemas'],
    [
      'tasks: {a: {foo: 1, "b\'c": 2}}',
      'tasks.a',
      `Additional properties are not allowed ('foo', "b'c" were unexpected)`,
    ],
    ['[1]', null, `[1] is not of type 'object'`],
    ['{}', null, `'tasks' is a required property`],
    ['version: 2.0\ntasks: {a: {delay: 1}}', 'version', `2.0 is not one of ['1.0', 1.0]`],
    ['version: 1\ntasks: {a: {delay: -1}}', 'tasks.a.delay', '-1 is not valid under any of the given schemas'],
  ])('%s', (text, path, message) => {
    expect(messagesOf(text)).toEqual([[path, message]])
  })

  test('may have a time limit, and so may the workflow', () => {
    expect(messagesOf('timeout: <% ctx(limit) %>\ntasks: {a: {timeout: 30}}')).toEqual([])
    expect(messagesOf('timeout: soon\ntasks: {a: {timeout: 1.5}}')).toEqual([
      ['tasks.a.timeout', '1.5 is not valid under any of the given schemas'],
    ])
  })
})

test('items are a list, or names in a list', () => {
  const isItems = (items: string): boolean => messagesOf(`tasks: {a: {with: ${JSON.stringify(items)}}}`).length === 0
  expect(['<% x %>', ' {{ x }} ', 'a in <% x %>', ' a,b, c in {{ x }}'].filter((text) => !isItems(text))).toEqual([])
  expect(
    [
      'x',
      'a in in <% x %>',
      'a b in <% x %>',
      'in <% x %>',
      '<% x %> y',
      'a,in <% x\n %>',
      `a${' '.repeat(50_000)}b`,
    ].filter(isItems),
  ).toEqual([])
})

test('values in messages are cut', () => {
  const [[, message] = []] = messagesOf(`tasks: {a: {retry: [${'x,'.repeat(5_000)}]}}`)
  expect(message?.length).toBeLessThan(1_100)
})
