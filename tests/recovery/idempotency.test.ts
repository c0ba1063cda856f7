/** A server that is killed while it carries out requests with an Idempotency-Key: a repetition changes nothing twice. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { startServer, type Answer, type TestServer } from '../helpers/server.ts'
import { rounds } from '../helpers/tiers.ts'

interface Sent {
  key: string
  method: string
  path: string
  body: unknown
  /** Undefined: the server was killed before. */
  answer?: Answer
}

const seed = seedOfRun()
const random = createRandom(seed)
const REQUESTS = 60

let folder: TemporaryFolder
let server: TestServer

const start = (): Promise<TestServer> => startServer({ basePath: folder.path, settings: { 'log.level': 'WARNING' } })

beforeEach(async () => {
  folder = makeFolder()
  server = await start()
})
afterEach(async () => {
  await server.stop('SIGKILL')
  folder.remove()
})

const kinds: readonly [Kind, ...Kind[]] = [
  (n) => ['POST', '/v1/executions', { action: 'core.noop', context: { n } }],
  (n) => ['POST', '/v1/apikeys', { metadata: { n } }],
  (n) => ['PUT', `/v1/keys/k${n}`, { name: `k${n}`, value: String(n) }],
  (n) => [
    'POST',
    '/v1/rules',
    {
      name: `r${n}`,
      trigger: { type: 'core.svc.webhook', parameters: { url: `r${n}` } },
      action: { ref: 'core.noop' },
    },
  ],
]
type Kind = (n: number) => [method: string, path: string, body: Record<string, unknown>]

const send = ({ key, method, path, body }: Sent): Promise<Answer> =>
  server.call(method, path, body, { 'Idempotency-Key': key })

function count(): number {
  const database = new Sqlite(join(folder.path, 'svc.db'), { readonly: true })
  try {
    const tables = ['executions', 'api_keys', 'key_value_pairs', 'rules']
    const sum = tables.map((table) => `(select count(*) from ${table})`).join(' + ')
    return (database.prepare(`select ${sum} as n`).get() as { n: number }).n // one number
  } finally {
    database.close()
  }
}

function isRight({ path, answer }: Sent, again: Answer): boolean {
  const { status, text, headers, body } = again
  if (answer !== undefined) {
    return status === answer.status && text === answer.text && headers.get('idempotent-replayed') === 'true'
  }
  // Only the client that was cut off could have had the value of the API key.
  if (status === 409) return path === '/v1/apikeys' && body['code'] === 'IDEMPOTENCY_ANSWER_LOST'
  return status === 200 || status === 201
}

test(`whenever it is killed, each request is carried out once (SVC_TEST_SEED=${seed})`, async () => {
  const all: Sent[] = []
  for (let round = 0; round < rounds({ daily: 2, full: 15 }); round++) {
    const sent = Array.from({ length: REQUESTS }, (_, i): Sent => {
      const n = round * REQUESTS + i
      const [method, path, body] = random.pick(kinds)(n)
      return { key: `key ${n}`, method, path, body }
    })
    const killedAfter = random.below(REQUESTS)
    let answered = 0
    let killed: Promise<unknown> | undefined
    await Promise.all(
      sent.map(async (request) => {
        try {
          request.answer = await send(request)
        } catch {
          // Killed.
        }
        if (++answered > killedAfter) killed ??= server.stop('SIGKILL')
      }),
    )
    await killed
    server = await start()
    all.push(...sent)
  }
  const wrong: unknown[] = []
  for (const request of all) {
    const again = await send(request)
    const other = await send({ ...request, body: `${JSON.stringify(request.body)} ` })
    if (!isRight(request, again) || other.body['code'] !== 'IDEMPOTENCY_KEY_REUSED') wrong.push([request, again, other])
  }
  expect(wrong).toEqual([])
  expect(count()).toBe(all.length)
})
