/** A real server as its users run it: the built executable, in a process of its own, on free ports. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { makeFolder, type TemporaryFolder } from './folders.ts'
import { waitFor } from './wait.ts'

export const projectRoot = join(import.meta.dirname, '..', '..')
export const executable = join(projectRoot, 'dist', 'cli.js')

export interface ServerOptions {
  /**
   * `section.option` → value. Ports are free ones unless given. Packs are not watched unless `content.watch` says so: what a
   * test registers would change again while it looks.
   */
  settings?: Record<string, string>
  env?: Record<string, string>
  /** Keeps the data of an earlier server; the caller removes the folder. */
  basePath?: string
  /** PEM of the authority that `call` trusts, for listeners with TLS. */
  ca?: Buffer
  /** Starts it through another program: what to run instead of this command, with the same standard output. */
  through?(command: string[]): [string, ...string[]]
}

export interface Answer<T = Record<string, unknown>> {
  status: number
  headers: Headers
  body: T
  text: string
}

/** A server, in this process (`createTestApp`) or in one of its own (`startServer`). */
export interface TestApp {
  readonly urls: { api: string; auth: string; stream: string }
  readonly basePath: string
  readonly configFile: string
  /** Everything logged so far. */
  log(): string
  /** Stops the server in order and removes its data, unless a base path was given. */
  stop(): Promise<unknown>
  /** Path on the API listener, such as `/v1/executions`. A string body is sent as it is. */
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<T>>
}

export interface TestServer extends TestApp {
  readonly pid: number
  /** Everything on standard output so far. */
  printed(): string
  /** Resolves when the process has ended and all that it said has been read. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Sends the signal, waits for the end, removes the data unless a base path was given. */
  stop(signal?: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  if (!existsSync(executable)) throw new Error(`${executable} is missing: run "npm run build" first`)
  const folder: TemporaryFolder | undefined = options.basePath === undefined ? makeFolder() : undefined
  const basePath = options.basePath ?? folder?.path ?? ''
  const configFile = join(basePath, 'test.conf')
  writeConfig(configFile, {
    'system.base_path': basePath,
    'auth.port': '0',
    'api.port': '0',
    'stream.port': '0',
    'content.watch': 'False',
    ...options.settings,
  })
  const command = [process.execPath, executable, 'serve', '--config-file', configFile]
  const [program = '', ...words] = options.through?.(command) ?? command
  const child = spawn(program, words, {
    cwd: basePath,
    env: { PATH: process.env['PATH'] ?? '', HOME: basePath, LANG: 'C.UTF-8', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-1_000_000)
  })
  const exited = exitOf(child)

  let ended: string | undefined
  // Once its pipes are closed too, so that its last words are known.
  child.once('close', (code, signal) => (ended = String(code ?? signal)))
  let match: RegExpExecArray
  try {
    match = await waitFor(
      'the server to be ready',
      () => {
        const ready = /API (\S+) +auth (\S+) +stream (\S+)/.exec(stdout)
        if (ready !== null) return ready
        if (ended !== undefined) throw new Error(`the server ended before it was ready (${ended}):\n${stderr}`)
        return undefined
      },
      60_000,
    )
  } catch (error) {
    child.kill('SIGKILL')
    folder?.remove()
    throw error
  }
  const [, api = '', auth = '', stream = ''] = match

  return {
    urls: { api, auth, stream },
    basePath,
    configFile,
    pid: child.pid ?? 0,
    log: () => stderr,
    printed: () => stdout,
    exited,
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      const exit = await exited
      folder?.remove()
      return exit
    },
    call: (method, path, body, headers) => call(`${api}${path}`, method, body, headers, options.ca),
  }
}

/** Runs a server for as long as the test uses it. */
export async function withServer(
  options: ServerOptions,
  use: (server: TestServer) => Promise<void> | void,
): Promise<void> {
  const server = await startServer(options)
  try {
    await use(server)
  } finally {
    await server.stop()
  }
}

export function writeConfig(file: string, settings: Record<string, string>): void {
  const sections = new Map<string, string[]>()
  for (const [key, value] of Object.entries(settings)) {
    const [section = '', name = ''] = key.split('.', 2)
    sections.set(section, [...(sections.get(section) ?? []), `${name} = ${value}`])
  }
  const text = [...sections].map(([section, lines]) => `[${section}]\n${lines.join('\n')}\n`).join('\n')
  writeFileSync(file, text)
}

/** Resolves once its last words are known, too, unless somebody that it left behind keeps its pipes open. */
function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve) =>
    child.once('exit', (code, signal) => {
      const tell = (): void => {
        clearTimeout(timer)
        resolve({ code, signal })
      }
      const timer = setTimeout(tell, 5000)
      child.once('close', tell)
    }),
  )
}

/** Waits for what a server logs, which comes on a stream of its own: perhaps later than an answer that was sent after it. */
export async function waitForLog(of: Pick<TestServer, 'log'>, text: string | RegExp): Promise<void> {
  await waitFor(`${String(text)} in the log`, () =>
    typeof text === 'string' ? of.log().includes(text) : text.test(of.log()),
  )
}

/** One request; the body is parsed when it is JSON. An https address needs the authority to trust. */
export async function call<T = Record<string, unknown>>(
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
  ca?: Buffer,
): Promise<Answer<T>> {
  const init = {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  }
  const response = url.startsWith('https:') ? await fetchSecurely(url, init, ca) : await fetch(url, init)
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
  return {
    status: response.status,
    headers: response.headers,
    // The caller says what the answer is; the assertion that follows finds out.
    body: (isJson ? JSON.parse(text) : text) as T,
    text,
  }
}

/** `fetch` can trust further authorities for the whole process alone. */
function fetchSecurely(
  url: string,
  { method, headers, body }: { method: string; headers: Record<string, string>; body?: string },
  ca: Buffer | undefined,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers, agent: false, ca }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.once('error', reject)
      incoming.once('end', () => {
        const status = incoming.statusCode ?? 0
        const pairs = Object.entries(incoming.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        )
        resolve(new Response(status === 204 ? null : Buffer.concat(chunks), { status, headers: pairs }))
      })
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}

/** What the tests read of an execution. */
export interface ExecutionAnswer {
  id: string
  status: string
  start_timestamp: string
  end_timestamp: string
  elapsed_seconds: number
  parameters: Record<string, unknown>
  result: Record<string, unknown>
  result_size: number
  context: Record<string, unknown>
  log: { status: string; timestamp: string }[]
  web_url: string
  liveaction: Record<string, unknown>
  action: Record<string, unknown>
  runner: Record<string, unknown>
  parent: string
  children: string[]
  delay: number
  attempt?: number
  retry_of?: string
  faultstring: string
}

export const finalStatuses = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned']

/** Creates an execution and fails unless it is accepted. */
export async function run(
  server: TestApp,
  parameters: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Promise<ExecutionAnswer> {
  const answer = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
    action: 'core.local',
    parameters,
    ...more,
  })
  if (answer.status !== 201) throw new Error(`not accepted (${answer.status}): ${answer.text}`)
  return answer.body
}

/** The execution once its status is one of these; default: final ones. */
export function waitForStatus(
  server: TestApp,
  id: string,
  statuses: readonly string[] = finalStatuses,
  timeoutMs = 120_000,
): Promise<ExecutionAnswer> {
  return waitFor(
    `execution ${id} to be ${statuses.join(' or ')}`,
    async () => {
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
      return statuses.includes(body.status) && body
    },
    timeoutMs,
  )
}

/** Creates an execution and waits for its end. */
export async function runToEnd(
  server: TestApp,
  parameters: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Promise<ExecutionAnswer> {
  const { id } = await run(server, parameters, more)
  return waitForStatus(server, id)
}
