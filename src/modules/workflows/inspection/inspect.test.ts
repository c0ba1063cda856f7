import { describe, expect, test } from 'vitest'
import { inspectText, type InspectOptions } from './inspect.ts'

/** `<spec_path>: <message>` of each entry. */
function inspect(definition: string, options?: InspectOptions): string[] {
  const inspection = inspectText(definition, options)
  if ('problem' in inspection) throw new Error(inspection.problem)
  return inspection.entries.map(({ spec_path, message }) => `${spec_path}: ${message}`)
}

const unassigned = (name: string): string => `Variable "${name}" is referenced before assignment.`

describe('variables', () => {
  test('a task that several transitions lead to needs them on each', () => {
    const definition = (join: string): string => `
tasks:
  a: {next: [{publish: x=1, do: c}]}
  b: {next: [{publish: y=1, do: c}]}
  c: {${join}input: {x: "<% ctx(x) %>"}, next: [{do: d}]}
  d: {input: {y: "<% ctx(y) %>"}}
`
    expect(inspect(definition(''))).toEqual([`tasks.c.input: ${unassigned('x')}`, `tasks.d.input: ${unassigned('y')}`])
    expect(inspect(definition('join: all, '))).toEqual([])
  })

  test('a join knows also what a longer way publishes', () => {
    const definition = `
tasks:
  a: {next: [{do: "j, b"}]}
  b: {next: [{do: c}]}
  c: {next: [{publish: x=1, do: j}]}
  j: {join: all, input: {x: "<% ctx(x) %>"}}
`
    expect(inspect(definition)).toEqual([])
  })

  test('the way back in a cycle publishes too late', () => {
    const definition = `
tasks:
  a: {next: [{do: b}]}
  b: {input: {x: "<% ctx(x) %>"}, next: [{publish: x=1, do: c}]}
  c: {input: {x: "<% ctx(x) %>"}, next: [{do: b}]}
output: [{x: "<% ctx(x) %>"}]
`
    expect(inspect(definition)).toEqual([`tasks.b.input: ${unassigned('x')}`])
  })

  test('the output sees what a transition without a task publishes', () => {
    expect(
      inspect(`
tasks:
  a: {next: [{publish: x=1}, {do: b}]}
  b: {next: [{publish: y=1, do: noop}]}
output: [{x: "<% ctx(x) + ctx(y) %>"}]
`),
    ).toEqual([])
  })

  test('time limits see variables, statements of templates are not checked', () => {
    expect(
      inspect('timeout: <% ctx(x) %>\ntasks: {a: {timeout: "{{ ctx(y) }}", delay: "{% if ctx(z) %}1{% endif %}"}}'),
    ).toEqual([`timeout: ${unassigned('x')}`, `tasks.a.timeout: ${unassigned('y')}`])
  })

  test('those of the server are known', () => {
    const definition = 'tasks: {a: {input: {x: "<% ctx().svc.user %> <% ctx().parent %>"}}}'
    expect(inspect(definition)).toEqual([`tasks.a.input: ${unassigned('parent')}`])
    expect(inspect(definition, { variables: ['svc', 'parent'] })).toEqual([])
  })
})

describe('joins', () => {
  const message = /^tasks\.(\w+): The join task "\w+" is unreachable/
  const ambiguous = (definition: string): (string | undefined)[] =>
    inspect(definition).map((text) => message.exec(text)?.[1])

  test('need the same splits before each task that leads to them', () => {
    expect(
      ambiguous(`
tasks:
  a: {next: [{do: s}, {do: s}]}
  s: {next: [{do: "p, q"}]}
  p: {next: [{do: "good, bad"}]}
  q: {next: [{do: good}]}
  x: {next: [{do: bad}]}
  good: {join: all}
  bad: {join: 1}
`),
    ).toEqual(['bad'])
  })

  test('tasks in cycles do not split', () => {
    expect(
      ambiguous(`
tasks:
  a: {next: [{do: b}]}
  b: {next: [{do: "c, d"}]}
  c: {next: [{do: j}]}
  d: {next: [{do: j}]}
  j: {join: all, next: [{do: b}]}
`),
    ).toEqual([])
  })
})

describe('hints', () => {
  test('name the closest task', () => {
    const inspection = inspectText('tasks: {a: {next: [{do: "finsh, b"}]}, finish: {delay: 1}}', { hints: true })
    expect('problem' in inspection ? [] : inspection.entries.map(({ hint }) => hint)).toEqual([
      'Did you mean "finish"?',
      undefined,
    ])
  })

  test('name the closest variable', () => {
    const definition = `
vars: [{hosts: []}]
tasks:
  a: {input: {x: "<% ctx(host) %>"}, next: [{publish: [{answer: 1}], do: b}, {do: b}]}
  b: {input: {y: "<% ctx(answr) %> <% ctx(answer) %>"}}
`
    expect(hintsOf(definition)).toEqual([
      ['context', `${unassigned('host')} Did you mean "hosts"?`],
      ['context', unassigned('answer')], // has a value on one of two ways only
      ['context', `${unassigned('answr')} Did you mean "answer"?`],
    ])
  })

  test('say what to write where the shape is wrong', () => {
    expect(hintsOf('tasks: {a: {nxt: [], next: {do: b}}}\nvars: {x: 1}\noutptu: []\n')).toEqual([
      ['syntax', `Additional properties are not allowed ('outptu' was unexpected) Did you mean "output"?`],
      ['syntax', `Additional properties are not allowed ('nxt' was unexpected) Did you mean "next"?`],
      ['syntax', `{'do': 'b'} is not of type 'array' Write a list of transitions, each with "- ".`],
      ['syntax', `{'x': 1} is not of type 'array' Write a list with one "name: value" in each item.`],
    ])
  })

  test('name our word for a word of StackStorm, asked for or not', () => {
    const definition = 'vars: [{u: "<% ctx().st2.user %>"}]\ntasks: {a: {delay: 1}}'
    const message = `${unassigned('st2')} Its name here is "svc".`
    expect(inspect(definition)).toEqual([`vars[0]: ${message}`])
    expect(hintsOf('vars: [{k: "{{ st2kv(1) }}"}]\ntasks: {a: {delay: 1}}')).toEqual([
      ['warning', 'The function "st2kv" is unknown. Its name here is "svckv".'],
    ])
  })

  test('are given only when asked for', () => {
    for (const [definition, message] of [
      ['tasks: {a: {next: [{do: finsh}]}, finish: {delay: 1}}', 'The task "finsh" is not defined.'],
      ['vars: {hosts: 1}\ntasks: {a: {delay: 1}}', "{'hosts': 1} is not of type 'array'"],
      ['vars: [{a: 1}]\ntasks: {a: {delay: "<% ctx(b) %>"}}', unassigned('b')],
    ] as const) {
      const inspection = inspectText(definition)
      expect(inspection).toMatchObject({ entries: [{ message }] })
      expect(JSON.stringify(inspection)).not.toContain('hint')
    }
    expect(inspect('tasks: {a: {next: [{when: failed, do: noop}, {when: "<% faild() %>", do: noop}]}}')).toEqual([])
  })
})

describe('with hints, inspection warns of', () => {
  test.each([
    ['<% suceeded() %>', 'The function "suceeded" is unknown. Did you mean "succeeded"?'],
    ['<% result().slect($) %>', 'The function "slect" is unknown. Did you mean "select"?'],
    ['<% $.where(ctx(x).len() > 1) %>', undefined],
    ['<% def(twice, $ * 2) -> twice(2) = 4 %>', undefined],
    ['{{ result() | uppr }}', 'The function "uppr" is unknown. Did you mean "upper"?'],
    ['{{ result() | map(attribute="a") | list | to_json_string }}', undefined],
    ['{{ suceeded() and ctx().get("x").strip() }}', 'The function "suceeded" is unknown. Did you mean "succeeded"?'],
    ['{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1) }}', undefined],
    ['{% if faild() %}1{% endif %}', 'The function "faild" is unknown. Did you mean "failed"?'],
  ])('unknown functions: %s', (when, message) => {
    expect(warningsOf(when)).toEqual(message === undefined ? [] : [message])
  })

  const spans = 'An expression spans lines, so it stays text. Write it in one line, or fold the lines with ">-".'
  test.each([
    ['<% succeeded() >', '"<%" has no "%>" after it, so it stays text.'],
    ['a <% 1 %> <% 2', '"<%" has no "%>" after it, so it stays text.'],
    ['{{ succeeded() }', '"{{" has no "}}" after it, so it stays text.'],
    ['<% succeeded() and\n true %>', spans],
    ['{{ succeeded() and\n true }}', spans],
    ['{% if x\n %}', spans],
  ])('expressions that stay text: %j', (when, message) => {
    expect(warningsOf(when)).toEqual([message])
  })

  test.each([
    ['<% ctx(x) = True %>', '"True" is a text in YAQL, and counts as true. The constant is true.'],
    ['<% ctx(x).get(a, None) %>', '"None" is a text in YAQL, and counts as true. The constant is null.'],
    ["<% ctx(x) = 'True' or ctx(x) = true %>", undefined],
    ['{{ ctx().x == True }}', undefined],
  ])('words of Python in YAQL: %s', (when, message) => {
    expect(warningsOf(when)).toEqual(message === undefined ? [] : [message])
  })

  test('conditions without an expression', () => {
    const message = '"failed()" is no expression, so the condition always holds. Write it as <% failed() %>.'
    expect(warningsOf('failed()')).toEqual([message])
    expect(hintsOf('tasks: {a: {retry: {when: failed(), count: 1}}}')).toEqual([['warning', message]])
    expect(hintsOf('tasks: {a: {input: {cmd: failed()}}}')).toEqual([])
  })

  test('unknown filters in chains', () => {
    const chain = 'chain: [{name: a, ref: core.noop, parameters: {x: "{{ y | decrypt_kv | uper }}"}}]'
    expect(hintsOf(chain)).toEqual([['warning', 'The function "uper" is unknown. Did you mean "upper"?']])
    expect(inspect(chain)).toEqual([])
  })
})

/** Type, and message with hint, of each entry. */
function hintsOf(definition: string): [string, string][] {
  const inspection = inspectText(definition, { hints: true })
  if ('problem' in inspection) throw new Error(inspection.problem)
  return inspection.entries.map(({ type, message, hint = '' }) => [type, `${message} ${hint}`.trimEnd()])
}

/** Of a condition that is all there is. */
function warningsOf(when: string): string[] {
  const entries = hintsOf(JSON.stringify({ tasks: { a: { next: [{ when, do: 'noop' }] } }, vars: [{ x: [] }] }))
  return entries.map(([type, message]) => (type === 'warning' ? message : `${type}: ${message}`))
}

describe('bounds', () => {
  test('so many entries at most', () => {
    const wrong = Array.from(
      { length: 2_000 },
      (_, index) => `  t${index}: {delay: "<% ctx(v${index}) %><% ctx(v${index}) %>"}\n`,
    )
    const inspection = inspectText(`tasks:\n${wrong.join('')}`)
    expect(inspection).toMatchObject({ hasMore: true })
    expect('entries' in inspection ? new Set(inspection.entries.map(({ spec_path }) => spec_path)).size : 0).toBe(1_000)
  })

  test('the same long text is not repeated in many of them', () => {
    const text = Array.from({ length: 60_000 }, (_, index) => `<% ctx(v${index}) %>`)
      .join('')
      .slice(0, 1_000_000)
    const inspection = inspectText(`tasks: {a: {input: {x: "${text}"}}}`)
    expect(JSON.stringify(inspection).length).toBeLessThan(5_000_000)
  })

  test('10,000 tasks in a ring need no recursion', () => {
    const ring = Array.from(
      { length: 9_999 },
      (_, i) => `  t${i}: {next: [{publish: v${i}=1, do: t${(i + 1) % 9_999}}]}\n`,
    )
    expect(inspect(`tasks:\n  s: {next: [{do: t0}]}\n${ring.join('')}`)).toEqual([])
  })
})
