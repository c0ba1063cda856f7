/**
 * Canary secrets go through workflows on every path that a value can take there, and are then looked for in everything that
 * the server answers, streams, logs and stores. Each of them is still the value itself for the actions that need it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import type { Answer, ExecutionAnswer } from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowActions, type WorkflowApp } from '../helpers/workflows.ts'

/** Of more than ASCII, with what JSON and URLs write in another way. */
const canary = (name: string): string => `canäry-${name}-${randomBytes(8).toString('hex')} "/+`
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const secrets = {
  parameter: canary('parameter'),
  nested: canary('nested'),
  failing: canary('failing'),
  datastore: canary('datastore'),
  restart: canary('restart'),
  returned: canary('returned'),
  restartReturned: canary('restartreturned'),
  inner: canary('inner'),
  answer: canary('answer'),
  rerun: canary('rerun'),
}
type Name = keyof typeof secrets

const password = { password: { type: 'string', secret: true } }
/** Prints what a value is without showing it. */
const digestOf = (expression: string): string => `
    action: core.local
    input:
      cmd: printf %s "$S" | sha256sum | cut -d ' ' -f 1; echo "$S"; echo "$S" >&2
      env: {S: "${expression}"}`

/** A workflow with tasks that fail, and whose failure may quote the value. */
const quoting = (name: string, tasks: string): WorkflowActions => ({
  [name]: { parameters: password, definition: `version: 1.0\ninput: [password]\ntasks:\n  ${tasks}\n` },
})

const actions: WorkflowActions = {
  everywhere: {
    parameters: { ...password, account: { type: 'object', properties: { pin: { type: 'string', secret: true } } } },
    definition: `
version: 1.0
input: [password, account]
vars:
  - copy: <% ctx(password) %>
  - around: {a: ["before <% ctx(password) %> after"], "key <% ctx(password) %>": 1}
  - json: <% to_json_string(dict(it => ctx(password))) %>
tasks:
  use:${digestOf('<% ctx(copy) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
          - line: <% result().stdout %>
          - again: <% ctx(around) %>
        do: pin
  pin:${digestOf('<% ctx(account).pin %>')}
    next:
      - publish: pin=<% result().stdout %> whole=<% ctx(account) %>
        do: each
  each:
    with: <% list(ctx(password), ctx(copy)) %>
    action: core.echo message=<% item() %>
    next:
      - publish: [{lines: <% result().select($.stdout) %>}]
        do: child
  child:
    action: flow.child
    input:
      password: <% ctx(password) %>
    next:
      - publish: [{child: <% result().output %>}]
        do: fails
  fails:
    action: core.local
    input:
      cmd: echo "$S" >&2; exit 3
      env: {S: <% ctx(password) %>}
    next:
      - when: <% failed() %>
        publish: [{why: <% result() %>}]
        do: noop
output:
  - digest: <% ctx(digest) %>
  - all: <% ctx() %>
  - password: <% ctx(password) %>
`,
  },
  child: {
    parameters: password,
    definition: `
version: 1.0
input: [password]
tasks:
  use:${digestOf('<% ctx(password) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
output:
  - digest: <% ctx(digest) %>
  - password: <% ctx(password) %>
`,
  },
  quotes: {
    parameters: password,
    definition: `
version: 1.0
input: [password]
tasks:
  begin:
    action: core.noop
output:
  - a: <% int(ctx(password)) %>
  - b: <% json_parse(ctx(password)) %>
  - c: <% version_bump_major(ctx(password)) %>
  - d: <% regex_match('x', '(' + ctx(password)) %>
  - e: <% task(ctx(password)) %>
  - f: <% svckv(ctx(password)) %>
  - g: <% ctx(ctx(password)) %>
  - h: <% dict(a => 1).get(ctx(password)).b.c %>
  - i: <% yaml_parse('[' + ctx(password)) %>
  - j: <% jsonpath_query(dict(a => 1), '$[' + ctx(password)) %>
  - k: <% assert(ctx(password), $ = 1, ctx(password)) %>
  - l: "{{ ctx().password.x.y }}"
  - m: "{{ ctx(ctx().password) }}"
  - n: <% datetime(ctx(password)) %>
  - o: <% ctx(password) / 2 %>
`,
  },
  ...quoting('quotesName', 'a: {action: <% ctx(password) %>}'),
  ...quoting('quotesParameter', 'a: {action: core.local cmd="true" timeout=<% ctx(password) %>}'),
  ...quoting(
    'quotesWhen',
    `a:
    action: core.noop
    next:
      - when: <% int(ctx(password)) > 1 %>
        do: b
      - publish: [{x: <% int(ctx(password)) %>}]
        do: b
  b: {action: core.noop}`,
  ),
  ...quoting('quotesInput', 'a: {action: core.noop, input: <% ctx(password) %>}'),
  ...quoting(
    'quotesDelay',
    `a: {action: core.noop, delay: <% ctx(password) %>}
  b: {action: core.noop, retry: {count: <% ctx(password) %>}}
  c: {action: core.noop, with: <% ctx(password) %>}
  d: {action: core.noop, with: {items: '<% [1] %>', concurrency: <% ctx(password) %>}}`,
  ),
  reads: `
version: 1.0
vars:
  - secret: <% svckv('system.datastore', decrypt => true) %>
tasks:
  use:${digestOf('<% ctx(secret) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
          - jinja: "{{ svckv('system.datastore', decrypt=true) }}"
          - encrypted: <% svckv('system.datastore') != ctx(secret) %>
output:
  - digest: <% ctx(digest) %>
  - jinja: <% ctx(jinja) %>
  - encrypted: <% ctx(encrypted) %>
  - secret: <% ctx(secret) %>
`,
  waits: `
version: 1.0
tasks:
  read:
    action: core.noop
    next:
      - publish: [{secret: "<% svckv('system.restart', decrypt => true) %>"}]
        do: give
  give:
    action: flow.gives which="restartReturned"
    next:
      - publish: [{token: <% result().result.token %>}]
        do: ask
  ask:
    action: core.ask
    next:
      - publish: [{kept: "it is <% ctx(secret) %>"}]
        do: use
  use:${digestOf('<% ctx(secret) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
        do: useToken
  useToken:${digestOf('<% ctx(token) %>')}
    next:
      - publish:
          - tokenDigest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
output:
  - digest: <% ctx(digest) %>
  - tokenDigest: <% ctx(tokenDigest) %>
  - kept: <% ctx(kept) %>
  - token: <% ctx(token) %>
`,
  takes: `
version: 1.0
tasks:
  give:
    action: flow.gives which="returned"
    next:
      - publish: [{token: <% result().result.token %>}, {whole: <% result() %>}]
        do: use
  use:${digestOf('<% ctx(token) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
          - line: <% result().stdout %>
        do: later
  later:
    action: core.echo message="got <% task(give).result.result.token %>"
    next:
      - publish: [{echoed: <% result().stdout %>}]
output:
  - digest: <% ctx(digest) %>
  - line: <% ctx(line) %>
  - token: <% ctx(token) %>
  - whole: <% ctx(whole) %>
  - echoed: <% ctx(echoed) %>
`,
  outer: `
version: 1.0
tasks:
  inner:
    action: flow.inner
    next:
      - publish: [{text: <% result().output.text %>}]
        do: use
  use:${digestOf('<% ctx(text) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
output:
  - digest: <% ctx(digest) %>
  - text: <% ctx(text) %>
`,
  inner: `
version: 1.0
vars:
  - text: a <% svckv('system.inner', decrypt => true) %> b
tasks:
  a: {action: core.noop}
output:
  - text: <% ctx(text) %>
`,
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
    input:
      schema: {type: object, properties: {pin: {type: string, secret: true, required: true}}}
    next:
      - publish: [{pin: <% result().response.pin %>}]
        do: use
  use:${digestOf('<% ctx(pin) %>')}
    next:
      - publish:
          - digest: <% regex_substring(result().stdout, '^[0-9a-f]+') %>
output:
  - digest: <% ctx(digest) %>
  - pin: <% ctx(pin) %>
`,
  fails: {
    parameters: password,
    definition: `
version: 1.0
input: [password]
tasks:
  use:
    action: core.local
    input:
      cmd: printf %s "$S" | sha256sum | cut -d ' ' -f 1; exit 1
      env: {S: <% ctx(password) %>}
    next:
      - publish: [{digest: "<% result().stdout %>"}, {password: <% ctx(password) %>}]
output:
  - digest: <% ctx(digest) %>
  - password: <% ctx(password) %>
`,
  },
}

const folder = makeFolder()
const seen = { answers: '', streams: '', log: '' }
const ended: Partial<Record<string, ExecutionAnswer>> = {}
let app: WorkflowApp
let general: EventClient

function writeGiver(): void {
  const pack = join(folder.path, 'packs', 'flow', 'actions')
  mkdirSync(pack, { recursive: true })
  const given = { returned: secrets.returned, restartReturned: secrets.restartReturned }
  writeFileSync(join(folder.path, 'given.json'), JSON.stringify(given))
  writeFileSync(
    join(pack, 'gives.yaml'),
    'name: gives\nrunner_type: python-script\nentry_point: gives.py\nparameters: {which: {type: string}}\n' +
      'output_schema: {type: object, properties: {token: {type: string, secret: true}, rest: {type: string}}}\n',
  )
  writeFileSync(
    join(pack, 'gives.py'),
    `import json
from svc.action import Action


class Gives(Action):
    def run(self, which):
        with open(${JSON.stringify(join(folder.path, 'given.json'))}) as given:
            return {"token": json.load(given)[which], "rest": "open"}
`,
  )
}

async function call<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
  const answer = await app.call<T>(method, path, body)
  seen.answers += `${answer.text}\n`
  return answer
}

const run = async (name: string, parameters: object = {}): Promise<void> => {
  ended[name] = await app.run(name, parameters)
}

async function answer(id: string, response: object): Promise<void> {
  await app.reaches(id, 'paused')
  const inquiry = (await app.children(id)).find(({ status }) => status === 'pending')
  // The answer repeats the response as it was given.
  const { status } = await app.call('PUT', `/v1/inquiries/${inquiry?.id}`, { id: inquiry?.id, response })
  if (status !== 200) throw new Error('the inquiry was not answered')
}

async function start(): Promise<void> {
  const settings = { 'log.level': 'DEBUG', 'log.format': 'json' }
  app = await createWorkflowApp(actions, { settings }, folder)
  general = await openEvents(`${app.urls.stream}/v1/stream`)
}

async function stop(): Promise<void> {
  general.close()
  seen.streams += general.raw()
  await app.stop()
  seen.log += app.log()
}

beforeAll(async () => {
  writeGiver()
  await start()
  for (const name of ['datastore', 'restart', 'inner'] as const) {
    const item = { name, value: secrets[name], scope: 'svckv.system', secret: true }
    const { status, text } = await app.call('PUT', `/v1/keys/${name}`, item)
    if (status !== 200) throw new Error(text)
  }
  const waiting = await app.begin('waits')
  await app.reaches(waiting.id, 'paused')
  await Promise.all([
    run('everywhere', { password: secrets.parameter, account: { pin: secrets.nested } }),
    run('quotes', { password: secrets.failing }),
    ...['quotesName', 'quotesParameter', 'quotesWhen', 'quotesDelay', 'quotesInput'].map((name) =>
      run(name, { password: secrets.failing }),
    ),
    run('reads'),
    run('takes'),
    run('outer'),
    run('fails', { password: secrets.rerun }),
    (async () => {
      const { id } = await app.begin('asks')
      await answer(id, { pin: secrets.answer })
      ended['asks'] = await app.ended(id)
    })(),
  ])
  await stop()
  await start()
  await answer(waiting.id, { continue: true })
  ended['waits'] = await app.ended(waiting.id)
  const again = await app.call<ExecutionAnswer>('POST', `/v1/executions/${ended['fails']?.id}/re_run`, {
    tasks: ['use'],
  })
  if (again.status !== 201) throw new Error(again.text)
  ended['again'] = await app.ended(again.body.id)
}, 120_000)

afterAll(async () => {
  await app.stop()
  folder.remove()
})

/** The ways in which a secret is written, and its longest part, so that half of one is found as well. */
function writings(secret: string): string[] {
  const random = /[0-9a-f]{16}/.exec(secret)?.[0] ?? ''
  const base64 = [0, 1, 2].map((before) =>
    Buffer.from('x'.repeat(before) + secret)
      .toString('base64')
      .slice(4, 24),
  )
  return [random, random.slice(0, 12), ...base64, Buffer.from(secret).toString('hex').slice(0, 24)]
}

const foundIn = (text: string): string[] =>
  Object.entries(secrets)
    .filter(([, secret]) => writings(secret).some((writing) => text.includes(writing)))
    .map(([name]) => name)

describe('actions get the secret itself', () => {
  const digest = (name: Name): object => ({ digest: sha256(secrets[name]) })
  it.each<[string, string, object]>([
    ['everywhere', 'succeeded', { ...digest('parameter'), password: '********' }],
    ['reads', 'succeeded', { ...digest('datastore'), jinja: '********', encrypted: true, secret: '********' }],
    ['takes', 'succeeded', { ...digest('returned'), token: '********', echoed: 'got ********' }],
    ['outer', 'succeeded', { digest: sha256(`a ${secrets.inner} b`), text: 'a ******** b' }],
    ['asks', 'succeeded', { ...digest('answer'), pin: '********' }],
    ['fails', 'failed', { ...digest('rerun'), password: '********' }],
  ])('%s', (name, status, output) => {
    expect(ended[name]).toMatchObject({ status, result: { output } })
  })

  it('after a restart of the server too', () => {
    expect(ended['waits']).toMatchObject({
      status: 'succeeded',
      result: {
        output: {
          digest: sha256(secrets.restart),
          tokenDigest: sha256(secrets.restartReturned),
          kept: 'it is ********',
          token: '********',
        },
      },
    })
  })

  it('and a re-run of tasks', () => {
    expect(ended['again']).toMatchObject({
      result: { output: { digest: sha256(secrets.rerun), password: '********' } },
    })
  })

  it('and what others need to see is there', () => {
    expect(ended['everywhere']?.result).toMatchObject({
      output: {
        all: {
          around: { a: ['before ******** after'], 'key ********': 1 },
          json: expect.stringMatching(/^\{"it": "\*+"\}$/) as string,
          child: { digest: sha256(secrets.parameter), password: '********' },
          lines: ['********', '********'],
          why: { failed: true, stderr: '********' },
        },
      },
    })
  })
})

describe('errors do not quote them', () => {
  it.each(['quotes', 'quotesName', 'quotesParameter', 'quotesWhen'])('%s', (name) => {
    const { status, result } = ended[name] ?? {}
    expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('********')])
  })

  it.each([
    ['quotesDelay', 4],
    ['quotesInput', 1],
  ])('%s', (name, count) => {
    expect(ended[name]?.status).toBe('failed')
    expect(ended[name]?.result['errors']).toHaveLength(count)
  })
})

describe('no secret is', () => {
  it('in any answer', async () => {
    const lists = ['executions', 'traces', 'keys', 'keys?scope=all', 'inquiries', 'triggerinstances?limit=-1']
    for (const list of lists) await call('GET', `/v1/${list}`)
    const { body } = await call<ExecutionAnswer[]>('GET', '/v1/executions?limit=-1')
    expect(body.length).toBeGreaterThan(20)
    for (const { id } of body) {
      const parts = ['', '/output', '/result', '/attribute/result', '/attribute/parameters', '/children']
      for (const part of [...parts, '/workflow', '/workflow/explain']) await call('GET', `/v1/executions/${id}${part}`)
    }
    for (const { id } of (await call<{ id: string }[]>('GET', '/v1/traces?limit=-1')).body)
      await call('GET', `/v1/traces/${id}`)
    expect(foundIn(seen.answers)).toEqual([])
  })

  it('in any stream', async () => {
    await waitFor('the last end', () => general.raw().includes(ended['again']?.id ?? '-'))
    expect(foundIn(`${seen.streams}${general.raw()}`)).toEqual([])
  })

  it('in the log at level DEBUG', () => {
    expect(foundIn(`${seen.log}${app.log()}`)).toEqual([])
  })

  it('in any file of the server, its database and what is being written to it included', () => {
    const files = readdirSync(folder.path, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder.path, name))
      .filter((name) => statSync(name).isFile() && !name.endsWith('given.json'))
    expect(files.map((name) => name.slice(folder.path.length + 1))).toEqual(
      expect.arrayContaining(['svc.db', 'svc.db-wal', 'logs/svc.audit.log']),
    )
    const found = files.flatMap((name) => {
      const bytes = readFileSync(name)
      return foundIn(`${bytes.toString('utf8')}${bytes.toString('latin1')}`).map((secret) => `${name}: ${secret}`)
    })
    expect(found).toEqual([])
  })
})
