/** Contract 02, 2.1 to 2.4, 2.6 and 2.10, as far as actions can be read and run but not yet written. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { create, idPattern, send, createAppWithExamples, unknownId, type ErrorAnswer } from './support.ts'

interface Action {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  parameters: Record<string, Record<string, unknown>>
  [attribute: string]: unknown
}

let server: TestApp
beforeAll(async () => {
  server = await createAppWithExamples()
})
afterAll(async () => {
  await server.stop()
})

const get = <T = ErrorAnswer>(path: string) => server.call<T>('GET', `/v1${path}`)
const fault = async (action: string, parameters: Record<string, unknown>): Promise<string> => {
  const answer = await create(server, { action, parameters })
  expect([answer.text, answer.status]).toEqual([answer.text, 400])
  return answer.body.faultstring
}
const parametersOf = async (action: string, parameters: Record<string, unknown>) => {
  const answer = await create(server, { action, parameters })
  expect([answer.text, answer.status]).toEqual([expect.any(String), 201])
  return answer.body.parameters
}
const end = async (action: string, parameters: Record<string, unknown> = {}): Promise<ExecutionAnswer> => {
  const answer = await create(server, { action, parameters })
  expect([answer.text, answer.status]).toEqual([expect.any(String), 201])
  return waitForStatus(server, answer.body.id)
}

describe('02.1 action record', () => {
  it('02.1 lists for many at once', async () => {
    const answers = await Promise.all(
      ['/actions', '/actions/views/overview'].flatMap((path) => Array.from({ length: 100 }, () => get(path))),
    )
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  })

  it('02.1 every field of a core action', async () => {
    const { body } = await get<Action>('/actions/core.local')
    expect(body).toEqual({
      id: expect.stringMatching(idPattern),
      uid: 'action:core:local',
      ref: 'core.local',
      name: 'local',
      pack: 'core',
      description: expect.stringMatching(/./),
      enabled: true,
      runner_type: 'local-shell-cmd',
      entry_point: '',
      parameters: {
        cmd: { type: 'string', required: true, description: expect.any(String) },
        sudo: { immutable: true },
      },
      output_schema: {},
      tags: [],
      notify: {},
      metadata_file: 'actions/local.yaml',
    })
  })

  it('02.1 defaults of what the metadata leaves out', async () => {
    const { body } = await get<Action>('/actions/examples.tagged')
    expect(body).toMatchObject({
      uid: 'action:examples:tagged',
      description: '',
      enabled: true,
      entry_point: '',
      output_schema: {},
      tags: [{ name: 'colour', value: 'blue' }],
      notify: {},
    })
  })
})

describe('02.2 action endpoints', () => {
  const refs = async (query: string): Promise<string[]> =>
    (await get<Action[]>(`/actions?${query}`)).body.map(({ ref }) => ref)

  it('02.2 list: in the order of pack and name', async () => {
    const all = await refs('')
    expect(all).toEqual(all.toSorted())
    expect(all).toEqual(expect.arrayContaining(['core.echo', 'core.local', 'core.local_sudo', 'core.noop']))
  })

  it('02.2 list: filters pack, name, tags, id, alone and together, with their totals', async () => {
    const id = (await get<Action>('/actions/core.noop')).body.id
    for (const [query, expected] of [
      ['pack=core', (await refs('')).filter((ref) => ref.startsWith('core.'))],
      ['pack=unheard_of', []],
      ['name=noop', ['core.noop']],
      ['name=noop&pack=examples', []],
      ['tags=colour', ['examples.tagged']],
      ['tags=colour&pack=core', []],
      ['tags=blue', []],
      [`id=${id}`, ['core.noop']],
      [`id=${id},${unknownId}`, ['core.noop']],
    ] as [string, string[]][]) {
      const answer = await get<Action[]>(`/actions?${query}`)
      expect([query, answer.body.map(({ ref }) => ref)]).toEqual([query, expected])
      expect([query, answer.headers.get('x-total-count')]).toEqual([query, String(expected.length)])
    }
  })

  it('02.2 list: limit and offset; no limit by default', async () => {
    const all = await refs('')
    expect(await refs('limit=2&offset=1')).toEqual(all.slice(1, 3))
    expect(await refs('offset=3')).toEqual(all.slice(3))
    expect(await refs('limit=-1')).toEqual(all)
    expect(await refs('tags=colour&limit=1&offset=1')).toEqual([])
  })

  it('02.2 list: include and exclude attributes', async () => {
    const [included] = (await get<Action[]>('/actions?include_attributes=description&name=noop')).body
    expect(Object.keys(included ?? {}).toSorted()).toEqual(['description', 'id', 'name', 'pack', 'ref'])
    const [excluded] = (await get<Action[]>('/actions?exclude_attributes=parameters,notify&name=noop')).body
    expect(excluded).not.toHaveProperty('parameters')
    expect(excluded).not.toHaveProperty('notify')
    expect(excluded).toHaveProperty('runner_type')
    for (const [query, text] of [
      ['exclude_attributes=name', 'Invalid or unsupported exclude attribute specified: name'],
      ['include_attributes=unheard_of', 'Invalid or unsupported include attribute specified: unheard_of'],
      ['include_attributes=name&exclude_attributes=notify', 'mutually exclusive'],
    ] as const) {
      const { status, body } = await get(`/actions?${query}`)
      expect([query, status]).toEqual([query, 400])
      expect(body.faultstring).toContain(text)
    }
  })

  it.each([
    'core.unheard_of',
    'unheard_of',
    unknownId,
    '%2E',
    'core.',
    '.local',
    'CORE.LOCAL',
    '__proto__',
    'constructor',
  ])('02.2 get: %s → 404 naming it', async (ref) => {
    for (const path of [`/v1/actions/${ref}`, `/v1/actions/views/parameters/${ref}`]) {
      const answer = await send(server.urls.api, { path })
      expect([path, answer.status]).toEqual([path, 404])
      expect((JSON.parse(answer.text) as ErrorAnswer).faultstring).toContain(`"${decodeURIComponent(ref)}"`)
    }
  })

  it('02.2 views/parameters: runner and action merged, by ref and by id', async () => {
    const { body } = await get<{ parameters: Action['parameters'] }>('/actions/views/parameters/core.local')
    expect(Object.keys(body)).toEqual(['parameters'])
    expect(Object.keys(body.parameters).toSorted()).toEqual(
      [
        'background_grace_seconds',
        'background_jobs',
        'cmd',
        'cwd',
        'env',
        'kwarg_op',
        'stdin',
        'sudo',
        'sudo_password',
        'timeout',
      ].toSorted(),
    )
    expect(body.parameters['cmd']).toMatchObject({ type: 'string', required: true })
    expect(body.parameters['sudo']).toMatchObject({ type: 'boolean', default: false, immutable: true })
    const { id } = (await get<Action>('/actions/core.local')).body
    expect((await get(`/actions/views/parameters/${id}`)).body).toEqual(body)
  })

  it('02.2 views/overview: records with merged parameters; as a list with filters, or one', async () => {
    const core = (await refs('')).filter((ref) => ref.startsWith('core.'))
    const list = await get<Action[]>('/actions/views/overview?pack=core&limit=2&offset=1')
    expect(list.body.map(({ ref }) => ref)).toEqual(core.slice(1, 3))
    expect(list.headers.get('x-total-count')).toBe(String(core.length))
    const one = (await get<Action>('/actions/views/overview/core.local')).body
    const all = await get<Action[]>('/actions/views/overview?pack=core&name=local')
    expect(all.body).toEqual([one])
    expect(one.parameters).toEqual((await get<Action>('/actions/views/parameters/core.local')).body.parameters)
    expect(one['runner_type']).toBe('local-shell-cmd')
  })

  it('02.2 views/entry_point: 404 for an action that has none, and for none such', async () => {
    for (const ref of ['core.local', 'core.unheard_of']) {
      const { status, body } = await get(`/actions/views/entry_point/${ref}`)
      expect([ref, status]).toEqual([ref, 404])
      expect(body.faultstring).toContain(ref)
    }
  })
})

describe('02.3 runner types', () => {
  it('02.3 record', async () => {
    const { body } = await get('/runnertypes/local-shell-cmd')
    expect(body).toMatchObject({
      id: expect.stringMatching(idPattern),
      uid: 'runner_type:local-shell-cmd',
      name: 'local-shell-cmd',
      description: expect.stringMatching(/./),
      enabled: true,
      runner_package: expect.stringMatching(/./),
      runner_module: expect.stringMatching(/./),
      runner_parameters: {
        cmd: { type: 'string' },
        cwd: { type: 'string' },
        env: { type: 'object' },
        kwarg_op: { type: 'string', default: '--' },
        sudo: { type: 'boolean', default: false },
        sudo_password: { type: 'string', default: null, secret: true },
        timeout: { type: 'integer', default: 60 },
      },
    })
    expect((await get<{ runner_parameters: object }>('/runnertypes/noop')).body.runner_parameters).toEqual({})
  })

  it('02.3 list: with and without a trailing slash; name takes a comma list; limit and offset', async () => {
    const names = async (query: string): Promise<[string[], string | null]> => {
      const answer = await get<{ name: string }[]>(query)
      return [answer.body.map(({ name }) => name), answer.headers.get('x-total-count')]
    }
    const [all, total] = await names('/runnertypes')
    expect(all).toEqual(expect.arrayContaining(['local-shell-cmd', 'noop']))
    expect(total).toBe(String(all.length))
    expect(await names('/runnertypes/')).toEqual([all, total])
    expect(await names('/runnertypes/?name=noop')).toEqual([['noop'], '1'])
    expect(await names('/runnertypes?name=noop,local-shell-cmd')).toEqual([['local-shell-cmd', 'noop'], '2'])
    expect(await names('/runnertypes?limit=1&offset=1')).toEqual([[all[1]], total])
    expect(await names('/runnertypes?name=unheard_of')).toEqual([[], '0'])
  })

  it('02.3 get: by name or id; 404 naming what was asked for', async () => {
    const byName = (await get<{ id: string }>('/runnertypes/noop')).body
    expect((await get(`/runnertypes/${byName.id}`)).body).toEqual(byName)
    const { status, body } = await get('/runnertypes/unheard_of')
    expect(status).toBe(404)
    expect(body.faultstring).toBe('Resource with a name or id "unheard_of" not found')
  })

  it('02.3 PUT: takes only enabled; a disabled runner lets executions be created, which then fail', async () => {
    const off = await server.call<Record<string, unknown>>('PUT', '/v1/runnertypes/noop', {
      enabled: false,
      name: 'renamed',
      description: 'changed',
    })
    expect(off.status).toBe(200)
    expect(off.body).toMatchObject({ enabled: false, name: 'noop' })
    expect(off.body['description']).not.toBe('changed')
    try {
      const execution = await end('core.noop')
      expect(execution.status).toBe('failed')
      expect(execution.result).toEqual({ error: expect.stringContaining('disabled'), traceback: expect.any(String) })
      expect(execution.log.map(({ status }) => status)).toEqual(['requested', 'scheduled', 'failed'])
    } finally {
      expect((await server.call('PUT', '/v1/runnertypes/noop', { enabled: true })).body).toMatchObject({
        enabled: true,
      })
    }
    expect((await end('core.noop')).status).toBe('succeeded')
    expect((await server.call('PUT', '/v1/runnertypes/unheard_of', { enabled: true })).status).toBe(404)
    expect((await server.call('PUT', '/v1/runnertypes/noop', { enabled: 'maybe' })).status).toBe(400)
  })
})

describe('02.4 parameters', () => {
  it('02.4 optional without default: null is accepted', async () => {
    expect(await parametersOf('examples.checked', { text: null, options: null, choice: null, count: null })).toEqual({
      text: null,
      options: null,
      choice: null,
      count: null,
    })
  })

  it('02.4 closed set: unknown parameters are refused by name', async () => {
    expect(await fault('core.local', { cmd: 'true', unheard_of: 1 })).toContain(
      "Additional properties are not allowed ('unheard_of' was unexpected)",
    )
    expect(await fault('core.noop', { a: 1, b: 2 })).toContain("('a', 'b' were unexpected)")
  })

  it('02.4 missing required is named; a default satisfies it', async () => {
    expect(await fault('core.local', {})).toContain("'cmd' is a required property")
    expect(await parametersOf('examples.checked', {})).toBeUndefined()
  })

  it('02.4 required: null does not satisfy it', async () => {
    expect(await fault('core.local', { cmd: null })).toMatch(/cmd/)
    expect(await fault('examples.needy', { options: null })).toMatch(/options/)
  })

  it('02.4 immutable supplied: all of them are named', async () => {
    expect(await fault('core.local', { cmd: 'true', sudo: true })).toBe(
      "Override of immutable parameter(s) ['sudo'] is unsupported.",
    )
    expect(await fault('core.echo', { message: 'x', cmd: 'true', sudo: false })).toMatch(/'cmd'.*'sudo'/)
  })

  it('02.4 an explicit null for an optional parameter with a default: the default is used', async () => {
    const execution = await end('core.local', { cmd: 'echo ok', timeout: null, kwarg_op: null })
    expect(execution).toMatchObject({ status: 'succeeded', result: { stdout: 'ok' } })
  })

  it('02.4 defaults in the record: plain ones are not added', async () => {
    expect(await parametersOf('core.local', { cmd: 'true' })).toEqual({ cmd: 'true' })
  })

  it.each([
    ['integer from text', { count: '7' }, { count: 7 }],
    ['integer from text with a sign', { count: ' -7 ' }, { count: -7 }],
    ['integer from a fraction, cut off', { count: 5.7 }, { count: 5 }],
    ['integer from a negative fraction, cut off', { count: -5.7 }, { count: -5 }],
    ['number from text', { ratio: '1.5e2' }, { ratio: 150 }],
    ['boolean from text', { flag: 'TRUE' }, { flag: true }],
    ['boolean from text', { flag: 'False' }, { flag: false }],
    ['array from JSON text', { items: '[1, "b", null]' }, { items: [1, 'b', null] }],
    ['object from JSON text', { options: '{"a": {"b": 1}}' }, { options: { a: { b: 1 } } }],
    ['array from a Python literal', { items: "['a', True, None, (1,)]" }, { items: ['a', true, null, [1]] }],
    ['object from a Python literal', { options: "{'a': True}" }, { options: { a: true } }],
    ['untyped: as it is', { anything: { a: ['7', 7] } }, { anything: { a: ['7', 7] } }],
    ['text: as it is', { text: '7' }, { text: '7' }],
    ['enum', { choice: 'a' }, { choice: 'a' }],
  ] as [string, Record<string, unknown>, Record<string, unknown>][])(
    '02.4 casting: %s %j',
    async (_, supplied, kept) => {
      expect(await parametersOf('examples.checked', supplied)).toEqual(kept)
    },
  )

  it.each([
    ['text from a number', { text: 123 }, 'Value "123" must either be a string or None. Got "int".'],
    ['text from a list', { text: [1] }, 'Got "list"'],
    ['integer from words', { count: 'abc' }, "invalid literal for int() with base 10: 'abc'"],
    ['integer from a fraction in text', { count: '5.7' }, "'5.7'"],
    ['integer from a list', { count: [1] }, 'count'],
    ['number from words', { ratio: 'abc' }, "could not convert string to float: 'abc'"],
    ['number without end', { ratio: '1e999' }, 'ratio'],
    ['boolean from a number', { flag: 1 }, "1 is not of type 'boolean'"],
    ['boolean from words', { flag: 'maybe' }, "'maybe'"],
    ['array from a number', { items: 5 }, "5 is not of type 'array', 'null'"],
    ['array from an object in text', { items: '{"a": 1}' }, "is not of type 'array', 'null'"],
    ['array from nonsense', { items: '[1,' }, "'[1,'"],
    ['object from a list', { options: [1] }, "is not of type 'object', 'null'"],
    ['object from nonsense', { options: 'x' }, "'x'"],
    ['not in the enum', { choice: 'c' }, "'c' is not one of ['a', 'b']"],
  ] as [string, Record<string, unknown>, string][])('02.4 casting: %s → 400', async (_, supplied, text) => {
    const message = await fault('examples.checked', supplied)
    expect(message).toContain(text)
    expect(message).toContain(Object.keys(supplied)[0])
  })

  it('02.4 conversion failure leaves no execution behind', async () => {
    const total = async () => (await get('/executions?limit=1')).headers.get('x-total-count')
    const before = await total()
    await fault('examples.checked', { count: 'abc' })
    expect(await total()).toBe(before)
  })
})

describe('02.6 templates', () => {
  it('02.6 siblings, supplied or default, in the order they need each other', async () => {
    const execution = await end('examples.templated', { name: 'ada' })
    expect(execution.result).toMatchObject({ stdout: 'hello ada ada!' })
    expect(execution.parameters).toEqual({ name: 'ada', greeting: 'hello ada' })
  })

  it('02.6 rendered and then converted: templates in supplied values', async () => {
    const kept = await parametersOf('examples.templated', {
      name: 'ada',
      greeting: '{{ name }} and {{name}}',
      times: '{{ "4" }}2',
      list: ['{{ name }}', 'x{{ name }}', 5],
    })
    expect(kept).toEqual({ name: 'ada', greeting: 'ada and ada', times: 42, list: ['ada', 'xada', 5] })
  })

  it('02.6 a whole expression keeps its type', async () => {
    const kept = await parametersOf('examples.checked', {
      count: '{{ must_count }}',
      anything: { inner: '{{ items }}' },
      items: [1, 'b'],
    })
    expect(kept).toEqual({ count: 3, anything: { inner: [1, 'b'] }, items: [1, 'b'] })
  })

  it('02.6 action_context', async () => {
    const answer = await create(server, {
      action: 'examples.templated',
      parameters: { name: '{{ action_context.user }}/{{ action_context.pack }}/{{ action_context.mine.deep }}' },
      context: { mine: { deep: 'x' } },
    })
    expect(answer.body.parameters['name']).toBe('svc/examples/x')
  })

  it('02.6 text that is not valid template syntax is taken literally', async () => {
    expect(await parametersOf('core.local', { cmd: 'echo {{ }} {% nonsense %} {{' })).toEqual({
      cmd: 'echo {{ }} {% nonsense %} {{',
    })
  })

  it.each([
    ['undefined name', { name: '{{ unheard_of }}' }, /"name".*unheard_of/],
    ['undefined attribute', { name: '{{ action_context.unheard_of.deeper }}' }, /"name"/],
    ['cycle', { name: '{{ greeting }}', greeting: '{{ name }}' }, /[Cc]yclic.*name/],
  ] as [string, Record<string, unknown>, RegExp][])(
    '02.6 %s → 400, and an execution in status failed is left behind',
    async (_, parameters, text) => {
      const total = async () => Number((await get('/executions?limit=1')).headers.get('x-total-count'))
      const before = await total()
      const message = await fault('examples.templated', parameters)
      expect(message).toMatch(text)
      expect(await total()).toBe(before + 1)
      const { body } = await get<ExecutionAnswer>('/executions/last')
      expect(body).toMatchObject({ status: 'failed', result: { error: message, traceback: expect.any(String) } })
      expect(body.log.map(({ status }) => status)).toEqual(['requested', 'failed'])
      expect(body.parameters).toEqual(parameters)
    },
  )

  it('02.6 what a template gives is not rendered again', async () => {
    const execution = await end('examples.templated', { name: '{{ "{{ 1 + 1 }}" }}' })
    expect(execution.parameters['name']).toBe('{{ 1 + 1 }}')
    expect(execution.result).toMatchObject({ stdout: 'hello {{ 1 + 1 }} {{ 1 + 1 }}!' })
  })
})

describe('02.10 core actions of this release', () => {
  it('02.10 core.local', async () => {
    const execution = await end('core.local', { cmd: 'echo a; echo b >&2; exit 3' })
    expect(execution).toMatchObject({
      status: 'failed',
      result: { failed: true, succeeded: false, return_code: 3, stdout: 'a', stderr: 'b' },
    })
  })

  it('02.10 core.local_sudo: sudo is on and cannot be changed', async () => {
    const { body } = await get<{ parameters: Action['parameters'] }>('/actions/views/parameters/core.local_sudo')
    expect(body.parameters['sudo']).toMatchObject({ default: true, immutable: true })
    expect(await fault('core.local_sudo', { cmd: 'true', sudo: true })).toContain("['sudo']")
  })

  it('02.10 core.echo: prints its message', async () => {
    const execution = await end('core.echo', { message: 'two  words' })
    expect(execution).toMatchObject({ status: 'succeeded', result: { stdout: 'two  words' } })
    expect(await fault('core.echo', {})).toContain("'message'")
  })

  const hostile: [string, string][] = [
    ['a substitution', '$(echo run) `echo run` ${HOME} $HOME'],
    ['quotes', `"; echo run; " ' \\" \\'`],
    ['line ends', '\nfirst\r\n\tlast\n\n'],
    ['an option', '-n'],
    ['another option', '-e a\\tb'],
    ['backslashes', 'C:\\new\\table \\0101 \\c end \\'],
    ['nothing', ''],
    ['a blank', ' '],
    ['unicode', 'ｈｏｇｅ 😀 \u202e'],
    ['percent signs', '%s %d %%'],
    ['a template', '{% raw %}{{ message }}{% endraw %}'],
    ['200 KB', 'x$(y) '.repeat(33_334)],
  ]
  it.each(hostile)('02.10 core.echo and core.error print a message as it is: %s', async (_, message) => {
    const text = message.replaceAll(/\{% (end)?raw %\}/g, '')
    // The runner removes one line end, with its carriage return, from the end of each text.
    const echo = await end('core.echo', { message })
    expect(echo).toMatchObject({
      status: 'succeeded',
      result: { failed: false, succeeded: true, return_code: 0, stdout: text, stderr: '' },
    })
    const error = await end('core.error', { message })
    expect(error).toMatchObject({
      status: 'succeeded',
      result: { failed: false, succeeded: true, return_code: 0, stdout: '', stderr: text },
    })
    // What the command reads is not kept beside the message.
    expect(Object.keys(echo.parameters)).toEqual(['message'])
  })

  it.each(['core.echo', 'core.error'])('02.10 %s refuses a NUL character, and says so', async (action) => {
    const { status, result } = await end(action, { message: 'a\0b' })
    expect([status, result]).toMatchObject(['failed', { error: expect.stringContaining('NUL') }])
  })

  it('02.10 no action of a built-in pack puts a value into a shell command', () => {
    const folder = join(import.meta.dirname, '../../src/modules/packs')
    const files = globSync('*/actions/*.yaml', { cwd: folder })
    const commands = files.map((file) => {
      const { parameters } = load(readFileSync(join(folder, file), 'utf8')) as Pick<Action, 'parameters'>
      return String(parameters['cmd']?.['default'])
    })
    expect(commands).toContain('cat')
    expect(commands.filter((text) => /\{[{%]/.test(text))).toEqual([])
  })

  it('02.10 core.echo: working directory, environment and time limit are those of the runner', async () => {
    const given = { message: 'x', cwd: '/', env: { LC_ALL: 'C' }, timeout: 5 }
    expect(await end('core.echo', given)).toMatchObject({ status: 'succeeded', result: { stdout: 'x' } })
    expect(await fault('core.echo', { message: 'x', stdin: 'y' })).toContain("['stdin']")
  })

  it('03.6 a command reads the parameter stdin; without it there is nothing to read', async () => {
    const read = await end('core.local', { cmd: 'read -r first; echo "[$first]"; cat', stdin: 'a $(b)\nc' })
    expect(read).toMatchObject({ status: 'succeeded', result: { stdout: '[a $(b)]\nc' } })
    // A command that does not read it all is no failure.
    const ignored = await end('core.local', { cmd: 'true', stdin: 'x'.repeat(300_000) })
    expect(ignored).toMatchObject({ status: 'succeeded', result: { return_code: 0 } })
    expect(await end('core.local', { cmd: 'cat' })).toMatchObject({ status: 'succeeded', result: { stdout: '' } })
  })

  it('02.10 core.noop: succeeds', async () => {
    const execution = await end('core.noop')
    expect(execution).toMatchObject({
      status: 'succeeded',
      result: { failed: false, succeeded: true, return_code: 0 },
    })
  })
})
