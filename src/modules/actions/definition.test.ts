import { describe, expect, test } from 'vitest'
import { checkActionDefinition } from './definition.ts'
import type { ParameterSchemas } from './parameters.ts'

const shell: ParameterSchemas = {
  cmd: { type: 'string' },
  sudo: { type: 'boolean', default: false },
  dir: { type: 'string', default: '/tmp', immutable: true },
}

const runners = new Map([['local-shell-cmd', shell]])

function check(given: unknown) {
  return checkActionDefinition(given, (name) => runners.get(name))
}

async function problemsOf(parameters: unknown): Promise<unknown> {
  const result = await check({ name: 'run', pack: 'mine', runner_type: 'local-shell-cmd', parameters })
  const remarks = 'problems' in result ? result.problems : result.warnings
  return remarks.map(({ path, message }) => [path.join('.'), message])
}

describe('definitions of actions', () => {
  test('what is left out is filled in', async () => {
    expect(await check({ name: 'run', runner_type: 'local-shell-cmd', description: null })).toEqual({
      definition: {
        name: 'run',
        pack: 'default',
        description: '',
        enabled: true,
        runner_type: 'local-shell-cmd',
        entry_point: '',
        parameters: {},
        output_schema: {},
        tags: [],
        notify: {},
      },
      warnings: [],
    })
  })

  test.each(['sub/../run.sh', '../run.sh', './a/../../lib/run.sh'])('%s lies in the pack', async (entryPoint) => {
    const given = { name: 'run', runner_type: 'local-shell-cmd', entry_point: entryPoint }
    expect(await check(given)).toHaveProperty('definition.entry_point', entryPoint)
  })

  test('what is enabled by nothing is off', async () => {
    const given = { name: 'run', runner_type: 'local-shell-cmd', enabled: null }
    expect(await check(given)).toHaveProperty('definition.enabled', false)
  })

  test('a pattern that cannot be used is a warning', async () => {
    for (const pattern of ['[', '^(?!root)']) {
      expect(await problemsOf({ who: { type: 'string', pattern } })).toEqual([
        ['parameters.who.pattern', expect.stringMatching(/svc refuses every value of this parameter$/)],
      ])
    }
    const patternProperties = { '(a)\\1': {} }
    expect(await problemsOf({ all: { type: 'array', items: { type: 'object', patternProperties } } })).toEqual([
      ['parameters.all.items.patternProperties', expect.stringContaining('is invalid or unsupported')],
    ])
  })

  test('older names of runners are known', async () => {
    expect(await check({ name: 'run', runner_type: 'run-local' })).toHaveProperty(
      'definition.runner_type',
      'local-shell-cmd',
    )
  })

  test.each([
    [{ runner_type: 'local-shell-cmd' }, '', `'name' is a required property`],
    [{ name: 'a' }, '', `'runner_type' is a required property`],
    [{ name: 'a', runner_type: 'nothing' }, 'runner_type', 'RunnerType nothing is not found'],
    [{ name: 'a', runner_type: 'constructor' }, 'runner_type', 'RunnerType constructor is not found'],
    [
      { name: 'a', runner_type: 'local-shell-cmd', ref: 'x' },
      'ref',
      `Additional properties are not allowed ('ref' was unexpected)`,
    ],
    [{ name: '../a', runner_type: 'local-shell-cmd' }, 'name', `name: '../a' does not match`],
    [{ name: 'a', pack: 'a.b', runner_type: 'local-shell-cmd' }, 'pack', `pack: 'a.b' does not match`],
    [
      { name: 'a', enabled: 'yes', runner_type: 'local-shell-cmd' },
      'enabled',
      `enabled: 'yes' is not of type 'boolean'`,
    ],
    [
      { name: 'a', runner_type: 'local-shell-cmd', tags: [{ name: 'x' }] },
      'tags.0',
      `tags[0]: 'value' is a required property`,
    ],
    [
      { name: 'a', runner_type: 'local-shell-cmd', notify: { 'on-complet': {} } },
      'notify.on-complet',
      `notify: Additional properties are not allowed ('on-complet' was unexpected)`,
    ],
    [
      { name: 'a', runner_type: 'local-shell-cmd', entry_point: '../../x.sh' },
      'entry_point',
      'entry_point: use a path relative to the folder actions',
    ],
    [
      { name: 'a', runner_type: 'local-shell-cmd', entry_point: '/bin/sh' },
      'entry_point',
      'entry_point: use a path relative to the folder actions',
    ],
    ['text', '', `'text' is not of type 'object'`],
  ])('%j is refused', async (given, path, message) => {
    const result = await check(given)
    expect(result).toEqual({ problems: [expect.anything()] })
    if (!('problems' in result)) return
    expect(result.problems[0]?.path.join('.')).toBe(path)
    expect(result.problems[0]?.message).toContain(message)
  })
})

describe('parameters of actions', () => {
  test.each<[unknown, [string, string][]]>([
    [{ cmd: { required: true, position: undefined } }, []],
    [{ cmd: { type: 'string', required: true }, sudo: { immutable: true } }, []],
    [{ a: { position: 3 }, b: { position: 2 } }, []],
    [{ a: { immutable: true, default: 1 } }, []],
    [{ a: { immutable: true, default: null } }, []],
    [
      { a: { position: 0 }, b: { position: 0 } },
      [['parameters.b.position', 'Parameters a and b have same position 0. Position values have to be unique.']],
    ],
    [
      { a: { position: 0 }, b: { position: 2 } },
      [['parameters', 'Positions supplied [0, 2] for parameters are not contiguous.']],
    ],
    [{ a: { immutable: true } }, [['parameters.a', 'Immutable param a requires a default value.']]],
    [{ cmd: { immutable: true } }, [['parameters.cmd', 'Immutable param cmd requires a default value.']]],
    [
      { dir: { immutable: false } },
      [['parameters.dir.immutable', 'Param dir is declared immutable in runner. Cannot override in action.']],
    ],
    [
      { sudo: { type: 'string' } },
      [
        [
          'parameters.sudo.type',
          'The attribute "type" for the runner parameter "sudo" in action "mine.run" cannot be overridden.',
        ],
      ],
    ],
    [
      { cmd: { secret: true, position: 0 } },
      [
        [
          'parameters.cmd.secret',
          'The attribute "secret" for the runner parameter "cmd" in action "mine.run" cannot be overridden.',
        ],
        [
          'parameters.cmd.position',
          'The attribute "position" for the runner parameter "cmd" in action "mine.run" cannot be overridden.',
        ],
      ],
    ],
    [
      { a: { type: 'string', order: 1 }, 'b-c': {} },
      [
        ['parameters.a.order', `parameters.a: Additional properties are not allowed ('order' was unexpected)`],
        ['parameters.b-c', 'parameters: the name "b-c" may hold letters, digits and "_" only'],
      ],
    ],
    [{ a: 'string' }, [['parameters.a', `parameters.a: 'string' is not of type 'object'`]]],
  ])('%j', async (parameters, problems) => {
    expect(await problemsOf(JSON.parse(JSON.stringify(parameters)))).toEqual(problems)
  })
})

describe('a value that no run could use is a warning with its fix', () => {
  test.each([
    [
      { type: 'string', default: 1.1 },
      `v.default: 1.1 is not of type 'string'; put it in quotes, exactly as it is meant, such as '1.1'`,
    ],
    [
      { type: 'string', default: true },
      `v.default: True is not of type 'string'; put it in quotes, exactly as it is meant, such as 'true'`,
    ],
    [
      { type: 'integer', default: '5' },
      `v.default: '5' is not of type 'integer'; remove its quotes, or change the type`,
    ],
    [
      { type: 'string', default: 7, secret: true },
      `v.default: ******** is not of type 'string'; put it in quotes, exactly as it is meant, such as '…'`,
    ],
    [{ type: 'string', enum: ['a', 'b'], default: 'c' }, `v.default: 'c' is not one of ['a', 'b']`],
    [{ type: 'array', default: 'a' }, `v.default: 'a' is not of type 'array'`],
    [{ type: 'array', items: { type: 'integer' }, default: [1, 'x'] }, `v.default: [1]: 'x' is not of type 'integer'`],
    [
      { type: 'object', properties: { a: { type: 'string' } }, default: { a: 5 } },
      `v.default: a: 5 is not of type 'string', 'null'`,
    ],
  ])('%j', async (schema, message) => {
    expect(await problemsOf({ v: schema })).toEqual([['parameters.v.default', `parameters.${message}`]])
  })

  test('also a choice, and a default for a parameter of the runner', async () => {
    expect(await problemsOf({ v: { type: 'string', enum: ['on', true] } })).toEqual([
      [
        'parameters.v.enum.1',
        expect.stringContaining(`parameters.v.enum.1: True is not of type 'string'; put it in quotes`),
      ],
    ])
    expect(await problemsOf({ sudo: { default: 'yes' } })).toEqual([
      [
        'parameters.sudo.default',
        `parameters.sudo.default: 'yes' is not of type 'boolean'; remove its quotes, or change the type`,
      ],
    ])
  })

  test.each([
    { type: 'string', default: null },
    { type: 'integer', default: '{{ config_context.count }}' },
    { type: 'array', default: ['{{ a }}'], items: { type: 'integer' } },
    { type: 'string', default: '1.10', immutable: true },
    { type: 'integer', enum: [1, 2, null], default: 2 },
    { default: 5 },
    { type: 'object', default: {} },
  ])('but not %j', async (schema) => {
    expect(await problemsOf({ v: schema })).toEqual([])
  })
})
