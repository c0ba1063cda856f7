/**
 * Workflows and chains as packs have them, on one server and with real actions. The definitions are the pack in the folder
 * of the same name; this table says what each of them does.
 */
import { cpSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { finalStatuses, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

interface Case {
  given?: object
  /** Default: `succeeded`. */
  status?: string
  output?: object | null
  /** Default: the result has none. */
  errors?: readonly object[]
  /** Names of the tasks that ran an action, sorted, one for each of their executions. */
  tasks: string
  /** Responses to the inquiries of its tree, by the name of their task. */
  answers?: Readonly<Record<string, object>>
  /** `notify` of the request. */
  notify?: object
  /** Routes that were told of its tasks. */
  told?: readonly string[]
}

const folder = makeFolder()
const failed = 'Execution failed. See result for details.'
/** What `do: fail` leaves. */
const byCommand = { task_id: 'fail', message: failed }
let server: TestApp
let web: Server

const cases: Record<string, (urls: { web: string }) => Case> = {
  greet: () => ({ given: { who: 'Ada' }, output: { line: 'Good day, Ada', tags: [], times: null }, tasks: 'say' }),
  'greet loudly': () => ({
    given: { who: 'Ada', loud: true },
    output: { line: 'GOOD DAY, ADA!', tags: [1, 2], times: 2 },
    tasks: 'louder say',
  }),
  'backup-folders': () => ({
    given: { folders: ['/etc', '/home'] },
    output: { saved: ['saved /etc', 'saved /home'], count: 2 },
    tasks: 'save save',
  }),
  'ping-hosts': () => ({
    given: { hosts: ['a', 'b', 'c', 'd', 'e'] },
    output: { answer: 'all are up', codes: null, down: [] },
    tasks: 'ping ping ping ping ping',
  }),
  'ping-hosts of which one is down': () => ({
    given: { hosts: ['a', 'down', 'c', 'd'], at_once: 4 },
    output: { answer: 'some are down', codes: [0, 1, 0, 0], down: ['down'] },
    tasks: 'ping ping ping ping',
  }),
  'price-list': () => ({
    given: { names: ['pen', 'ink'], prices: [2, 3.5] },
    output: { text: 'pen: 2 EUR\nink: 3.5 EUR' },
    tasks: 'line line',
  }),
  'nothing-to-do': () => ({ output: { line: '0 done' }, tasks: 'report' }),
  invite: () => ({
    given: { teams: { red: ['eve', 'bob'], blue: ['bob', 'ann'] } },
    output: { invited: ['ANN', 'BOB', 'EVE'] },
    tasks: 'collect invite invite invite',
  }),
  'build-and-test': () => ({
    output: { summary: 'lint main, unit main, built' },
    tasks: 'checkout lint package report unit',
  }),
  'first-answers': () => ({ output: { line: 'decided' }, tasks: 'decide far middle near' }),
  'count-down': () => ({
    given: { from: 4 },
    output: { said: [4, 3, 2, 1] },
    tasks: 'begin lift_off say say say say',
  }),
  'wait-for-file': () => ({
    given: { file: join(folder.path, 'asked') },
    output: { asked: 3 },
    tasks: 'ask ask ask begin',
  }),
  invoice: () => ({
    given: {
      items: [
        { count: 2, price: 10 },
        { count: 1, price: 20 },
      ],
    },
    output: { title: 'Invoice of 2 items', total: 50, class: 'medium', sizes: { n2: [40, 10] } },
    tasks: '',
  }),
  'sort-people': () => ({
    given: {
      people: [
        { name: 'Eve', age: 30, city: 'Bonn' },
        { name: 'Bob', age: 12, city: 'Köln' },
        { name: 'Ann', age: 18, city: 'Bonn' },
      ],
    },
    output: {
      adults: ['Ann', 'Eve'],
      oldest: 'Eve',
      ages: { Eve: 30, Bob: 12, Ann: 18 },
      initials: 'EBA',
      cities: { Bonn: 2, Köln: 1 },
      anybody: false,
      unknown: 'nobody',
    },
    tasks: 'look',
  }),
  onboard: () => ({
    given: { person: 'ann' },
    output: { welcome: 'GOOD DAY, ANN!', invited: ['ANN', 'BOB'] },
    tasks: 'invite welcome',
  }),
  'parent-goes-on': () => ({
    output: { reason: failed, state: 'broken' },
    tasks: 'apologize risky',
  }),
  deploy: () => ({ given: { version: '1.2.3' }, output: { state: 'installed 1.2.3' }, tasks: 'install' }),
  'deploy what is bad': () => ({
    given: { version: '1.3-bad' },
    status: 'failed',
    output: { state: 'broken' },
    errors: [{ task_id: 'install', message: failed, result: { return_code: 4 } }, byCommand],
    tasks: 'install roll_back',
  }),
  handled: () => ({ output: { code: 7, why: 'nope', repaired: true }, tasks: 'repair try' }),
  unhandled: () => ({
    status: 'failed',
    output: { got: 'partly' },
    errors: [
      { task_id: 'try', message: failed, result: { return_code: 7, stdout: 'partly' } },
      { message: expect.stringContaining('Unable to find task execution for "never".') },
    ],
    tasks: 'try',
  }),
  'too-slow': () => ({ output: { status: 'failed' }, tasks: 'slow' }),
  'delayed-start': () => ({ given: { seconds: 1 }, output: { line: 'later' }, tasks: 'first second' }),
  flaky: () => ({ given: { file: join(folder.path, 'tries') }, output: { worked: true }, tasks: 'try try try' }),
  'retry-when': () => ({ output: { code: 75 }, tasks: 'try try try' }),
  'retry-when another code': () => ({ given: { code: 9 }, output: { code: 9 }, tasks: 'try' }),
  'retry-by-command': () => ({
    status: 'failed',
    output: null,
    errors: [{ task_id: 'try', message: failed }],
    tasks: 'try try try try',
  }),
  approve: () => ({
    answers: { ask: { approved: true, comment: 'fine' } },
    output: { line: 'release is approved', comment: 'fine' },
    tasks: 'ask go',
  }),
  'approve what is not wanted': () => ({
    answers: { ask: { approved: false } },
    status: 'failed',
    output: null,
    errors: [byCommand, {}, {}],
    tasks: 'ask',
  }),
  'ask-two': () => ({
    answers: { ask_left: { continue: true }, ask_right: { continue: false } },
    output: { all: [true, false, 'worked'] },
    tasks: 'ask_left ask_right both work',
  }),
  'nested-approval': () => ({
    answers: { ask: { approved: true } },
    output: { line: 'budget is approved' },
    tasks: 'approval',
  }),
  'tell-somebody': () => ({
    given: { notify: ['told'] },
    notify: { 'on-complete': { routes: ['forty'], message: 'told' } },
    output: null,
    told: ['forty'],
    tasks: 'quiet told',
  }),
  'look-back': () => ({
    output: { line: '1 and 2', mine: 'two', code: 2, states: ['succeeded', 'failed', 'null'], same: true },
    tasks: 'one three two',
  }),
  'greeting-from-datastore': () => ({
    output: { line: 'ahoy, unset', number: '7', length: 6 },
    tasks: 'read say',
  }),
  'read-json': () => ({
    given: { text: '{"hosts": [{"name": "a"}, {"name": "b"}]}' },
    output: { names: ['a', 'b'], again: ['a', 'b'], yaml: [1, 2], other: 'a' },
    tasks: 'print',
  }),
  'check-texts': () => ({
    given: { line: 'host 10.0.0.1 is up' },
    output: {
      all: ['10.0.0.1', 'host ##.#.#.# is up', true, false, 1, '1.3.0', 'hosts of /etc', '1h2m5s'],
    },
    tasks: '',
  }),
  'in-jinja': () => ({
    given: { hosts: ['a', 'b', 'c'] },
    output: { line: 'quick look at a, b, c', upper: 'QUICK LOOK AT A, B, C', echoed: ['a', 'b', 'c'], first: 'a' },
    tasks: 'begin each each each',
  }),
  'both-languages': () => ({ output: { half: 2, double: 8 }, tasks: 'a' }),
  'publish-as-text': () => ({ output: { all: [5, 6, 'two words', true, [1, 2], null] }, tasks: 'a b' }),
  'merge-settings': () => ({ output: { settings: { size: 3, tags: ['b'], deep: { x: 1, y: 2 } } }, tasks: '' }),
  'check-service': ({ web: url }) => ({
    given: { url },
    output: { load: 0.5, healthy: true, echo: { got: { load: 0.5 } } },
    tasks: 'get tell',
  }),
  'missing-page': ({ web: url }) => ({
    given: { url },
    status: 'failed',
    output: { code: 404 },
    errors: [{ task_id: 'get', result: { status_code: 404 } }, byCommand],
    tasks: 'get',
  }),
  statistics: () => ({ given: { numbers: [3, 1, 2] }, output: { mean: 2, sorted: [1, 2, 3] }, tasks: 'measure' }),
  'statistics of nothing': () => ({
    given: { numbers: [] },
    status: 'failed',
    output: null,
    errors: [{ task_id: 'measure', result: { result: 'there are no numbers' } }, byCommand, {}, {}],
    tasks: 'measure',
  }),
  triage: () => ({ given: { severity: 4 }, output: { paged: true, ticket: true }, tasks: 'page ticket' }),
  'triage of a small thing': () => ({
    given: { severity: 2, source: 'mail' },
    output: { paged: false, ticket: true },
    tasks: 'ticket',
  }),
  'triage of a stranger': () => ({
    given: { severity: 9, source: 'x' },
    output: { paged: false, ticket: false },
    tasks: 'drop',
  }),
  split: () => ({ output: null, tasks: 'after after left log log right' }),
  'provision-host': () => ({
    given: { name: 'web-1', size: 'large', disks: ['root', 'data'] },
    output: {
      name: 'web-1',
      state: {
        address: '10.0.0.5',
        registered: true,
        disks: ['web-1-root', 'web-1-data'],
        line: 'started web-1 with 64',
        greeting: 'Good day, web-1',
      },
    },
    tasks: 'check_name create_disks create_disks greet register_name reserve start',
  }),
  'provision-host of a bad name': () => ({
    given: { name: 'Web 1' },
    status: 'failed',
    output: { name: 'Web 1', state: {} },
    errors: [byCommand],
    tasks: 'check_name',
  }),
  'any-action': () => ({
    given: { action: 'core.echo', with: { message: 'hi' } },
    output: { result: 'hi' },
    tasks: 'run',
  }),
  'any-action that nobody knows': () => ({
    given: { action: 'core.unknown' },
    status: 'failed',
    output: null,
    errors: [
      { task_id: 'run', message: 'InvalidActionReferencedException: Unable to find action "core.unknown".' },
      {},
    ],
    tasks: '',
  }),
  'stuck-join': () => ({
    status: 'failed',
    output: null,
    errors: [{ message: 'UnreachableJoinError: The join task|route "meet|0" is partially satisfied but unreachable.' }],
    tasks: 'a b',
  }),
  'wrong-output': () => ({
    status: 'failed',
    output: { good: true },
    errors: [
      { message: expect.stringMatching(/^YaqlEvaluationException: Unable to evaluate expression '<% 1 \/ 0 %>'/) },
    ],
    tasks: 'a',
  }),
  'wrong-condition': () => ({
    status: 'failed',
    output: null,
    errors: [
      {
        task_id: 'a',
        task_transition_id: 'b__t0',
        message: expect.stringMatching(/^YaqlEvaluationException: .*five/),
      },
    ],
    tasks: 'a',
  }),
  'bad-definition': () => ({
    status: 'failed',
    output: null,
    errors: [
      { type: 'content', message: 'Action "core.echo" is missing required input "message".' },
      { type: 'content', message: 'Action "core.echo" has unexpected input "massage".' },
      { type: 'context', message: 'Variable "y" is referenced before assignment.' },
      { type: 'expression' },
      { type: 'semantic', message: 'The task "nowhere" is not defined.' },
    ],
    tasks: '',
  }),
}

/** Requests of all cases, by name: they run at the same time. */
const begun = new Map<string, ExecutionAnswer>()
const table = Object.entries(cases)

beforeAll(async () => {
  await ensureDebianPackage('python3', '/usr/bin/python3')
  web = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.setHeader('Content-Type', 'application/json')
      if (request.url === '/missing') response.statusCode = 404
      const got = Buffer.concat(chunks).toString()
      response.end(
        request.method === 'POST'
          ? `{"got": ${got}}`
          : '{"load": 0.5, "services": [{"name": "db", "up": true}, {"name": "web", "up": true}]}',
      )
    })
  })
  await new Promise<void>((resolve) => void web.listen(0, '127.0.0.1', resolve))
  cpSync(join(import.meta.dirname, '08-forty-workflows'), join(folder.path, 'packs', 'forty'), { recursive: true })
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'http_runner.allowed_private_networks': '127.0.0.0/8' },
  })
  for (const [name, value, secret] of [
    ['forty.greeting', 'ahoy', false],
    ['forty.number', '7', false],
    ['forty.secret', 'hidden', true],
  ] as const) {
    const path = `/v1/keys/${name}`
    const { status, text } = await server.call('PUT', path, { name, value, secret, scope: 'svckv.system' })
    if (status !== 200) throw new Error(text)
  }
  const urls = { web: `http://127.0.0.1:${(web.address() as AddressInfo).port}` }
  for (const [name, make] of table) {
    const { given: parameters = {}, notify } = make(urls)
    const action = `forty.${name.split(' ')[0]}`
    const { status, body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
      action,
      parameters,
      ...(notify === undefined ? {} : { notify }),
    })
    if (status !== 201) throw new Error(`${name}: ${text}`)
    begun.set(name, body)
  }
})
afterAll(async () => {
  await server.stop()
  web.closeAllConnections()
  await new Promise((resolve) => web.close(resolve))
  folder.remove()
})

const taskOf = ({ context }: ExecutionAnswer): string => {
  const { orquesta, chain } = context as { orquesta?: { task_name: string }; chain?: { name: string } }
  return orquesta?.task_name ?? chain?.name ?? ''
}

async function childrenOf(id: string): Promise<ExecutionAnswer[]> {
  return (await server.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}&limit=100&sort_asc=true`)).body
}

/** Answers the inquiry of a task, in the workflow or in one that it calls. */
async function answer(id: string, task: string, response: object): Promise<void> {
  const inquiry = await waitFor(`the inquiry of ${task}`, async () => {
    const children = await childrenOf(id)
    const grandchildren = await Promise.all(children.map((child) => childrenOf(child.id)))
    return [...children, ...grandchildren.flat()].find((child) => taskOf(child) === task && child.status === 'pending')
  })
  const { status, text } = await server.call('PUT', `/v1/inquiries/${inquiry.id}`, { id: inquiry.id, response })
  expect([status, text]).toMatchObject([200, {}])
}

it.concurrent.for(table)('%s', async ([name, make]) => {
  const { status = 'succeeded', output, errors, tasks, answers = {}, told = [] } = make({ web: '' })
  const { id } = begun.get(name) as ExecutionAnswer
  for (const [task, response] of Object.entries(answers)) await answer(id, task, response)
  const ended = await waitFor(`${name} to end`, async () => {
    const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
    return finalStatuses.includes(body.status) && body
  })
  const result = { output: output ?? null, ...(errors === undefined ? {} : { errors }) }
  expect({ status: ended.status, result: ended.result }).toMatchObject({ status, result })
  expect('errors' in ended.result).toBe(errors !== undefined)
  const children = await childrenOf(id)
  expect(children.map(taskOf).sort().join(' ')).toBe(tasks)
  expect(told.length === 0 ? [] : await routesTold(children)).toEqual(told)
})

/** The routes that were told of these executions. */
function routesTold(executions: readonly ExecutionAnswer[]): Promise<string[]> {
  return waitFor('a notification', async () => {
    const path = '/v1/triggerinstances?limit=1000&trigger_type=core.svc.generic.notifytrigger'
    const { body } = await server.call<{ payload: { execution_id: string; route: string } }[]>('GET', path)
    const found = body.filter(({ payload }) => executions.some(({ id }) => id === payload.execution_id))
    return found.length > 0 && found.map(({ payload }) => payload.route)
  })
}
