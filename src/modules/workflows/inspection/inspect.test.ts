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

  test('are given only when asked for', () => {
    const inspection = inspectText('tasks: {a: {next: [{do: finsh}]}, finish: {delay: 1}}')
    expect(inspection).toMatchObject({ entries: [{ message: 'The task "finsh" is not defined.' }] })
    expect(JSON.stringify(inspection)).not.toContain('hint')
  })
})

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
