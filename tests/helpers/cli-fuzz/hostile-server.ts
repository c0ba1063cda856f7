/** Servers on loopback that answer nothing as they should, the same way each time. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { readEvents } from '../../../src/cli/connection/server-events.ts'
import { startFront } from '../front.ts'
import { createRandom, type Random } from '../random.ts'

export interface HostileServer {
  /** The address that a client is given for one command line. */
  apiUrl(round: number): string
  /** How many requests came with the address of that command line. */
  requests(round: number): number
  /** Whether a stream for that command line had output of an execution before its end. */
  hasSentOutput(round: number): Promise<boolean>
  stop(): Promise<void>
}

export type Manner =
  /** Every request ends in an error: of a status, of the connection, or of what is said. */
  | 'refusing'
  /** Every answer is 200, but not what was asked for. */
  | 'foreign'

export async function startHostileServer(seed: number, manner: Manner): Promise<HostileServer> {
  const counts = new Map<number, number>()
  const streams = new Map<number, string[]>()
  const { server, url, close } = await startFront((request, response) => {
    const [, round = '0'] = /^\/c(\d+)\//.exec(request.url ?? '') ?? []
    const count = (counts.get(Number(round)) ?? 0) + 1
    counts.set(Number(round), count)
    // What comes back depends on nothing but the seed, the command line and the number of the request.
    const random = createRandom(seed ^ Math.imul(Number(round) + 1, 2654435761) ^ (count * 40503))
    request.resume()
    if (manner === 'refusing') refuse(random, response)
    else {
      const stream = answer(random, request, response)
      const path = request.url?.split('?', 1)[0] ?? ''
      if (path.endsWith('/output')) streams.set(Number(round), [...(streams.get(Number(round)) ?? []), stream])
    }
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  return {
    apiUrl: (round) => `${url}/c${round}/v1`,
    requests: (round) => counts.get(round) ?? 0,
    async hasSentOutput(round) {
      for (const text of streams.get(round) ?? []) if (await hasOutput(text)) return true
      return false
    },
    stop: close,
  }
}

const statuses = [300, 301, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429, 451, 499, 500, 501, 502, 503, 504, 599] as const // prettier-ignore
const reasons = [undefined, '', 'Not Found', 'odd\u009breason', 'x'.repeat(2000)] as const
const faults = [
  '', 'no', '{', '<html><body>Bad Gateway</body></html>', '{"faultstring": "No.", "code": "NO"}', '{"faultstring": {"a": 1}, "code": 5}', '[]', 'null', '"text"',
  '{"faultstring": "\\u001b[2Jgone\\u202e\\n\\nERROR"}', '{"faultstring": ""}', '\u0000\u0001', '{"code": "NO_EXECUTIONS"}', '{"code": "AUTHENTICATION_OFF"}', 'x'.repeat(100_000),
] as const // prettier-ignore

function refuse(random: Random, response: ServerResponse): void {
  const { socket } = response
  switch (random.below(9)) {
    case 0:
      socket?.destroy()
      return
    case 1:
      socket?.end(
        random.pick(['garbage\r\n\r\n', 'HTTP/1.1 999999 x\r\n\r\n', 'HTTP/9.9 200 OK\r\n\r\n', '\u0000'.repeat(99)]),
      )
      return
    case 2:
      // Cut off.
      socket?.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[{"id": "6b01')
      return
    case 3:
      socket?.end(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\nzz\r\nno\r\n',
      )
      return
    case 4:
      response
        .writeHead(200, { 'Content-Type': 'text/html' })
        .end(random.pick(['<html></html>', '{"id": ', "{'a': 1}", 'NaN']))
      return
    default: {
      const status = random.pick(statuses)
      const reason = random.pick(reasons)
      response.setHeader('Content-Type', random.pick(['application/json', 'text/html', 'x', 'text/event-stream']))
      if (random.once(6)) response.setHeader('Location', random.pick(['/x', 'http://127.0.0.1:1/\u009b', '//']))
      if (random.once(6)) response.setHeader('WWW-Authenticate', 'Basic realm="x"')
      if (random.once(6)) response.setHeader('Retry-After', random.pick(['0', '1', 'x', '-5', '99999999']))
      if (reason === undefined || reason.includes('\u009b')) response.writeHead(status)
      else response.writeHead(status, reason)
      response.end(random.pick(faults))
    }
  }
}

const id = '6b01aef89ced91c48c2e9dbe'

/** What a record of the server might have, of any kind. */
const plausible: Readonly<Record<string, unknown>> = {
  id,
  ref: 'core.local',
  name: 'local',
  pack: 'core',
  uid: 'action:core:local',
  user: 'alice',
  username: 'alice',
  value: 'x',
  scope: 'system',
  token: 'abc',
  key: 'abc',
  expiry: '2030-01-01T00:00:00.000000Z',
  enabled: true,
  status: 'succeeded',
  description: 'Runs a command.',
  version: '1.0.0',
  runner_type: 'local-shell-cmd',
  runner_parameters: { cmd: { type: 'string', required: true, position: 0 } },
  parameters: { cmd: { type: 'string' }, hosts: { type: 'array' } },
  action: { ref: 'core.local', runner_type: 'local-shell-cmd' },
  rule: { ref: 'default.rule' },
  trigger: { ref: 'core.timer', type: 'core.timer' },
  context: { user: 'alice', trace_context: { trace_tag: 'x' } },
  result: { stdout: 'x\ny', failed: false, return_code: 0 },
  output: 'x',
  data: 'some output\n',
  log: [{ status: 'requested', timestamp: '2030-01-01T00:00:00.000000Z' }],
  start_timestamp: '2030-01-01T00:00:00.000000Z',
  end_timestamp: '2030-01-01T00:00:01.000000Z',
  trace_tag: 'x',
  action_executions: [{ object_id: id, ref: 'core.local', updated_at: '2030-01-01T00:00:00.000000Z', caused_by: {} }],
  rules: [{ object_id: id, ref: 'default.rule', updated_at: '2030-01-01T00:00:00.000000Z' }],
  trigger_instances: [{ object_id: id, ref: 'core.timer', updated_at: '2030-01-01T00:00:00.000000Z' }],
  schema: { type: 'object', properties: { continue: { type: 'boolean', description: 'Go on?' } } },
  roles: ['admin'],
  users: [],
  rbac: { enabled: true, roles: ['admin'] },
  authentication: { method: 'token', location: 'header' },
  metadata: { a: 1 },
  execution_id: id,
  live_action: {},
}

const strange = [
  null, true, 0, -1, 1e308, 1e-7, 1e21, '', 'x', '\u001b[2J', '\ud800', '\u0000', '日本語'.repeat(40), '😀👩‍👩‍👧e\u0301', [], {}, [[]], [null], [1, 'a', {}],
  { a: null }, { '': 1, '\u001b': 2 }, { length: -1 }, { toString: 1, valueOf: 2, toJSON: 3 }, '2030-99-99T99:99:99Z', '9999-12-31T23:59:59.999999Z', 'line\n'.repeat(50),
  'x'.repeat(3000), { cmd: null }, { cmd: { type: ['string', 5] } }, { type: 'object', properties: null }, 'running', 'canceling',
] as const // prettier-ignore

function record(random: Random): unknown {
  const copy: Record<string, unknown> = { ...plausible }
  const names = Object.keys(plausible)
  for (let count = random.below(12); count > 0; count -= 1) {
    const name = names[random.below(names.length)] ?? 'id'
    if (random.once(3)) delete copy[name]
    else copy[name] = random.pick(strange)
  }
  return copy
}

/** Deeper than what recursion can take. */
const abyss = `${'[{"a":'.repeat(20_000)}1${'}]'.repeat(20_000)}`

function body(random: Random): string {
  switch (random.below(12)) {
    case 0:
      return JSON.stringify(random.pick(strange))
    case 1:
      return random.pick([
        '',
        ' ',
        '"\\ud800"',
        '-0',
        '1e999',
        '{"__proto__": {"id": 1}}',
        '[[[[[[]]]]]]',
        '{"a\\nb": {"a\\\\nb": 1}}',
      ])
    case 2:
      return random.once(4) ? abyss : `${'['.repeat(300)}${']'.repeat(300)}`
    case 3:
    case 4:
    case 5:
      return JSON.stringify(
        Array.from({ length: random.below(5) }, () => (random.once(5) ? random.pick(strange) : record(random))),
      )
    default:
      return JSON.stringify(record(random))
  }
}

/** @returns the events that were sent */
function answer(random: Random, request: IncomingMessage, response: ServerResponse): string {
  if (random.once(4)) response.setHeader('X-Total-Count', random.pick(['0', '-1', 'x', '999999999', '1e9', '']))
  if (random.once(4)) response.setHeader('X-Limit', 'x')
  if (request.headers.accept?.includes('event-stream') === true && !random.once(4)) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const text = Array.from({ length: random.below(6) }, () => event(random)).join('')
    response.end(text)
    return text
  }
  response.setHeader(
    'Content-Type',
    random.pick(['application/json', 'text/html', 'text/plain; charset=utf-16', '', 'x/y;']),
  )
  response.writeHead(200).end(body(random))
  return ''
}

async function hasOutput(stream: string): Promise<boolean> {
  for await (const { name, data } of readEvents(Readable.from([Buffer.from(stream)]))) {
    if (name === 'EOF') return false
    if (name !== 'svc.execution.output__create') continue
    try {
      const { data: text } = Object(JSON.parse(data)) as { data?: unknown }
      if (typeof text === 'string' && text !== '') return true
    } catch {
      // It is no JSON: the client fails.
      return false
    }
  }
  return false
}

const events = [
  'svc.execution__update',
  'svc.execution.output__create',
  'svc.execution__create',
  'EOF',
  '',
  'x',
] as const

function event(random: Random): string {
  const data = random.once(3) ? random.pick(['', '{', 'x', 'null', '[]']) : body(random).slice(0, 5000)
  return random.pick([
    `event: ${random.pick(events)}\ndata: ${data}\n\n`,
    `event: ${random.pick(events)}\nid: \u0000\ndata: ${JSON.stringify(record(random))}\n\n`,
    ': comment\n\n',
    'data',
    '\r\r\n\n',
    'retry: 0\n\n',
  ])
}
