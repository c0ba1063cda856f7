/** Many requests at once, each on a connection of its own, and what became of them. */
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestServer } from './server.ts'

export interface FloodRequest {
  method?: string
  path: string
  body?: unknown
  headers?: Record<string, string>
}

export interface FloodAnswer {
  status: number
  retryAfter: string | undefined
  text: string
}

/** As `flood`, but not one is looked at before all have been sent: the server has more at once than it takes on. */
export async function floodAtOnce(
  server: Pick<TestServer, 'pid'>,
  baseUrl: string,
  requests: readonly FloodRequest[],
): Promise<(FloodAnswer | string)[]> {
  process.kill(server.pid, 'SIGSTOP')
  try {
    const sending = requests.map((one) => {
      const sent = Promise.withResolvers<void>()
      return { sent: sent.promise, answer: sendAlone(baseUrl, one, sent.resolve) }
    })
    await Promise.all(sending.map(({ sent }) => sent))
    process.kill(server.pid, 'SIGCONT')
    return await Promise.all(sending.map(({ answer }) => answer))
  } finally {
    process.kill(server.pid, 'SIGCONT')
  }
}

/** Answers, or the codes of the errors of connections that were cut. */
export function flood(baseUrl: string, requests: readonly FloodRequest[]): Promise<(FloodAnswer | string)[]> {
  return Promise.all(requests.map((one) => sendAlone(baseUrl, one)))
}

/** `onSent` is called when the system has all of the request, or there was an error. */
function sendAlone(
  baseUrl: string,
  { method, path, body, headers }: FloodRequest,
  onSent?: () => void,
): Promise<FloodAnswer | string> {
  return new Promise((resolve) => {
    const outgoing = request(
      `${baseUrl}${path}`,
      {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        agent: false,
        headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      },
      (response) => {
        const { statusCode: status = 0, headers: answered } = response
        text(response).then(
          (content) => resolve({ status, retryAfter: answered['retry-after'], text: content }),
          (error: NodeJS.ErrnoException) => resolve(String(error.code)),
        )
      },
    )
    outgoing.once('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)))
    if (onSent !== undefined) outgoing.once('finish', onSent).once('error', onSent)
    outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** How many answers of each kind there are: `503, again` is one that says when to come again. */
export function tally(answers: readonly (FloodAnswer | string)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) {
    const kind =
      typeof answer === 'string' ? answer : `${answer.status}${answer.retryAfter === undefined ? '' : ', again'}`
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

/** Ids of the executions that were accepted. */
export function acceptedIds(answers: readonly (FloodAnswer | string)[]): string[] {
  return answers.flatMap((answer) =>
    typeof answer !== 'string' && answer.status === 201 ? [(JSON.parse(answer.text) as { id: string }).id] : [],
  )
}

export const executionOf = (cmd: string): FloodRequest => ({
  path: '/v1/executions',
  body: { action: 'core.local', parameters: { cmd } },
})

/** Opens connections and sends the beginning of something on each. Resolves when all are open. */
export async function holdConnections(baseUrl: string, count: number, beginning = ''): Promise<Socket[]> {
  const { port, hostname } = new URL(baseUrl)
  const opened = Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    return new Promise<Socket>((resolve) => socket.once('connect', () => resolve(socket)))
  })
  const sockets = await Promise.all(opened)
  if (beginning !== '') for (const socket of sockets) socket.write(beginning)
  return sockets
}

/** Runs the server where it may have so many files open. */
export const withFileLimit =
  (limit: number) =>
  (command: string[]): [string, ...string[]] => ['/bin/sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh', ...command]
