/**
 * How long one request can hold up everybody else: each input is sent alone, and the longest delay of the event loop
 * under it is printed. Time is not asserted, because it belongs to the machine; what bounds the work is: the refusal.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestApp
const delays: [string, number, number][] = []
beforeAll(async () => {
  server = await createTestApp()
  const rule = {
    name: 'examples',
    trigger: { type: 'core.svc.webhook', parameters: { url: 'examples' } },
    action: { ref: 'core.noop' },
  }
  await server.call('POST', '/v1/rules', rule)
})
afterAll(async () => {
  await server.stop()
  process.stdout.write(
    `Longest delay of the event loop:\n${delays.map(([name, status, ms]) => `${ms.toFixed(0).padStart(6)} ms  ${status}  ${name}\n`).join('')}`,
  )
})

const keysOf = (count: number, key = 'k'): string =>
  `{${Array.from({ length: count }, (_, i) => `"${key}${i}":1`).join(',')}}`
const execution = (more: string): string => `{"action":"core.noop"${more}}`
const rendering = (template: string, more: object = {}): string =>
  JSON.stringify({ action: 'core.echo', parameters: { message: template, ...more } })
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
const ruleWith = (criteria: object): string =>
  JSON.stringify({
    name: 'r',
    trigger: { type: 'core.svc.webhook', parameters: { url: 'r' } },
    criteria,
    action: { ref: 'core.noop' },
  })

/** What is sent, and the status with which it is refused, or 201 and 200 for what is bounded work. */
const inputs: [name: string, path: string, body: string, status: number][] = [
  ['800,000 keys', '/executions', execution(`,"parameters":${keysOf(800_000)}`), 400],
  ['800,000 keys for a webhook', '/webhooks/examples', keysOf(800_000), 400],
  ['800,000 empty lists', '/executions', execution(`,"parameters":{"a":[${'[],'.repeat(400_000)}[]]}`), 400],
  ['25,000 keys with escapes', '/executions', execution(`,"parameters":${keysOf(25_000, '\\n')}`), 400],
  ['24,000 surplus parameters', '/executions', execution(`,"parameters":${keysOf(24_000)}`), 400],
  ['24,000 keys of the context', '/executions', execution(`,"context":${keysOf(24_000)}`), 400],
  ['24,000 keys of the callback', '/executions', execution(`,"callback":${keysOf(24_000)}`), 400],
  ['a context of 1 MiB', '/executions', execution(`,"context":{"a":"${'x'.repeat(1_000_000)}"}`), 400],
  [
    '24,000 keys of data to notify',
    '/executions',
    execution(`,"notify":{"on-complete":{"data":${keysOf(24_000)}}}`),
    400,
  ],
  [
    '90,000 routes to notify',
    '/executions',
    execution(`,"notify":{"on-complete":{"routes":[${'"a",'.repeat(90_000)}"a"]}}`),
    400,
  ],
  [
    'a loop',
    '/executions',
    rendering('{% for a in range(300) %}{% for b in range(300) %}{{ a * b }}{% endfor %}{% endfor %}'),
    400,
  ],
  [
    'text made again and again',
    '/executions',
    rendering(`{% for i in range(5000) %}{{ ('x' * 100000) | upper | length }}{% endfor %}`),
    400,
  ],
  ['large powers', '/executions', rendering('{% for i in range(9000) %}{{ 7 ** 2800 }}{% endfor %}'), 400],
  [
    'a pattern over a large text',
    '/executions',
    rendering(`{{ ('ab ' * 700000) | regex_replace('(a|b)+', 'c') | length }}`),
    400,
  ],
  [
    'a surplus parameter beside a loop',
    '/executions',
    rendering('{% for i in range(90000) %}x{% endfor %}', { x: 1 }),
    400,
  ],
  [
    '500 templates',
    '/executions',
    JSON.stringify({
      action: 'core.local',
      parameters: {
        cmd: 'true',
        env: Object.fromEntries(
          Array.from({ length: 499 }, (_, i) => [`a${i}`, '{% for i in range(9000) %}x{% endfor %}']),
        ),
      },
    }),
    400,
  ],
  [
    '900 unknown packs',
    '/packs/register',
    JSON.stringify({ packs: Array.from({ length: 900 }, (_, i) => `unknown${i}`) }),
    400,
  ],
  ['90,000 keys for a webhook', '/webhooks/examples', keysOf(90_000), 400],
  ['25,000 keys for a webhook', '/webhooks/examples', keysOf(25_000), 202],
  ['90,000 numbers for a webhook', '/webhooks/examples', `[${'1,'.repeat(90_000)}1]`, 202],
  ['45,000 objects for a webhook', '/webhooks/examples', `[${'{},'.repeat(45_000)}{}]`, 202],
  ['101 levels', '/executions', execution(`,"parameters":${nested(101)}`), 400],
  [
    '5,000 criteria',
    '/rules',
    ruleWith(
      Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`trigger.body.a${i}`, { type: 'eq', pattern: 'x' }])),
    ),
    400,
  ],
]

it.each(inputs)('%s: refused, or bounded work', async (name, path, body, status) => {
  const bytes = Buffer.from(body)
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  await new Promise((resolve) => setImmediate(resolve))
  histogram.enable()
  const answer = await fetch(`${server.urls.api}/v1${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: bytes,
  })
  const text = await answer.text()
  await new Promise((resolve) => setTimeout(resolve, 5))
  histogram.disable()
  delays.push([name, answer.status, histogram.max / 1e6])
  expect([answer.status, text.slice(0, 500)]).toEqual([status, text.slice(0, 500)])
})

it('answers afterwards', async () => {
  const done = await waitFor('an answer', async () => (await server.call('GET', '/v1/executions?limit=1')).status)
  expect(done).toBe(200)
})
