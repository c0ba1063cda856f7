/**
 * How long one request can hold up everybody else: each input is sent alone, and its longest turn of the event loop is
 * printed. Time is not asserted, because it belongs to the machine; what bounds the work is: the refusal. Work that grows
 * with the square of an input, or doubles with each level, does not end within a test.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { LoopCost } from '../helpers/loop-spy.ts'
import { finalStatuses, startServer, type TestServer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestServer
const costs: [name: string, status: number, cost: LoopCost][] = []
beforeAll(async () => {
  server = await startServer({
    through: ([node = '', ...words]) => [
      node,
      '--import',
      join(import.meta.dirname, '../helpers/loop-spy.ts'),
      ...words,
    ],
  })
  const rule = {
    name: 'examples',
    trigger: { type: 'core.svc.webhook', parameters: { url: 'examples' } },
    action: { ref: 'core.noop' },
  }
  await server.call('POST', '/v1/rules', rule)
  for (const [name, parameters] of Object.entries(actions)) {
    const action = { name, pack: 'default', runner_type: 'noop', entry_point: '', parameters }
    const answer = await server.call('POST', '/v1/actions', action)
    if (answer.status !== 201) throw new Error(`not accepted (${answer.status}): ${answer.text}`)
  }
  // What is compiled for the first request of a kind belongs to the start.
  for (const path of ['/executions', '/rules', '/actions', '/packs/register', '/webhooks/examples', '/policies'])
    await server.call('POST', `/v1${path}`, {})
  await send('POST', '/executions', execution({ s: 'x' }))
})
afterAll(async () => {
  await server.stop()
  const rows = costs.map(([name, status, { longestMs, longestDelayMs, totalMs }]) => {
    const numbers = [longestMs, longestDelayMs, totalMs].map((ms) => ms.toFixed(0).padStart(7)).join('')
    return `${numbers}  ${status}  ${name}\n`
  })
  process.stdout.write(
    `Longest turn (processor), longest delay, processor time in all; milliseconds:\n${rows.join('')}`,
  )
})

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const objectOf = <T>(count: number, make: (index: number) => T, name = 'k'): Record<string, T> =>
  Object.fromEntries(range(count).map((index) => [`${name}${index}`, make(index)]))
const keysOf = (count: number, key = 'k', value = '1'): string =>
  `{${range(count)
    .map((index) => `"${key}${index}":${value}`)
    .join(',')}}`
const listOf = (count: number, item: string): string => `[${`${item},`.repeat(count - 1)}${item}]`
const nested = (depth: number, open: string, inner: string, close: string): string =>
  open.repeat(depth) + inner + close.repeat(depth)

const actions = {
  any: { o: { type: 'object' }, a: { type: 'array' }, s: { type: 'string' } },
  many: objectOf(480, (index) => ({ type: 'string', minLength: index, description: 'x', default: 'y'.repeat(480) })),
  choice: { a: { type: 'array', items: { enum: range(1900).map((index) => `v${index}`) } } },
  unique: { a: { type: 'array', uniqueItems: true } },
  hidden: { s: { type: 'string', secret: true }, t: { type: 'string' } },
  matching: { a: { type: 'array', items: { type: 'string', pattern: '^[a-z0-9.-]{1,63}$' } } },
}
/** @param parameters their text, or a value */
const execution = (parameters: unknown, action = 'default.any'): string =>
  `{"action":"${action}","parameters":${typeof parameters === 'string' ? parameters : JSON.stringify(parameters)}}`
const noop = (more: string): string => `{"action":"core.noop",${more}}`
const rendering = (template: unknown, more: object = {}): string =>
  JSON.stringify({ action: 'core.echo', parameters: { message: template, ...more } })
const rule = (more: object): string =>
  JSON.stringify({
    name: 'r',
    trigger: { type: 'core.svc.webhook', parameters: { url: 'r' } },
    action: { ref: 'core.noop' },
    ...more,
  })
/** Tests a rule on a payload, which renders its parameters at once. */
const ruleTest = (message: unknown, body: string, criteria: object = {}): string =>
  `{"rule":${rule({ criteria, action: { ref: 'core.echo', parameters: { message } } })},
    "trigger_instance":{"trigger":"core.svc.webhook","payload":{"body":${body}}}}`
const criteriaOf = (count: number, pattern: (index: number) => string): object => ({
  criteria: objectOf(count, (index) => ({ type: 'matchregex', pattern: pattern(index) }), 'trigger.body.a'),
})
const search = {
  'trigger.body': { type: 'search', condition: 'any', pattern: { item: { type: 'td_gt', pattern: 5 } } },
}
const action = (parameters: object, more: object = {}): string =>
  JSON.stringify({ name: 'new', pack: 'default', runner_type: 'noop', entry_point: '', parameters, ...more })
const triggerType = (properties: object): string =>
  JSON.stringify({ name: 'new', pack: 'default', payload_schema: { type: 'object', properties } })
const part = (name: string, value: string): string =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
const multipart = { 'Content-Type': 'multipart/form-data; boundary=B' }

type Input = [name: string, send: () => Promise<{ status: number; text: string }>, status: number]

const send = (method: string, path: string, body?: string, headers?: Record<string, string>) =>
  server.call(method, `/v1${path}`, body, headers)
/** Refused with 400 unless it says otherwise. */
const post = (
  name: string,
  path: string,
  body: () => string,
  status = 400,
  headers?: Record<string, string>,
): Input => [name, () => send('POST', path, body(), headers), status]
const put = (name: string, path: string, body: () => string, status = 400): Input => [
  name,
  () => send('PUT', path, body()),
  status,
]
const get = (name: string, path: string, status = 200): Input => [name, () => send('GET', path), status]

/** What needs little time when it is refused, or is small. */
const daily: Input[] = [
  post('800,000 keys', '/executions', () => execution(keysOf(800_000))),
  post('90,000 keys for a webhook', '/webhooks/examples', () => keysOf(90_000)),
  post('800,000 empty lists', '/executions', () => execution({ a: [] }).replace('[]', listOf(400_000, '[]'))),
  post('21.0 in 90 lists', '/executions', () => execution(`{"a":${nested(90, '[', '21.0', ']')}}`), 201),
  post('101 levels', '/executions', () => execution(`{"o":${nested(101, '{"a":', '1', '}')}}`)),
  post('24,000 surplus parameters', '/executions', () => execution(keysOf(24_000))),
  post('24,000 keys of the context', '/executions', () => noop(`"context":${keysOf(24_000)}`)),
  post('24,000 keys of the callback', '/executions', () => noop(`"callback":${keysOf(24_000)}`)),
  post('a context of 1 MiB', '/executions', () => noop(`"context":{"a":"${'x'.repeat(1_000_000)}"}`)),
  post('24,000 keys to notify', '/executions', () => noop(`"notify":{"on-complete":{"data":${keysOf(24_000)}}}`)),
  post('90,000 routes', '/executions', () => noop(`"notify":{"on-complete":{"routes":${listOf(90_000, '"a"')}}}`)),
  post('800,000 keys as text', '/executions', () => execution({ o: keysOf(800_000) })),
  post('a Python literal of 3 MB', '/executions', () => execution({ a: `[${'True,'.repeat(600_000)}]` })),
  post('a surplus parameter beside a loop', '/executions', () =>
    rendering('{% for i in range(90000) %}x{% endfor %}', { x: 1 }),
  ),
  post('a loop', '/executions', () =>
    rendering('{% for a in range(300) %}{% for b in range(300) %}{{ a * b }}{% endfor %}{% endfor %}'),
  ),
  post('large powers', '/executions', () => rendering('{% for i in range(9000) %}{{ 7 ** 2800 }}{% endfor %}')),
  post('90,000 beginnings of templates', '/executions', () => rendering(range(90_000).map(() => '{{'))),
  post('a long loop of a rule', '/rules/test', () => ruleTest('{% for i in range(60000) %}x{% endfor %}', '1'), 200),
  post('24,000 keys for a rule', '/rules/test', () => ruleTest('{{ trigger.body }}', keysOf(24_000)), 200),
  post('comparisons that fail', '/rules/test', () => ruleTest('x', listOf(90_000, '"x"'), search), 200),
  post('900 unknown packs', '/packs/register', () => JSON.stringify({ packs: range(900).map((i) => `unknown${i}`) })),
  post('5,000 criteria', '/rules', () => rule(criteriaOf(5000, () => 'x'))),
  post('500 large patterns of criteria', '/rules', () => rule(criteriaOf(500, (i) => `(a|b|[^c]){1,${200 + i}}x`))),
  post('a pattern of wide classes', '/rules', () => rule(criteriaOf(1, () => '(?i)[b-\\x{10ffff}]'.repeat(100)))),
  post('480 patterns of parameters', '/actions', () =>
    action(objectOf(480, (i) => ({ type: 'string', pattern: `^(a|b|[^c]){1,300}x${i}$` }))),
  ),
  post('480 schemas of 150 values', '/actions', () =>
    action(
      objectOf(480, (i) => ({ type: 'object', properties: objectOf(45, () => ({ type: 'string', minLength: i })) })),
    ),
  ),
  post('a schema of 10,000 properties', '/actions', () => action({ p: { properties: objectOf(10_000, () => ({})) } })),
  post('a schema that refers to itself', '/triggertypes', () => triggerType({ a: { $ref: '#/properties/a' } })),
  post('600 patterns of a trigger type', '/triggertypes', () =>
    triggerType(objectOf(600, (i) => ({ type: 'string', pattern: `(a|b|[^c]){1,300}${i}` }))),
  ),
  put('24,000 attributes of a configuration', '/configs/core', () => keysOf(24_000)),
  put('a configuration of 8 MB', '/configs/core', () => JSON.stringify({ a: 'x'.repeat(8_000_000) })),
  post('10,001 fields of a form', '/webhooks/examples', () => 'a=1&'.repeat(10_000) + 'a=1', 400, form),
  post('3,000,000 empty fields', '/webhooks/examples', () => '&'.repeat(3_000_000), 400, form),
  post('a cron expression of 90,000 parts', '/rules', () =>
    rule({ trigger: { type: 'core.svc.CronTimer', parameters: { second: range(90_000).join(',') } } }),
  ),
  get('5,000 attributes in a query', `/executions?include_attributes=${'a,'.repeat(5000)}`, 400),
]

const bodies: [name: string, body: () => string][] = [
  ['25,000 keys', () => keysOf(24_900)],
  ['25,000 keys with escapes', () => keysOf(24_900, '\\n')],
  ['90,000 numbers', () => listOf(90_000, '1')],
  ['90,000 times 21.0', () => listOf(90_000, '21.0')],
  ['90,000 large numbers', () => listOf(90_000, '12345678901234567890')],
  ['3,500 numbers of 4,000 digits', () => listOf(3500, '1'.repeat(4000))],
  ['40,000 objects', () => listOf(40_000, '{}')],
  ['1,000 objects of 45 levels', () => listOf(1000, nested(45, '{"a":', '1', '}'))],
  ['a text of 12 MB', () => `["${'x'.repeat(12_000_000)}"]`],
  ['7,000,000 line ends', () => `["${'\\n'.repeat(7_000_000)}"]`],
  ['1,200 keys of 10,000 characters', () => keysOf(1200, 'k'.repeat(10_000))],
]
const inParameter = (text: string): string => execution(`{"${text.startsWith('{') ? 'o' : 'a'}":${text}}`)

/** What is large and accepted, or takes a while until it is refused. */
const heavy: Input[] = [
  ...bodies.map(([name, body]) => post(`${name} as a parameter`, '/executions', () => inParameter(body()), 201)),
  ...bodies.map(([name, body]) => post(`${name} for a webhook`, '/webhooks/examples', body, 202)),
  post('90,000 items as text', '/executions', () => execution({ a: listOf(90_000, '1') }), 201),
  post('a string where a list of 90,000 is given', '/executions', () => execution(`{"s":${listOf(90_000, '1')}}`)),
  post('the first run with 480 parameters', '/executions', () => execution({}, 'default.many'), 201),
  post(
    '90,000 items, each one of 1,900 choices',
    '/executions',
    () => execution(`{"a":${listOf(90_000, '"v1899"')}}`, 'default.choice'),
    201,
  ),
  post('90,000 unique items', '/executions', () => execution({ a: range(90_000) }, 'default.unique'), 201),
  post(
    '8,000 items that match a pattern',
    '/executions',
    () => execution(`{"a":${listOf(8000, '"host.example.com"')}}`, 'default.matching'),
    201,
  ),
  post('90,000 items that match a pattern', '/executions', () =>
    execution(`{"a":${listOf(90_000, '"host.example.com"')}}`, 'default.matching'),
  ),
  post(
    '480 parameters',
    '/actions',
    () =>
      action(
        objectOf(480, (i) => ({ type: 'string', minLength: i })),
        { name: 'p480' },
      ),
    201,
  ),
  post(
    'a schema of 990 values',
    '/actions',
    () =>
      action(
        { p: { type: 'object', properties: objectOf(320, (i) => ({ type: 'string', minLength: i })) } },
        { name: 'p990' },
      ),
    201,
  ),
  post(
    'a trigger type of 990 values',
    '/triggertypes',
    () => triggerType(objectOf(320, (i) => ({ type: 'string', minLength: i }))),
    201,
  ),
  put('a configuration of 1,990 values', '/configs/core', () => JSON.stringify({ a: range(1990) }), 200),
  post(
    'a rule with 24,000 parameters',
    '/rules',
    () => rule({}).replace('"core.noop"', `"core.noop","parameters":${keysOf(24_000)}`),
    201,
  ),
  post('all packs', '/packs/register', () => '{}', 200),
  post(
    '9,999 fields of a form',
    '/webhooks/examples',
    () =>
      range(9999)
        .map((i) => `k${i}=v`)
        .join('&'),
    202,
    form,
  ),
  post('12,000,000 spaces in a form', '/webhooks/examples', () => `a=${'+'.repeat(12_000_000)}`, 202, form),
  post('12,000,000 percent signs in a form', '/webhooks/examples', () => `a=${'%'.repeat(12_000_000)}`, 202, form),
  post(
    '9,999 parts',
    '/webhooks/examples',
    () =>
      `${range(9999)
        .map((i) => part(`k${i}`, 'v'))
        .join('')}--B--\r\n`,
    202,
    multipart,
  ),
  post(
    'a part full of line ends',
    '/webhooks/examples',
    () => `${part('a', '\r\n--'.repeat(3_000_000))}--B--\r\n`,
    202,
    multipart,
  ),
  post('dense templates', '/executions', () => rendering(range(9).map((i) => `{{ [${`${i},`.repeat(20_000)}] }}`))),
  post(
    '24,000 keys counted again and again',
    '/rules/test',
    () => ruleTest('{% for i in range(4000) %}{{ trigger.body | length }}{% endfor %}', keysOf(24_000)),
    200,
  ),
  post('a large result', '/rules/test', () => ruleTest("{{ 'x' * 9000000 }}", '1'), 200),
  post('text made again and again', '/executions', () =>
    rendering(`{% for i in range(5000) %}{{ ('x' * 100000) | upper | length }}{% endfor %}`),
  ),
  post('a pattern over a large text', '/executions', () =>
    rendering(`{{ ('ab ' * 700000) | regex_replace('(a|b)+', 'c') | length }}`),
  ),
  post('500 templates', '/executions', () =>
    JSON.stringify({
      action: 'core.local',
      parameters: { cmd: 'true', env: objectOf(499, () => '{% for i in range(9000) %}x{% endfor %}') },
    }),
  ),
  get('a page of what was sent before', '/executions?limit=100'),
]

const lineEnds = '\n'.repeat(7_000_000)
const newest = async (list: string): Promise<string> =>
  (await server.call<{ id: string }[]>('GET', `/v1${list}&limit=1&include_attributes=id`)).body[0]?.id ?? ''
const running = (cmd: string): string => JSON.stringify({ action: 'core.local', parameters: { cmd } })

/** The same values on other ways. */
const neighbours: Input[] = [
  post(
    'a secret beside 7,000,000 line ends',
    '/executions',
    () => execution({ s: 'canary', t: lineEnds }, 'default.hidden'),
    201,
  ),
  post('a text of 12 MB with an Idempotency-Key', '/executions', () => execution({ s: 'x'.repeat(12_000_000) }), 201, {
    'Idempotency-Key': 'a',
  }),
  post('an output of 4,500,000 lines', '/executions', () => running('yes | head -c 9000000'), 201),
  post('an output of 9 MB in one line', '/executions', () => running('head -c 9000000 /dev/zero | tr "\\0" x'), 201),
  [
    'a re-run of 12 MB',
    async () => send('POST', `/executions/${await newest('/executions?action=default.any')}/re_run`, '{}'),
    201,
  ],
  [
    'a result of 7,000,000 line ends from outside',
    async () => {
      const waiting = { action: 'core.noop', delay: 1_000_000 }
      const { body } = await server.call<{ id: string }>('POST', '/v1/executions', waiting)
      const update = JSON.stringify({ status: 'succeeded', result: { a: lineEnds } })
      return send('PUT', `/executions/${body.id}`, update)
    },
    200,
  ],
  get('a list of large results', '/executions?action=core.local'),
  get('one attribute of large results', '/executions?action=core.local&include_attributes=result.stdout'),
  [
    'a large result alone',
    async () => send('GET', `/executions/${await newest('/executions?action=core.local')}/attribute/result`),
    200,
  ],
  [
    'a trigger instance of a large result',
    async () =>
      send('GET', `/triggerinstances/${await newest('/triggerinstances?trigger_type=core.svc.generic.actiontrigger')}`),
    200,
  ],
]

async function costOf<T>(work: () => Promise<T>): Promise<{ value: T; cost: LoopCost }> {
  const printed = (): string[] => server.printed().match(/^LOOP .*$/gm) ?? []
  const count = printed().length
  process.kill(server.pid, 'SIGWINCH')
  await waitFor('the spy', () => printed().length > count)
  const value = await work()
  process.kill(server.pid, 'SIGWINCH')
  await waitFor('the cost', () => printed().length > count + 1)
  return { value, cost: JSON.parse(printed().at(-1)?.slice('LOOP '.length) ?? '') as LoopCost }
}

/** Until the execution has ended, or the rules have seen the trigger instance. */
async function settle({ status, text }: { status: number; text: string }): Promise<void> {
  const { id } = status === 201 ? (JSON.parse(text) as { id: string }) : { id: '' }
  await waitFor('the end of what follows', async () => {
    const execution = await server.call<string>('GET', `/v1/executions/${id}/attribute/status`)
    const instances = await server.call<{ status: string }[]>('GET', '/v1/triggerinstances?limit=1')
    const isOver = execution.status === 404 || finalStatuses.includes(execution.body)
    return isOver && instances.body[0]?.status !== 'pending'
  })
}

/** @returns status and beginning of the answer, and what they should be */
async function outcomeOf([name, request, status]: Input): Promise<[seen: unknown[], wanted: unknown[]]> {
  const { value, cost } = await costOf(async () => {
    const answer = await request()
    if (answer.status === 201 || answer.status === 202) await settle(answer)
    return answer
  })
  costs.push([name, value.status, cost])
  const beginning = value.text.slice(0, 500)
  return [
    [value.status, beginning],
    [status, beginning],
  ]
}

it.each(daily)('%s: bounded work', async (...input) => {
  const [seen, wanted] = await outcomeOf(input)
  expect(seen).toEqual(wanted)
})

fullOnly(it.each([...heavy, ...neighbours]))('%s: bounded work', async (...input) => {
  const [seen, wanted] = await outcomeOf(input)
  expect(seen).toEqual(wanted)
})

it('answers afterwards', async () => {
  expect((await server.call('GET', '/v1/executions?limit=1')).status).toBe(200)
})
