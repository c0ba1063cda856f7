import { expect, test } from 'vitest'
import { inspectText } from './inspect.ts'

/** `<type> <spec_path>: <message>` of each entry. */
function inspect(definition: string): string[] {
  const inspection = inspectText(definition)
  if ('problem' in inspection) throw new Error(inspection.problem)
  return inspection.entries.map(({ type, spec_path, message }) => `${type} ${spec_path}: ${message}`)
}

test('names that lead nowhere', () => {
  expect(
    inspect(`
default: x
chain:
  - {name: a, ref: core.noop, on-success: b, on-failure: "{{ c }}"}
`),
  ).toEqual([
    'semantic chain[0].on-success: Unable to find node with name "b" referenced in "on-success" in task "a".',
    'semantic chain[0].on-failure: Unable to find node with name "{{ c }}" referenced in "on-failure" in task "a". Templates are not rendered here.',
    'semantic default: Unable to find node with name "x" referenced in "default".',
  ])
})

test('nodes that never run are no mistakes', () => {
  expect(
    inspect(`
chain:
  - {name: a, ref: core.noop, on-success: b}
  - {name: b, ref: core.noop}
  - {name: b, ref: core.noop}
  - {name: c, ref: core.noop, on-success: d}
  - {name: d, ref: core.noop}
`),
  ).toEqual([
    'warning chain[2].name: The name "b" belongs to an earlier node. This node never runs.',
    'warning chain[3].name: No other node leads to "c". It never runs.',
    'warning chain[4].name: No other node leads to "d". It never runs.',
  ])
})

test('templates that cannot be parsed, wherever they are', () => {
  const entries = inspect(`
vars: {v: "{{ x"}
chain:
  - {name: a, ref: core.noop, parameters: {l: ["{% if %}", {"{{ k": 1}], fine: "{{ x }}"}, publish: {p: "{{ }}"}}
`)
  expect(entries.map((entry) => entry.split(':')[0])).toEqual([
    'expression vars.v',
    'expression chain[0].parameters.l',
    'expression chain[0].parameters.l',
    'expression chain[0].publish.p',
  ])
})

test('the shape: a key that later nodes need not know is a warning', () => {
  expect(
    inspect(`
other: 1
chain:
  - {name: a, ref: core.noop, params: {x: 1}, parameters: {y: 1}, on-success: b, note: 1}
  - {name: b, ref: 5, note: 1}
`),
  ).toEqual([
    "syntax null: Additional properties are not allowed ('other' was unexpected)",
    "syntax chain[0]: Additional properties are not allowed ('note' was unexpected)",
    "warning chain[1]: Additional properties are not allowed ('note' was unexpected)",
    "syntax chain[1].ref: 5 is not of type 'string'",
    'semantic chain[0].params: Either "params" or "parameters" attribute needs to be provided, but not both',
  ])
  expect(inspect('chain: []')).toEqual(['semantic chain: The chain has no node.'])
  expect(inspect('chain: a')).toEqual(["syntax chain: 'a' is not of type 'array'"])
})

test('a text with tasks is a workflow, whatever else it says', () => {
  expect(inspect('chain: []\ntasks: {a: {delay: 1}}')).toEqual([
    "syntax null: Additional properties are not allowed ('chain' was unexpected)",
  ])
  expect(inspect('description: "chain: []"\ntasks: {a: {delay: 1}}')).toEqual([])
})

test('a chain that cannot be read is refused', () => {
  expect(inspectText('chain: [')).toEqual({ problem: expect.stringContaining('See line') })
  expect(inspectText(`chain:\n${' - {name: a, ref: x.y}\n'.repeat(10_001)}`)).toEqual({
    problem: 'it has 10001 nodes and 10000 are the limit. Move nodes into chains that it calls. See line 1.',
  })
})

test('the runner of an action decides what its definition must be', () => {
  const messages = (text: string, form: 'workflow' | 'chain'): unknown => {
    const inspection = inspectText(text, { form })
    return 'problem' in inspection ? inspection.problem : inspection.entries.map(({ message }) => message)
  }
  expect(messages('chain: [{name: a, ref: core.noop}]', 'workflow')).toEqual([
    "'tasks' is a required property",
    "Additional properties are not allowed ('chain' was unexpected)",
  ])
  expect(messages('tasks: {a: {delay: 1}}', 'chain')).toEqual([
    "'chain' is a required property",
    "Additional properties are not allowed ('tasks' was unexpected)",
  ])
  expect(messages('[1]', 'chain')).toBe('it is [1], and a mapping with the key "chain" is needed.')
})
