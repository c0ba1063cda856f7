/** What the conformance tests share: raw requests, a pack of example actions, a look at the rows. */
import { createTemplateThread } from '../../src/core/rendering/index.ts'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { createActions } from '../../src/modules/actions/index.ts'
import { createTestApp, type TestAppOptions } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import {
  startServer,
  type Answer,
  type ExecutionAnswer,
  type ServerOptions,
  type TestApp,
  type TestServer,
} from '../helpers/server.ts'
import { TextSink } from '../helpers/text-sink.ts'

export interface RawRequest {
  method?: string
  /** Sent as it is, not normalised. */
  path: string
  /** Several values are several headers. */
  headers?: Record<string, string | string[]>
  body?: string | Buffer
  /** Address of this machine to connect from, such as `127.0.0.2`; default the system's choice. */
  from?: string
  /** PEM of the authority to trust, for an https address. */
  ca?: Buffer
  /** Takes only the head of a stream of events, which may never end. */
  cutsStreams?: true
}

export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  bytes: Buffer
  text: string
}

/** One request exactly as given, on a connection of its own. */
export function send(
  baseUrl: string,
  { method = 'GET', headers = {}, body, from, cutsStreams, ...more }: RawRequest,
): Promise<RawAnswer> {
  const { protocol, hostname, port } = new URL(baseUrl)
  const begin = protocol === 'https:' ? secureRequest : request
  const options = { hostname, port, method, headers, agent: false as const, localAddress: from, ...more }
  return new Promise((resolve, reject) => {
    const outgoing = begin(options, (response) => {
      const chunks: Buffer[] = []
      if (cutsStreams === true && response.headers['content-type']?.startsWith('text/event-stream') === true) {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.alloc(0), text: '' })
        response.destroy()
        return
      }
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const bytes = Buffer.concat(chunks)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text: bytes.toString() })
      })
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}

/** Records of one kind in the audit file of a server, the oldest first. */
export function auditRecords(server: TestApp, event: string): Record<string, unknown>[] {
  return readFileSync(join(server.basePath, 'logs', 'svc.audit.log'), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>) // one object on each line
    .filter((record) => record['_event'] === event)
}

export interface ErrorAnswer {
  faultstring: string
  code: string
}

export interface ComponentAnswer {
  object_id: string
  ref: string
  updated_at: string
  caused_by: { type?: string; id?: string }
}

export interface TraceAnswer {
  id: string
  uid: string
  trace_tag: string
  start_timestamp: string
  action_executions: ComponentAnswer[]
  rules: ComponentAnswer[]
  trigger_instances: ComponentAnswer[]
}

/** Parameters of every kind on one action; nothing that this release ships has them. */
const exampleActions = [
  {
    name: 'checked',
    runner_type: 'local-shell-cmd',
    parameters: {
      cmd: { default: 'echo checked' },
      text: { type: 'string' },
      count: { type: 'integer' },
      ratio: { type: 'number' },
      flag: { type: 'boolean' },
      items: { type: 'array' },
      options: { type: 'object' },
      choice: { type: 'string', enum: ['a', 'b'] },
      anything: { description: 'Of no type.' },
      must_count: { type: 'integer', required: true, default: 3 },
    },
  },
  // Alike, so that what one test says about the first does not concern the test of the next.
  ...[
    'first',
    'second',
    'third',
    'fourth',
    'fifth',
    'sixth',
    'seventh',
    'eighth',
    'ninth',
    'tenth',
    'eleventh',
    'twelfth',
  ].map((name) => ({
    name,
    runner_type: 'local-shell-cmd',
    parameters: {
      cmd: { required: true },
      host: { type: 'string', default: 'here' },
      options: { type: 'object' },
      password: { type: 'string', secret: true },
    },
  })),
  {
    name: 'needy',
    runner_type: 'local-shell-cmd',
    parameters: { cmd: { default: 'true' }, options: { type: 'object', required: true } },
  },
  { name: 'disabled', runner_type: 'local-shell-cmd', enabled: false, parameters: { cmd: { required: true } } },
  {
    name: 'secretive',
    runner_type: 'local-shell-cmd',
    parameters: {
      cmd: { default: 'echo done', immutable: true },
      token: { type: 'string', secret: true },
      number: { type: 'integer', secret: true },
      vault: { type: 'object', secret: true },
      account: {
        type: 'object',
        properties: { name: { type: 'string' }, password: { type: 'string', secret: true } },
      },
      accounts: {
        type: 'array',
        items: { type: 'object', properties: { password: { type: 'string', secret: true } } },
      },
    },
  },
  {
    name: 'templated',
    runner_type: 'local-shell-cmd',
    parameters: {
      name: { type: 'string', required: true },
      greeting: { type: 'string', default: 'hello {{ name }}' },
      fixed: { type: 'string', default: '{{ name }}!', immutable: true },
      times: { type: 'integer' },
      list: { type: 'array' },
      cmd: { default: 'echo "{{ greeting }} {{ fixed }}"', immutable: true },
    },
  },
  {
    name: 'circular',
    runner_type: 'local-shell-cmd',
    parameters: { cmd: { default: 'true' }, a: { type: 'string' }, b: { type: 'string' } },
  },
  {
    name: 'telling',
    runner_type: 'local-shell-cmd',
    notify: {
      'on-success': { message: '{{ action_results.stdout }} of {{ action_parameters.cmd }}', routes: ['good'] },
      'on-failure': { message: '{{ nothing.at.all }}', channels: ['bad'] },
    },
  },
  { name: 'tagged', runner_type: 'noop', tags: [{ name: 'colour', value: 'blue' }], parameters: {} },
]

/** Makes the data of a server that knows the actions of the pack `examples`, registered by the code for users' packs. */
async function makeExamples(basePath: string): Promise<void> {
  // The first start makes the tables and the records of the runner types.
  await (await createTestApp({ basePath })).stop()
  const database = await openSqlite({
    path: join(basePath, 'svc.db'),
    synchronous: 'normal',
    announce: () => undefined,
  })
  const templateThread = createTemplateThread()
  try {
    const actions = createActions({
      database,
      log: createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() }),
      planEvent: () => undefined,
      templateThread,
      maxPageSize: 100,
    })
    const { registered, problems } = await actions.registerActions({
      pack: 'examples',
      definitions: exampleActions.map((definition) => ({
        metadataFile: `actions/${definition.name}.yaml`,
        definition: { enabled: true, ...definition },
      })),
      metadataFiles: new Set(exampleActions.map(({ name }) => `actions/${name}.yaml`)),
    })
    if (registered !== exampleActions.length) throw new Error(`not registered: ${JSON.stringify(problems)}`)
  } finally {
    await templateThread.stop()
    await database.close()
  }
}

/** A server in this process with the actions of the pack `examples`. `stop` removes its data. */
export async function createAppWithExamples(options: Pick<TestAppOptions, 'settings'> = {}): Promise<TestApp> {
  const folder = makeFolder()
  await makeExamples(folder.path)
  const app = await createTestApp({ ...options, basePath: folder.path })
  return {
    ...app,
    async stop() {
      await app.stop()
      folder.remove()
    },
  }
}

/** The same in a process of its own. */
export async function startWithExamples(options: Pick<ServerOptions, 'settings' | 'env'> = {}): Promise<TestServer> {
  const folder = makeFolder()
  await makeExamples(folder.path)
  const server = await startServer({ ...options, basePath: folder.path })
  return {
    ...server,
    async stop(signal) {
      const exit = await server.stop(signal)
      folder.remove()
      return exit
    },
  }
}

/** Reads the database of a running server. */
export function rowsOf<R>(server: TestApp, sql: string, ...parameters: unknown[]): R[] {
  const database = new Sqlite(join(server.basePath, 'svc.db'), { readonly: true })
  try {
    return database.prepare(sql).all(...parameters) as R[] // the caller's statement says what they are
  } finally {
    database.close()
  }
}

export function countExecutions(server: TestApp): number {
  return rowsOf<{ n: number }>(server, 'select count(*) as n from executions')[0]?.n ?? -1
}

/** `POST /v1/executions`. */
export function create(
  server: TestApp,
  body: unknown,
  headers?: Record<string, string>,
  query = '',
): Promise<Answer<ExecutionAnswer>> {
  return server.call<ExecutionAnswer>('POST', `/v1/executions${query}`, body, headers)
}

export const idPattern = /^[0-9a-f]{24}$/
export const timestampPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/
export const unknownId = '0123456789abcdef01234567'
/** What is looked up as an id and cannot be one. */
export const impossibleIds = [
  'abc',
  'ABCDEFABCDEFABCDEFABCDEF',
  '0123456789abcdef0123456',
  '0123456789abcdef012345678',
  '%00',
  '%27%3B--',
]
