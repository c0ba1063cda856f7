/** The mix of work: executions of several kinds, webhooks whose rule starts one, readers and followers. */
import { openEvents, type EventClient } from '../helpers/sse.ts'
import type { ExecutionAnswer, TestServer } from '../helpers/server.ts'
import type { Random } from '../helpers/random.ts'
import type { Entry, Finding, Ledger } from './ledger.ts'

const NUMBERS = 20_000
const numbers = Array.from({ length: NUMBERS }, (_, index) => `${index + 1}\n`)
  .join('')
  .trimEnd()

/** Kinds in the proportions in which they are chosen. */
const kinds = [
  ...(['echo', 'echo', 'echo', 'echo', 'event', 'event', 'event', 'noop', 'failure'] as const),
  ...(['output', 'late', 'canceled', 'delayed', 'list', 'list', 'read', 'follow'] as const),
] as const
type Kind = (typeof kinds)[number]

/** What the load needs of a server: made once, kept over restarts. */
export async function prepare(server: TestServer): Promise<void> {
  const rules = [
    {
      name: 'soak_event',
      trigger: { type: 'core.svc.webhook', parameters: { url: 'soak' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.n }}' } },
    },
    {
      name: 'soak_timer',
      trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'seconds', delta: 1 } },
      action: { ref: 'core.noop', parameters: {} },
    },
  ]
  for (const rule of rules) {
    const answer = await server.call('POST', '/v1/rules', { pack: 'default', criteria: {}, enabled: true, ...rule })
    if (answer.status !== 201) throw new Error(`the rule ${rule.name} was refused: ${answer.text}`)
  }
}

/** Sends one request of the mix. Rejects when the server goes away before it answers. */
export async function sendOne(server: TestServer, ledger: Ledger, random: Random): Promise<void> {
  const kind: Kind = random.pick(kinds)
  switch (kind) {
    case 'list': {
      const query = random.pick(['limit=50', 'status=failed&limit=20', 'action=core.local&limit=20&offset=100'])
      await expectStatus(server.call('GET', `/v1/executions?${query}`), 200)
      return
    }
    case 'read':
      await expectStatus(server.call('GET', '/v1/executions/last/output'), 200)
      return
    case 'event': {
      const n = ledger.next()
      const traceTag = `soak-${n}`
      await expectStatus(server.call('POST', '/v1/webhooks/soak', { n }, { 'Svc-Trace-Tag': traceTag }), 202)
      ledger.accept({ n, id: undefined, traceTag, expected: ['succeeded'], stdout: String(n) })
      return
    }
    default:
      await execute(server, ledger, kind)
  }
}

async function execute(
  server: TestServer,
  ledger: Ledger,
  kind: Exclude<Kind, 'list' | 'read' | 'event'>,
): Promise<void> {
  const n = ledger.next()
  const commands: Record<typeof kind, { cmd: string; timeout?: number }> = {
    echo: { cmd: `echo ${n}` },
    delayed: { cmd: `echo ${n}` },
    follow: { cmd: `echo ${n}; sleep 0.2; echo ${n}` },
    failure: { cmd: 'exit 3' },
    output: { cmd: `seq 1 ${NUMBERS}` },
    late: { cmd: 'sleep 60', timeout: 1 },
    canceled: { cmd: 'sleep 60' },
    noop: { cmd: '' },
  }
  const answer = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
    ...(kind === 'noop' ? { action: 'core.noop' } : { action: 'core.local', parameters: commands[kind] }),
    ...(kind === 'delayed' ? { delay: 700 } : {}),
  })
  // Too busy is an answer: nothing was accepted.
  if (answer.status === 503) return
  if (answer.status !== 201) throw new Error(`${kind} was answered with ${answer.status}: ${answer.text}`)
  const { id } = answer.body
  const stdout = { echo: `${n}`, delayed: `${n}`, follow: `${n}\n${n}`, output: numbers } as Partial<
    Record<Kind, string>
  >
  const expected = { failure: ['failed'], late: ['timeout'], canceled: ['canceled'] } as Partial<Record<Kind, string[]>>
  ledger.accept({ n, id, traceTag: undefined, expected: expected[kind] ?? ['succeeded'], stdout: stdout[kind] })
  if (kind === 'canceled') await expectStatus(server.call('DELETE', `/v1/executions/${id}`), 200)
  if (kind === 'follow') {
    const events = await openEvents(`${server.urls.stream}/v1/executions/${id}/output`)
    await events.ended
  }
}

async function expectStatus(answering: Promise<{ status: number; text: string }>, status: number): Promise<void> {
  const answer = await answering
  if (answer.status !== status && answer.status !== 503) {
    throw new Error(`${answer.status} in place of ${status}: ${answer.text.slice(0, 300)}`)
  }
}

/** What became of an entry, asked as a client asks. */
export async function look(server: TestServer, entry: Entry): Promise<Finding | 'several' | undefined> {
  let { id } = entry
  if (id === undefined) {
    const tag = encodeURIComponent(entry.traceTag ?? '')
    const traces = await server.call<{ action_executions: { object_id: string }[] }[]>(
      'GET',
      `/v1/traces?trace_tag=${tag}`,
    )
    if (traces.status !== 200) throw new Error(`${traces.status}: ${traces.text.slice(0, 300)}`)
    const runs = traces.body.flatMap((trace) => trace.action_executions)
    if (runs.length > 1) return 'several'
    id = runs[0]?.object_id
    if (id === undefined) return undefined
  }
  const answer = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
  if (answer.status === 404) return undefined
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text.slice(0, 300)}`)
  const { status, result = {} } = answer.body as Partial<ExecutionAnswer>
  const { stdout } = result
  return { status: status ?? '', stdout: typeof stdout === 'string' ? stdout : '' }
}

/** Clients that listen to everything and never say a word. */
export function openIdle(server: TestServer, count: number): Promise<EventClient[]> {
  const url = `${server.urls.stream}/v1/stream?events=svc.announcement__soak`
  return Promise.all(Array.from({ length: count }, () => openEvents(url)))
}
