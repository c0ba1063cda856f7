import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { isAppError } from '../../core/errors.ts'
import type { ParameterSchema } from '../../lib/schema/index.ts'
import { createParameterSet, mergeParameters, type ParameterSchemas } from './parameters.ts'
import { createRenderer, findTemplates } from '../../core/template-values.ts'
import { checkParameters, effectiveParameters, renderParameters } from './resolve.ts'
import { createTemplateThread } from '../../core/rendering/index.ts'
import type { TemplateScope } from '../../lib/template/render.ts'

const shell: Record<string, ParameterSchema> = {
  cmd: { type: 'string' },
  cwd: { type: 'string' },
  env: { type: 'object' },
  sudo: { type: 'boolean', default: false },
  timeout: { type: 'integer', default: 60 },
}

type Values = Record<string, unknown>

const scope: TemplateScope = {
  variables: { action_context: { user: 'ada', pack: 'mine' }, svckv: { system: { key: 'v' } } },
}

const thread = createTemplateThread()
afterAll(() => thread.stop())
const rendering = { thread, turn: { caller: 'ada', isRequest: true } }

function kept(action: ParameterSchemas, supplied: Values, runner: ParameterSchemas = {}): Promise<Values> {
  return renderParameters(createParameterSet(runner, action), supplied, scope, rendering)
}

async function accept(action: ParameterSchemas, supplied: Values, runner: ParameterSchemas = {}): Promise<Values> {
  const set = createParameterSet(runner, action)
  const rendered = await renderParameters(set, supplied, scope, rendering)
  checkParameters(set, rendered, supplied)
  return rendered
}

async function effective(action: ParameterSchemas, supplied: Values, runner: ParameterSchemas = {}): Promise<Values> {
  const set = createParameterSet(runner, action)
  const rendered = await renderParameters(set, supplied, scope, rendering)
  const { runnerParameters, actionParameters } = await effectiveParameters(set, rendered, scope, rendering)
  return { ...runnerParameters, ...actionParameters }
}

async function failureOf(act: () => unknown): Promise<{ code: string; message: string } | undefined> {
  try {
    await act()
    return undefined
  } catch (error) {
    if (!isAppError(error)) throw error
    return { code: error.code, message: error.message }
  }
}

describe('merging with the runner', () => {
  test('only overridable attributes are taken over; runner parameters come first', async () => {
    const merged = mergeParameters(
      { a: { type: 'string', secret: true, description: 'runner', default: 'x' }, b: {} },
      {
        c: { type: 'integer' },
        a: { type: 'integer', secret: false, description: 'action', required: true, enum: ['y'], immutable: true },
      },
    )
    expect(Object.keys(merged)).toEqual(['a', 'b', 'c'])
    expect(merged['a']).toEqual({
      type: 'string',
      secret: true,
      description: 'action',
      default: 'x',
      required: true,
      enum: ['y'],
      immutable: true,
    })
  })

  test('an override of null takes the default away', async () => {
    expect(await effective({ timeout: { default: null } }, {}, shell)).toMatchObject({ timeout: null })
  })
})

describe('what an execution keeps', () => {
  test.each<[string, ParameterSchemas, Values, Values]>([
    ['only what was supplied', { a: { default: 1 } }, {}, {}],
    ['converted', { a: { type: 'integer' } }, { a: '7' }, { a: 7 }],
    ['null as null', { a: { type: 'string' } }, { a: null }, { a: null }],
    ['null although there is a default', { a: { type: 'string', default: 'x' } }, { a: null }, { a: null }],
    ['what was rendered', { a: {}, b: {} }, { a: '{{ b }}!', b: 'x' }, { a: 'x!', b: 'x' }],
    ['templated defaults', { a: { default: '{{ b }}' }, b: {} }, { b: 1 }, { a: 1, b: 1 }],
    ['the templated default instead of null', { a: { default: '{{ b }}' }, b: {} }, { a: null, b: 1 }, { a: 1, b: 1 }],
    ['no immutable ones', { a: { default: '{{ b }}', immutable: true }, b: {} }, { b: 1 }, { b: 1 }],
  ])('%s', async (_, action, supplied, result) => {
    expect(await kept(action, supplied)).toEqual(result)
  })
})

describe('templates', () => {
  test.each<[string, ParameterSchemas, Values, Values]>([
    [
      'a whole expression keeps its type',
      { a: {}, b: {} },
      { a: '{{ b }}', b: [1, { c: true }] },
      { a: [1, { c: true }] },
    ],
    ['inside text', { a: {}, b: {} }, { a: 'x {{ b }} y', b: 5 }, { a: 'x 5 y' }],
    [
      'inside lists and objects',
      { a: {}, b: {} },
      { a: ['{{ b }}', { k: 'x{{ b }}' }, 1], b: 5 },
      { a: [5, { k: 'x5' }, 1] },
    ],
    ['in keys', { a: {}, b: {} }, { a: { '{{ b }}': 1 }, b: 'k' }, { a: { k: 1 } }],
    ['converted afterwards', { a: { type: 'integer' }, b: {} }, { a: '{{ b }}', b: '7' }, { a: 7 }],
    [
      'as text where text is declared',
      { a: { type: 'string' }, b: { type: 'integer' } },
      { a: '{{ b }}', b: 7 },
      { a: '7' },
    ],
    ['text of a list', { a: { type: 'string' }, b: {} }, { a: '{{ b }}', b: ['x', null] }, { a: "['x', None]" }],
    ['lists out of text', { a: { type: 'array' }, b: {} }, { a: '[{{ b }}, 2]', b: 1 }, { a: [1, 2] }],
    [
      'in the order of their dependencies',
      { a: {}, b: {}, c: {} },
      { a: '{{ b }}1', b: '{{ c }}2', c: '3' },
      { a: '321', b: '32' },
    ],
    ['of the action context', { a: {} }, { a: '{{ action_context.user }}' }, { a: 'ada' }],
    ['of the datastore', { a: {} }, { a: '{{ svckv.system.key }}' }, { a: 'v' }],
    ['of a plain default', { a: {}, b: { default: 2 } }, { a: '{{ b }}' }, { a: 2 }],
    ['of a converted sibling', { a: {}, b: { type: 'integer' } }, { a: '{{ b + 1 }}', b: '2' }, { a: 3 }],
    ['of one without a value', { a: {}, b: {} }, { a: 'x{{ b }}' }, { a: 'xNone' }],
    ['statements', { a: {}, b: {} }, { a: '{% if b %}yes{% else %}no{% endif %}', b: true }, { a: 'yes' }],
    ['invalid ones are text', { a: {} }, { a: '{{ is this? }' }, { a: '{{ is this? }' }],
    ['text with braces is text', { a: {} }, { a: '{{' }, { a: '{{' }],
    ['null stays null where text is declared', { a: { type: 'string' }, b: {} }, { a: '{{ b }}' }, { a: null }],
  ])('%s', async (_, action, supplied, result) => {
    expect(await kept(action, supplied)).toMatchObject(result)
  })

  test.each<[string, ParameterSchemas, Values, string]>([
    [
      'an undefined attribute',
      { a: {} },
      { a: '{{ action_context.nobody.name }}' },
      'Failed to render parameter "a": ',
    ],
    [
      'a name that is no parameter',
      { a: {} },
      { a: '{{ nobody }}' },
      'Failed to render parameter "a": Dependency unsatisfied in variable "nobody"',
    ],
    [
      'a name every object inherits',
      { a: {} },
      { a: '{{ constructor }}' },
      'Dependency unsatisfied in variable "constructor"',
    ],
    [
      'itself',
      { a: {} },
      { a: '{{ a }}' },
      'Cyclic dependency found in the following variables: a. Likely the variable is referencing itself',
    ],
    [
      'a circle',
      { a: {}, b: {}, c: {} },
      { c: '{{ a }}', a: '{{ b }}', b: '{{ a }}' },
      'Cyclic dependency found in the following variables: a, b. Likely',
    ],
    [
      'in a default',
      { a: { default: '{{ nobody }}', immutable: true } },
      {},
      'Dependency unsatisfied in variable "nobody"',
    ],
    [
      'a key that is not text',
      { a: {}, b: {} },
      { a: { '{{ b }}': 1 }, b: 5 },
      'Failed to render parameter "a": a key of an object must render to text',
    ],
    [
      'a key __proto__',
      { a: {}, b: {} },
      { a: { '{{ b }}': 1 }, b: '__proto__' },
      'Failed to render parameter "a": a key of an object',
    ],
    [
      'a number that JSON cannot say',
      { a: {} },
      { a: '{{ [1e308 * 10] }}' },
      'the value holds a number that is too large',
    ],
    ['a nan', { a: {} }, { a: "{{ 'nan'|float }}" }, 'the value holds a nan'],
    ['a key __proto__ inside', { a: {} }, { a: "{{ [{'__proto__': 1}] }}" }, 'the value holds the key "__proto__"'],
  ])('%s fails', async (_, action, supplied, message) => {
    const failure = await failureOf(() => kept(action, supplied))
    expect(failure?.code).toBe('TEMPLATE_FAILED')
    expect(failure?.message).toContain(message)
  })

  test.each([
    ['a variable of GitHub Actions', 'deploy ${{ secrets.KEY }}'],
    ['a variable of Ansible', 'echo {{ inventory_hostname }}'],
    ['a filter of Ansible', '{{ [1] | to_terraform }}'],
    ['a statement of others', "{% include 'x' %}"],
  ])('%s fails, and the message says how to keep it as text', async (_, text) => {
    const failure = await failureOf(() => kept({ a: {} }, { a: text }))
    expect(failure?.message).toMatch(
      /\. To keep such text as it is, write \{% raw %\} before it and \{% endraw %\} after it$/,
    )
    expect(await kept({ a: {} }, { a: `{% raw %}${text}{% endraw %}` })).toEqual({ a: text })
  })

  test('a template whose data is at fault gets no advice about text', async () => {
    for (const text of ['{{ action_context.nobody.name }}', "{{ 'a' * 'b' }}", "{{ 'x' | from_json_string }}"]) {
      expect((await failureOf(() => kept({ a: {} }, { a: text })))?.message).not.toContain('raw')
    }
  })

  test('the templates of one request share what they may spend', async () => {
    const loop = '{% for i in range(1000) %}{% for j in range(1000) %}x{% endfor %}{% endfor %}'
    const failure = await failureOf(() => kept({ a: {} }, { a: loop }))
    expect(failure?.code).toBe('TEMPLATE_FAILED')
    const few = Array.from({ length: 500 }, () => '{{ 1 }}')
    expect(await kept({ a: {} }, { a: few })).toEqual({ a: few.map(() => 1) })
    expect((await failureOf(() => kept({ a: {} }, { a: [...few, '{{ 1 }}'] })))?.message).toContain(
      'more than 500 templates',
    )
    const long = '{% for i in range(5000) %}x{% endfor %}'
    expect(await kept({ a: {} }, { a: long })).toEqual({ a: 'x'.repeat(5000) })
    expect((await failureOf(() => kept({ a: {} }, { a: [...few.slice(1), long] })))?.code).toBe('TEMPLATE_FAILED')
  })

  test('the templates of one request share their time', async () => {
    const renderer = createRenderer({ count: 2, isTooLong: false })
    const busy = '{% for i in range(5000) %}x{% endfor %}'
    expect(renderer.render('a', busy, new Map())).toBe('x'.repeat(5000))
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now + 3000)
    onTestFinished(() => void vi.restoreAllMocks())
    expect(() => renderer.render('a', busy, new Map())).toThrow('takes too long')
  })

  test('the templates of one request share how much they may give, be it one text over and over', async () => {
    const text = 'x'.repeat(1024 * 1024)
    expect((await kept({ a: {}, b: {} }, { a: text, b: '{{ [a] * 20 }}' }))?.['b']).toHaveLength(20)
    const failure = await failureOf(() =>
      kept({ a: {}, b: {}, c: {} }, { a: text, b: '{{ [a] * 20 }}', c: '{{ [a] * 20 }}' }),
    )
    expect(failure?.code).toBe('TEMPLATE_FAILED')
    expect(failure?.message).toContain('the templates give more than 33554432 characters together')
  })

  test('only so much text is looked into for templates', async () => {
    const text = `{{ 1 }}${'x'.repeat(600_000)}`
    expect(await kept({ a: {}, b: {} }, { a: text, b: 'y'.repeat(2_000_000) })).toMatchObject({
      a: text.replace('{{ 1 }}', '1'),
    })
    expect((await failureOf(() => kept({ a: {}, b: {} }, { a: text, b: text })))?.message).toContain(
      'more than 1048576 characters',
    )
    const noTemplate = `{{.Name}}${'x'.repeat(600_000)}`
    expect((await failureOf(() => kept({ a: {} }, { a: [noTemplate, noTemplate] })))?.code).toBe('TEMPLATE_FAILED')
  })

  test('once too many templates are found no other is understood', async () => {
    const names = Array.from({ length: 600 }, (_, index) => `a${index}`)
    const many = names.map((name) => `{{ ${name} }}`)
    expect(findTemplates([many, many])).toMatchObject({ count: 1200, names: new Set(names.slice(0, 501)) })
    expect((await failureOf(() => kept({ a: {} }, { a: many })))?.code).toBe('TEMPLATE_FAILED')
  })

  test('what is left out of the template language is said, not printed', async () => {
    expect((await failureOf(() => kept({ a: {} }, { a: "{% include 'x' %}" })))?.code).toBe('TEMPLATE_FAILED')
  })

  test('what does not convert is another failure', async () => {
    expect(await failureOf(() => kept({ a: { type: 'integer' }, b: {} }, { a: '{{ b }}', b: 'x' }))).toEqual({
      code: 'PARAMETERS_INVALID',
      message: `a: invalid literal for int() with base 10: 'x'`,
    })
  })
})

describe('data is rendered once', () => {
  const hostile = '{{ svckv.system.key }}'
  const action: ParameterSchemas = {
    a: {},
    b: {},
    list: { type: 'array' },
    shown: { default: 'x {{ b }}', immutable: true },
    echoed: { default: '{{ b }}' },
  }

  test('a rendered value is not a template', async () => {
    const supplied = { a: "{{ '{{ svckv.system.key }}' }}", b: 'plain' }
    expect((await kept(action, supplied))['a']).toBe(hostile)
    expect(await effective(action, supplied)).toMatchObject({ a: hostile })
  })

  test('nor when siblings or immutable defaults take it over', async () => {
    const set = createParameterSet({}, action)
    const rendered = await renderParameters(set, { b: "{{ '{{ svckv.system.key }}' }}" }, scope, rendering)
    expect(rendered).toEqual({ b: hostile, echoed: hostile })
    expect((await effectiveParameters(set, rendered, scope, rendering)).actionParameters).toMatchObject({
      b: hostile,
      echoed: hostile,
      shown: `x ${hostile}`,
    })
  })

  test('text parsed to a list keeps its braces', async () => {
    const supplied = { list: `["{{ '{{ svckv.system.key }}' }}"]` }
    expect((await effective(action, supplied))['list']).toEqual([hostile])
  })

  test('values named as literals are data from the start', async () => {
    const set = createParameterSet({}, action)
    const rendered = await renderParameters(set, { a: hostile, b: '{{ action_context.user }}' }, scope, rendering, {
      literals: new Set(['a']),
    })
    expect(rendered).toEqual({ a: hostile, b: 'ada', echoed: 'ada' })
  })
})

describe('checks', () => {
  const action: ParameterSchemas = {
    cmd: { required: true },
    sudo: { immutable: true },
    level: { type: 'string', enum: ['low', 'high'] },
    either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    count: { type: 'integer', required: true, default: 1, minimum: 1 },
    shown: { type: 'string', required: true, immutable: true, default: 'x{{ cmd }}' },
  }

  test.each<[string, Values, string]>([
    ['required', {}, `'cmd' is a required property`],
    ['required is not null', { cmd: null }, `cmd: None is not of type 'string'`],
    ['closed', { cmd: 'x', y: 1 }, `Additional properties are not allowed ('y' was unexpected)`],
    ['closed, two', { cmd: 'x', y: 1, z: 1 }, `Additional properties are not allowed ('y', 'z' were unexpected)`],
    ['inherited names', { cmd: 'x', toString: 1 }, `Additional properties are not allowed ('toString' was unexpected)`],
    ['type', { cmd: 'x', env: [1] }, `env: [1] is not of type 'object', 'null'`],
    ['enum', { cmd: 'x', level: 'mid' }, `level: 'mid' is not one of ['low', 'high']`],
    ['minimum', { cmd: 'x', count: 0 }, `count: 0 is less than the minimum of 1`],
    ['immutable', { cmd: 'x', sudo: true }, `Override of immutable parameter(s) ['sudo'] is unsupported.`],
    ['immutable, also null', { cmd: 'x', sudo: null }, `Override of immutable parameter(s) ['sudo'] is unsupported.`],
    [
      'immutable with a template',
      { cmd: 'x', shown: 'y' },
      `Override of immutable parameter(s) ['shown'] is unsupported.`,
    ],
    ['schema before immutable', { cmd: 'x', sudo: 5 }, `sudo: 5 is not of type 'boolean', 'null'`],
    ['conversion before schema', { cmd: 1 }, 'cmd: Value "1" must either be a string or None. Got "int".'],
  ])('%s', async (_, supplied, message) => {
    expect(await failureOf(() => accept(action, supplied, shell))).toEqual({ code: 'PARAMETERS_INVALID', message })
  })

  test.each<[string, Values]>([
    ['defaults satisfy required, templated ones too', { cmd: 'x' }],
    ['optional ones may be null, choices too', { cmd: 'x', cwd: null, level: null, either: null, env: null }],
  ])('%s', async (_, supplied) => {
    expect(await failureOf(() => accept(action, supplied, shell))).toBeUndefined()
  })

  test('a plain default is checked as well', async () => {
    expect(await failureOf(() => accept({ a: { type: 'integer', default: 'x' } }, {}))).toMatchObject({
      message: `a: 'x' is not of type 'integer', 'null'`,
    })
  })
})

describe('what a runner gets', () => {
  test('every declared name, split by who declares it', async () => {
    const set = createParameterSet(shell, {
      cmd: { required: true },
      sudo: { default: true, immutable: true },
      name: {},
      n: { default: 2 },
    })
    expect(await effectiveParameters(set, { cmd: 'x', timeout: null }, scope, rendering)).toEqual({
      runnerParameters: { cmd: 'x', cwd: null, env: null, sudo: true, timeout: 60 },
      actionParameters: { name: null, n: 2 },
    })
  })

  test('immutable templates, as core.echo has them', async () => {
    const echo: ParameterSchemas = {
      message: { type: 'string', required: true },
      cmd: { default: 'echo "{{message}}"', immutable: true },
    }
    expect(await effective(echo, { message: 'hi {{ 1 + 1 }}' }, shell)).toMatchObject({
      cmd: 'echo "hi 2"',
      message: 'hi 2',
    })
  })

  test('a rendered default that does not fit its schema fails the run', async () => {
    const set = createParameterSet(
      {},
      { a: { type: 'integer', default: '{{ b }}', immutable: true, maximum: 5 }, b: {} },
    )
    expect(await failureOf(() => effectiveParameters(set, { b: 7 }, scope, rendering))).toEqual({
      code: 'PARAMETERS_INVALID',
      message: 'a: 7 is greater than the maximum of 5',
    })
    expect((await failureOf(() => effectiveParameters(set, { b: 'x' }, scope, rendering)))?.code).toBe(
      'PARAMETERS_INVALID',
    )
  })

  test('converted values are not converted again', async () => {
    expect(await effective({ a: { type: 'string' } }, { a: '5' })).toEqual({ a: '5' })
  })
})
