/** Decision 35: numbers and the order of keys are exact, by whatever way they come in and go out. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ErrorAnswer } from './support.ts'
import { createTestApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { waitForStatus, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

const BIG = '820982911946154508'
const OTHER = '820982911946154511'
const DOCUMENT =
  `{"b":${BIG},"a":[21.0,1.10,1e3,-0,12345678901234567890.5,0.1000000000000000055511151231257827],` +
  `"10":9007199254740993,"2":{"z":1,"1":18446744073709551616,"\\n":-9007199254740993}}`

const seed = seedOfRun()
const files = makeFolder()
let server: TestApp
let web: Server
let answered = ''

beforeAll(async () => {
  web = createServer((_, response) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(answered))
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  server = await createTestApp({ settings: { 'http_runner.allowed_private_networks': '127.0.0.0/8' } })
})
afterAll(async () => {
  await server.stop()
  web.close()
  files.remove()
})

/** Sends JSON text as it is. */
async function send(
  method: string,
  path: string,
  body?: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await fetch(`${server.urls.api}/v1${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return response.text()
}

/** The text of the record once the execution has ended. */
async function runText(action: string, parameters: string): Promise<{ id: string; text: string }> {
  const created = await send('POST', '/executions', `{"action":"${action}","parameters":${parameters}}`)
  const { id = created } = JSON.parse(created) as { id?: string }
  await waitForStatus(server, id, ['succeeded', 'failed', 'pending'])
  return { id, text: await send('GET', `/executions/${id}`) }
}

async function makeRule(name: string, criteria: string, action: string): Promise<string> {
  return send(
    'POST',
    '/rules',
    `{"name":"${name}","enabled":true,"trigger":{"type":"core.svc.webhook","parameters":{"url":"${name}"}},"criteria":${criteria},"action":${action}}`,
  )
}

interface Outcome {
  trigger_instances: { id: string }[]
  executions: { id: string }[]
}

async function post(name: string, body: string): Promise<Outcome> {
  return JSON.parse(await send('POST', `/webhooks/${name}`, body, { Prefer: 'wait=10' })) as Outcome
}

const env = (): Record<string, string> => ({ HOME: files.path, SVC_API_URL: `${server.urls.api}/v1` })
const noop = '{"ref":"core.noop","parameters":{}}'
/** Its parameter `env` is an object, and its output shows it. */
const printing = `"cmd":"printf '%s\\\\n' \\"$DOCUMENT\\" \\"$NUMBER\\""`

describe('35 parameters', () => {
  it('of a request come back in the record, the list, the attributes and a re-run', async () => {
    const { id, text } = await runText('core.local', `{${printing},"env":{"DOCUMENT":${DOCUMENT},"NUMBER":${BIG}}}`)
    expect(text).toContain(`"env":{"DOCUMENT":${DOCUMENT},"NUMBER":${BIG}}`)
    expect((JSON.parse(text) as { result: { stdout: string } }).result.stdout).toBe(`${DOCUMENT}\n${BIG}`)
    expect(await send('GET', '/executions?limit=1&action=core.local')).toContain(DOCUMENT)
    expect(await send('GET', `/executions/${id}?include_attributes=parameters.env.DOCUMENT`)).toContain(DOCUMENT)
    const { id: again } = JSON.parse(await send('POST', `/executions/${id}/re_run`, '{}')) as { id: string }
    await waitForStatus(server, again, ['succeeded'])
    expect(await send('GET', `/executions/${again}`)).toContain(DOCUMENT)
  })

  it('are found by a filter', async () => {
    await runText('core.local', `{"cmd":"true","env":{"order":${BIG}}}`)
    const found = async (value: string): Promise<number> =>
      (JSON.parse(await send('GET', `/executions?filter=parameters.env.order:${value}`)) as unknown[]).length
    expect([await found(BIG), await found(OTHER), await found('820982911946154500')]).toEqual([1, 0, 0])
  })

  it('declared as numbers may be floats', async () => {
    const { text } = await runText('core.local', '{"cmd":"true","timeout":60.0}')
    expect(text).toContain('"status":"succeeded"')
    expect(text).toContain('"timeout":60')
  })

  it.each([
    ['1e400', 'a number is too large'],
    ['-1e400', 'a number is too large'],
    ['9'.repeat(1_000_000), 'a number has 1000000 characters; the limit is 4300'],
  ])('a number that nobody could read is refused', async (number, message) => {
    const text = await send('POST', '/executions', `{"action":"core.noop","context":{"a":${number}}}`)
    expect((JSON.parse(text) as ErrorAnswer).faultstring).toContain(message)
  })
})

describe('35 rules', () => {
  it('a payload reaches the action, the trigger instance and what it is re-sent as', async () => {
    await makeRule(
      'passing',
      '{}',
      `{"ref":"core.local","parameters":{"cmd":"echo {{ trigger.body.b }} {{ trigger.body.b + 1 }} {{ trigger.body.a[0] }}","env":{"D":"{{ trigger.body }}","T":"{{ trigger.body | to_json_string }}"}}}`,
    )
    const { executions, trigger_instances } = await post('passing', DOCUMENT)
    const text = await send('GET', `/executions/${executions[0]?.id}`)
    expect(text).toContain(`"D":${DOCUMENT}`)
    const { result, parameters } = JSON.parse(text) as {
      result: { stdout: string }
      parameters: { env: { T: string } }
    }
    expect(result.stdout).toBe(`${BIG} 820982911946154509 21.0`)
    expect(parameters.env.T.replaceAll(/([:,]) /g, '$1')).toBe(DOCUMENT)
    const instance = `/triggerinstances/${trigger_instances[0]?.id}`
    expect(await send('GET', instance)).toContain(`"body":${DOCUMENT}`)
    expect(await send('POST', `${instance}/re_emit`, '{}')).toContain(`"body":${DOCUMENT}`)
  })

  it.each([
    ['equals', BIG, BIG, OTHER],
    ['nequals', BIG, OTHER, BIG],
    ['greaterthan', '9007199254740992', '9007199254740993', '9007199254740992'],
    ['lessthan', '9007199254740993', '9007199254740992', '9007199254740993'],
    ['in', `[1,${BIG}]`, BIG, OTHER],
    ['equals', '21', '21.0', '21.5'],
    ['equals', `{"x":[${BIG}]}`, `{"x":[${BIG}]}`, `{"x":[${OTHER}]}`],
    ['equals', '"{{ trigger.body.same }}"', BIG, OTHER],
  ])('criteria: %s %s', async (type, pattern, matching, other) => {
    const name = `criteria-${type}-${Buffer.from(pattern).toString('hex').slice(0, 12)}`
    const rule = await makeRule(name, `{"trigger.body.id":{"type":"${type}","pattern":${pattern}}}`, noop)
    expect(rule).toContain(`"pattern":${pattern}`)
    const ran = async (id: string): Promise<number> =>
      (await post(name, `{"id":${id},"same":${BIG}}`)).executions.length
    expect([await ran(matching), await ran(other)]).toEqual([1, 0])
  })

  it('the result of an action reaches the rules on executions and the general stream', async () => {
    answered = DOCUMENT
    const events = await openEvents(`${server.urls.stream}/v1/stream?events=svc.execution__update`)
    const { port } = web.address() as AddressInfo // it listens on a port
    const { id, text } = await runText('core.http', `{"url":"http://127.0.0.1:${port}/"}`)
    expect(text).toContain(`"body":${DOCUMENT}`)
    expect(await send('GET', `/executions/${id}/result`)).toContain(`"body":${DOCUMENT}`)
    const pretty = await send('GET', `/executions/${id}/result?pretty_format=true`)
    expect(pretty).toContain(`"b": ${BIG},\n    "a": [\n      21.0,\n      1.10,`)
    await waitFor('the event', () => events.raw().includes(`"body":${DOCUMENT}`))
    events.close()
  })
})

describe('35 other ways in', () => {
  it('an answer to an inquiry', async () => {
    const { id } = await runText(
      'core.ask',
      '{"schema":{"type":"object","properties":{"n":{"type":"integer","minimum":9007199254740993}}}}',
    )
    const answer = (n: string): Promise<string> =>
      send('PUT', `/inquiries/${id}`, `{"id":"${id}","response":{"n":${n}}}`)
    expect(await answer('9007199254740992')).toContain(
      'n: 9007199254740992 is less than the minimum of 9007199254740993',
    )
    await answer(BIG)
    expect(await send('GET', `/executions/${id}`)).toContain(`"response":{"n":${BIG}}`)
  })

  it('the schema and defaults of an action, in JSON', async () => {
    const parameters = `{"n":{"type":"integer","enum":[${BIG},9007199254740993],"default":${BIG}},"x":{"type":"number","default":21.0}}`
    const made = await send(
      'POST',
      '/actions',
      `{"name":"numbers","pack":"default","runner_type":"noop","entry_point":"","parameters":${parameters}}`,
    )
    expect(made).toContain(`"parameters":${parameters}`)
    expect((await runText('default.numbers', '{"n":9007199254740993}')).text).toContain('"n":9007199254740993')
    expect(
      await send('POST', '/executions', '{"action":"default.numbers","parameters":{"n":9007199254740992}}'),
    ).toContain('n: 9007199254740992 is not one of [820982911946154508, 9007199254740993]')
  })

  it('the command line: pairs, JSON, files; and its output', async () => {
    const ran = await runCli(['run', 'core.local', 'cmd=true', `env=${DOCUMENT}`, '--json'], env())
    const { id } = JSON.parse(ran.stdout) as { id: string }
    expect(await send('GET', `/executions/${id}`)).toContain(`"env":${DOCUMENT}`)
    for (const form of ['--json', '--yaml']) {
      const { stdout } = await runCli(['execution', 'get', id, form], env())
      expect(stdout).toMatch(/b"?: 820982911946154508/)
      expect(stdout).toContain('0.1000000000000000055511151231257827')
      expect(stdout).toMatch(/(- | {2})21\.0/)
    }
    writeFileSync(join(files.path, 'keys.yaml'), `- name: big\n  value: {id: ${BIG}, price: 21.0}\n`)
    await runCli(['key', 'load', '--convert', join(files.path, 'keys.yaml')], env())
    expect(await send('GET', '/keys/big')).toContain(`{\\"id\\":${BIG},\\"price\\":21.0}`)
    expect(
      (await runText('core.local', '{"cmd":"echo {{ (svckv.system.big | from_json_string).id }}"}')).text,
    ).toContain(`"stdout":"${BIG}"`)
  })
})

it(`35 random documents come back as they were (SVC_TEST_SEED=${seed})`, async () => {
  const random = createRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T // below its length
  const digits = (most: number): string =>
    Array.from({ length: 1 + random.below(most) }, () => random.below(10)).join('')
  const number = (): string =>
    pick(['', '-']) +
    pick(['0', `${1 + random.below(9)}${digits(30)}`]) +
    pick(['', `.${digits(25)}`]) +
    pick(['', '', `e${digits(1)}`])
  const make = (depth: number): string => {
    if (depth === 0 || random.below(3) === 0) return pick([number(), number(), '"x"', 'null', 'false'])
    const items = Array.from({ length: random.below(4) }, () => make(depth - 1))
    if (random.below(2) === 0) return `[${items.join(',')}]`
    const keys = [...new Set(items.map(() => pick(['a', 'b', '1', '2', '10', 'é', '\\n'])))]
    return `{${keys.map((key, index) => `"${key}":${items[index]}`).join(',')}}`
  }
  await makeRule('random', '{}', '{"ref":"core.noop","parameters":{}}')
  await makeRule(
    'random-through',
    '{}',
    '{"ref":"core.local","parameters":{"cmd":"true","env":{"D":"{{ trigger.body.d }}"}}}',
  )
  for (let n = 0; n < 15; n++) {
    const json = `{"d":[${make(3)}]}`
    const through = await post('random-through', json)
    expect(await send('GET', `/executions/${through.executions[0]?.id}`)).toContain(`"D":${json.slice(5, -1)}`)
    const { trigger_instances } = await post('random', json)
    expect(await send('GET', `/triggerinstances/${trigger_instances[0]?.id}`)).toContain(`"body":${json}`)
  }
})
