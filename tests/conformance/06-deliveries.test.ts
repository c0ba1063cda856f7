/** What is sent twice causes nothing twice (`Idempotency-Key`, ids of deliveries), and senders that wait (`Prefer`). */
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { type Answer, type TestApp, startServer } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf, type ErrorAnswer } from './support.ts'

interface Outcome {
  trigger_instances: { id: string; status: string }[]
  executions: {
    id: string
    status: string
    action: string
    rule: string
    result?: { stdout: string }
    result_size?: number
  }[]
}

const folder = makeFolder()
let server: TestApp
let token: Record<string, string>
let other: Record<string, string>
const settings = { 'auth.enable': 'True', 'actionrunner.shutdown_grace_seconds': '0' }

async function start(): Promise<void> {
  server = await createTestApp({ basePath: folder.path, settings })
  token = await signIn(server, 'admin', firstPassword(folder.path))
}

beforeAll(async () => {
  await start()
  const key = await server.call<{ key: string }>('POST', '/v1/apikeys', { user: 'other' }, token)
  other = { 'Svc-Api-Key': key.body.key }
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

let made = 0
const fresh = (): string => `delivery${++made}`

async function makeHook(cmd = 'true', parameters: Record<string, unknown> = {}, more: object = {}): Promise<string> {
  const url = fresh()
  const answer = await server.call(
    'POST',
    '/v1/rules',
    {
      name: url,
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url, ...parameters } },
      action: { ref: 'core.local', parameters: { cmd } },
      ...more,
    },
    token,
  )
  if (answer.status !== 201) throw new Error(answer.text)
  return url
}

/** A command that goes on until it is let go. */
function held(): { cmd: string; flag: string; letGo: () => void } {
  const flag = join(folder.path, fresh())
  return { flag, cmd: `while [ ! -e ${flag} ]; do sleep 0.02; done; echo done`, letGo: () => writeFileSync(flag, '') }
}

const post = <T = ErrorAnswer>(
  hook: string,
  body: unknown,
  headers: Record<string, string> = {},
  caller = token,
): Promise<Answer<T>> => server.call<T>('POST', `/v1/webhooks/${hook}`, body, { ...caller, ...headers })

const idsOf = ({ headers }: Answer<unknown>): string | null => headers.get('svc-trigger-instance-id')
const isReplay = ({ headers }: Answer<unknown>): boolean => headers.get('idempotent-replayed') === 'true'

const instancesOf = (hook: string): number =>
  rowsOf<{ n: number }>(
    server,
    `select count(*) as n from trigger_instances i join triggers t on t.id = i.trigger_id
     where json_extract(t.record, '$.parameters.url') = ?`,
    hook,
  )[0]?.n ?? -1

describe('Idempotency-Key', () => {
  it('a repetition causes nothing, and is answered as the first time', async () => {
    const hook = await makeHook()
    const first = await post(hook, { a: 1 }, { 'Idempotency-Key': 'k' })
    const again = await post(hook, { a: 1 }, { 'Idempotency-Key': 'k' })
    expect([first.status, isReplay(first), again.status, isReplay(again)]).toEqual([202, false, 202, true])
    expect(again.text).toBe(first.text)
    for (const name of ['svc-trigger-instance-id', 'svc-trace-id', 'location']) {
      expect(again.headers.get(name)).toBe(first.headers.get(name))
    }
    expect(instancesOf(hook)).toBe(1)
  })

  it('other keys, an empty key and none are no repetition', async () => {
    const hook = await makeHook()
    for (const headers of [
      { 'Idempotency-Key': 'a' },
      { 'Idempotency-Key': 'b' },
      { 'Idempotency-Key': ' ' },
      { 'Idempotency-Key': '' },
      {},
      {},
    ]) {
      expect(isReplay(await post(hook, {}, headers))).toBe(false)
    }
    expect(instancesOf(hook)).toBe(6)
  })

  it('the same key with another body → 409, which names what came of the first', async () => {
    const hook = await makeHook()
    const first = await post(hook, { a: 1 }, { 'Idempotency-Key': 'k' })
    for (const [body, headers] of [
      [{ a: 2 }, {}],
      ['{"a": 1}', {}],
      ['{"a":1}', { 'Content-Type': 'text/plain' }],
    ] as const) {
      const answer = await post<ErrorAnswer & { 'conflict-id': string }>(hook, body, {
        'Idempotency-Key': 'k',
        ...headers,
      })
      expect([answer.status, answer.body.code, answer.body['conflict-id']]).toEqual([
        409,
        'IDEMPOTENCY_KEY_REUSED',
        idsOf(first),
      ])
    }
    expect(instancesOf(hook)).toBe(1)
  })

  it('keys are of one hook and one caller', async () => {
    const [hook, another] = [await makeHook(), await makeHook()]
    const key = { 'Idempotency-Key': 'shared' }
    const answers = [await post(hook, {}, key), await post(another, {}, key), await post(hook, { b: 1 }, key, other)]
    expect(answers.map((answer) => [answer.status, isReplay(answer)])).toEqual([
      [202, false],
      [202, false],
      [202, false],
    ])
  })

  it('a request that was refused uses up no key', async () => {
    const hook = await makeHook()
    const key = { 'Idempotency-Key': 'k' }
    expect((await post(hook, '5', key)).status).toBe(400)
    expect((await post(hook, '{', key)).status).toBe(400)
    const answer = await post(hook, {}, key)
    expect([answer.status, isReplay(answer)]).toEqual([202, false])
  })

  it('of many at once exactly one counts, and all are answered alike', async () => {
    const hook = await makeHook()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => post(hook, { a: 1 }, { 'Idempotency-Key': 'k' })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
    expect(new Set(answers.map(idsOf)).size).toBe(1)
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
    expect(instancesOf(hook)).toBe(1)
  })

  it('on the generic hook as well', async () => {
    const type = await server.call<{ ref: string }>('POST', '/v1/triggertypes', { name: fresh() }, token)
    const body = { trigger: type.body.ref, payload: { a: 1 }, more: 'ignored' }
    const [first, again] = [
      await post('svc', body, { 'Idempotency-Key': 'k' }),
      await post('svc', body, { 'Idempotency-Key': 'k' }),
    ]
    expect([again.status, isReplay(again), again.text]).toEqual([202, true, first.text])
    expect(rowsOf(server, 'select id from trigger_instances where trigger_type = ?', type.body.ref)).toHaveLength(1)
  })

  it('with several triggers on the hook all of them are known', async () => {
    const hook = await makeHook()
    const rule = {
      name: fresh(),
      trigger: { type: 'core.svc.webhook', parameters: { url: `/${hook}` } },
      action: { ref: 'core.noop' },
    }
    await server.call('POST', '/v1/rules', rule, token)
    const [first, again] = [
      await post(hook, {}, { 'Idempotency-Key': 'k' }),
      await post(hook, {}, { 'Idempotency-Key': 'k' }),
    ]
    expect(idsOf(first)?.split(',')).toHaveLength(2)
    expect([isReplay(again), idsOf(again)]).toEqual([true, idsOf(first)])
  })

  it('survives a restart, be it a hard one', async () => {
    const hook = await makeHook()
    await server.stop()
    const killed = await startServer({ basePath: folder.path, settings })
    server = killed
    const first = await post(hook, { a: 1 }, { 'Idempotency-Key': 'k' })
    await killed.stop('SIGKILL')
    await start()
    const again = await post(hook, { a: 1 }, { 'Idempotency-Key': 'k' })
    expect([again.status, isReplay(again), idsOf(again)]).toEqual([202, true, idsOf(first)])
    expect(instancesOf(hook)).toBe(1)
  })

  it('is known for 24 hours, and then forgotten', async () => {
    const hook = await makeHook()
    const first = await post(hook, {}, { 'Idempotency-Key': 'k' })
    const age = (hours: number): void => {
      const database = new Sqlite(join(server.basePath, 'svc.db'))
      try {
        const at = new Date(Date.now() - hours * 3_600_000).toISOString().replace('Z', '000Z')
        database.prepare('update webhook_deliveries set created_at = ? where hook = ?').run(at, hook)
      } finally {
        database.close()
      }
    }
    const rows = (): number => rowsOf(server, 'select 1 from webhook_deliveries where hook = ?', hook).length
    age(23.9)
    expect(isReplay(await post(hook, {}, { 'Idempotency-Key': 'k' }))).toBe(true)
    age(24.1)
    const later = await post(hook, { another: 'body' }, { 'Idempotency-Key': 'k' })
    expect([later.status, isReplay(later), idsOf(later) === idsOf(first)]).toEqual([202, false, false])
    expect(rows()).toBe(1)
    // Old ones go as new ones come.
    for (let i = 0; i < 6; i += 1) await post(hook, {}, { 'Idempotency-Key': `old ${i}` })
    age(25)
    for (let i = 0; i < 3; i += 1) await post(hook, {}, { 'Idempotency-Key': `new ${i}` })
    expect(rows()).toBe(3)
  })

  it('is not kept itself', async () => {
    const hook = await makeHook()
    await post(hook, {}, { 'Idempotency-Key': 'canary-of-the-key' })
    expect(JSON.stringify(rowsOf(server, 'select * from webhook_deliveries'))).not.toContain('canary-of-the-key')
  })
})

describe('a delivery that is repeated', () => {
  const byId = { delivery_id_header: 'X-Delivery' }
  const deliver = (hook: string, id = '1') => post(hook, { a: 1 }, { 'X-Delivery': id })
  const ended = async (answer: Answer<unknown>): Promise<void> => {
    const [id = ''] = idsOf(answer)?.split(',') ?? []
    await waitFor('the executions to end', () => {
      const open = `select 1 from executions where trigger_instance = ? and end_timestamp is null`
      const [instance] = rowsOf<{ status: string }>(server, 'select status from trigger_instances where id = ?', id)
      return instance?.status === 'processed' && rowsOf(server, open, id).length === 0
    })
  }
  interface Rule {
    id: string
    action: { ref: string; parameters: object }
  }
  const ruleOf = async (hook: string) =>
    (await server.call<Rule>('GET', `/v1/rules/default.${hook}`, undefined, token)).body
  const change = async (hook: string, more: object): Promise<void> => {
    const rule = await ruleOf(hook)
    expect((await server.call('PUT', `/v1/rules/${rule.id}`, { ...rule, ...more }, token)).status).toBe(200)
  }
  const explain = async (answer: Answer<unknown>) =>
    (
      await server.call<{ message: string; repetitions?: { count: number } }>(
        'GET',
        `/v1/triggerinstances/${idsOf(answer) ?? ''}/explain`,
        undefined,
        token,
      )
    ).body

  it('runs if the first matched nothing, and once only', async () => {
    const hook = await makeHook('true', byId, { criteria: { 'trigger.body.a': { type: 'eq', pattern: 2 } } })
    const first = await deliver(hook)
    await ended(first)
    const second = await deliver(hook)
    expect([isReplay(first), isReplay(second), instancesOf(hook)]).toEqual([false, false, 2])
    await change(hook, { criteria: {} })
    const third = await deliver(hook)
    await ended(third)
    const fourth = await deliver(hook)
    expect([isReplay(third), isReplay(fourth), instancesOf(hook)]).toEqual([false, true, 3])
    expect(idsOf(fourth)).toBe(idsOf(third))
  })

  it('runs if what the first started has failed, or could not start', async () => {
    for (const more of [{}, { action: { ref: 'core.nothing_like_it' } }]) {
      const hook = await makeHook('exit 3', byId, more)
      const first = await deliver(hook)
      await ended(first)
      expect(isReplay(await deliver(hook))).toBe(false)
    }
  })

  it('runs if the rules have changed; a change to what was is one as well', async () => {
    const hook = await makeHook('true', byId)
    await ended(await deliver(hook))
    expect(isReplay(await deliver(hook))).toBe(true)
    await change(hook, { enabled: false })
    await change(hook, { enabled: true })
    const again = await deliver(hook)
    expect(isReplay(again)).toBe(false)
    await ended(again)
    expect([isReplay(await deliver(hook)), instancesOf(hook)]).toEqual([true, 2])
  })

  it('is ignored while the first is at work, and of many at once one runs', async () => {
    const { cmd, letGo } = held()
    const hook = await makeHook(`${cmd}; exit 3`, byId)
    const first = await deliver(hook)
    expect(isReplay(await deliver(hook))).toBe(true)
    letGo()
    await ended(first)
    const answers = await Promise.all(Array.from({ length: 8 }, () => deliver(hook)))
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
    expect(instancesOf(hook)).toBe(2)
  })

  /** A hook whose action is run again by a policy. */
  async function makeRetried(cmd: string, policy: object): Promise<string> {
    const name = fresh()
    const action = { name, pack: 'default', runner_type: 'local-shell-cmd', entry_point: '', parameters: {} }
    const retry = {
      name,
      pack: 'default',
      enabled: true,
      resource_ref: `default.${name}`,
      policy_type: 'action.retry',
      parameters: { retry_on: 'failure', max_retry_count: 1, ...policy },
    }
    for (const [path, body] of [
      ['actions', action],
      ['policies', retry],
    ] as const) {
      const answer = await server.call('POST', `/v1/${path}`, body, token)
      if (answer.status !== 201) throw new Error(answer.text)
    }
    return makeHook('', byId, { action: { ref: `default.${name}`, parameters: { cmd } } })
  }
  const statusesOf = (answer: Answer<unknown>): string[] =>
    rowsOf<{ status: string }>(
      server,
      'select status from executions where trigger_instance = ? order by id',
      idsOf(answer) ?? '',
    ).map(({ status }) => status)

  it('is ignored while a retry of the first waits for its time, also if the rules have changed', async () => {
    const hook = await makeRetried('exit 3', { delay: 120 })
    const first = await deliver(hook)
    await waitFor('the retry to wait', () => statusesOf(first).join() === 'failed,delayed')
    expect(isReplay(await deliver(hook))).toBe(true)
    await change(hook, { description: 'changed' })
    expect([isReplay(await deliver(hook)), instancesOf(hook)]).toEqual([true, 1])
    const { message, repetitions } = await explain(first)
    expect([repetitions?.count, message]).toEqual([2, expect.stringContaining('svc ignored that')])
  })

  it('is ignored while a retry of the first runs, and runs once the last one has failed', async () => {
    const { cmd, flag, letGo } = held()
    const hook = await makeRetried(`if mkdir ${flag}-first; then exit 3; fi; ${cmd}; exit 3`, {})
    const first = await deliver(hook)
    await waitFor('the retry', () => statusesOf(first).join() === 'failed,running')
    expect(isReplay(await deliver(hook))).toBe(true)
    letGo()
    await ended(first)
    expect(statusesOf(first)).toEqual(['failed', 'failed'])
    expect(isReplay(await deliver(hook))).toBe(false)
  })

  it('is ignored if a retry of the first has succeeded', async () => {
    const { flag } = held()
    const hook = await makeRetried(`if mkdir ${flag}-first; then exit 3; fi`, {})
    const first = await deliver(hook)
    await waitFor('the retry', () => statusesOf(first).join() === 'failed,succeeded')
    expect([isReplay(await deliver(hook)), instancesOf(hook)]).toEqual([true, 1])
  })

  it('an Idempotency-Key counts whatever came of the first', async () => {
    const hook = await makeHook('exit 3', { deduplicate: false })
    const key = { 'Idempotency-Key': 'k' }
    const first = await post(hook, {}, key)
    await ended(first)
    await change(hook, { description: 'changed' })
    expect([isReplay(await post(hook, {}, key)), instancesOf(hook)]).toEqual([true, 1])
  })

  it('deduplicate: false runs each of them, beside triggers that do not', async () => {
    const hook = await makeHook('true', { ...byId, deduplicate: false })
    expect([isReplay(await deliver(hook)), isReplay(await deliver(hook)), instancesOf(hook)]).toEqual([false, false, 2])
    const twice = await server.call(
      'POST',
      '/v1/rules',
      {
        name: `${hook}_once`,
        enabled: true,
        trigger: { type: 'core.svc.webhook', parameters: { url: hook, ...byId } },
        action: { ref: 'core.noop' },
      },
      token,
    )
    expect(twice.status).toBe(201)
    const first = await deliver(hook, 'shared')
    expect(idsOf(first)?.split(',')).toHaveLength(2)
    await Promise.all(
      (idsOf(first)?.split(',') ?? []).map((id) =>
        ended({ headers: new Headers({ 'svc-trigger-instance-id': id }) } as Answer<unknown>),
      ),
    )
    const again = await deliver(hook, 'shared')
    expect([isReplay(again), idsOf(again)?.split(',').length, instancesOf(hook)]).toEqual([false, 1, 5])
  })

  it('the header that is named replaces that of the scheme', async () => {
    const signature = { scheme: 'github', secret: 's3' }
    const [named, usual] = [
      await makeHook('true', { signature, delivery_id_header: 'X-Nope' }),
      await makeHook('true', { signature }),
    ]
    const headers = {
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', 's3').update('{"a":1}').digest('hex')}`,
      'X-GitHub-Delivery': '72d3162e',
    }
    const replays = []
    for (const hook of [named, named, usual, usual]) replays.push(isReplay(await post(hook, { a: 1 }, headers)))
    expect(replays).toEqual([false, false, false, true])
  })

  it('leaves a record that explain tells, also after a restart, and that goes with the instance', async () => {
    const hook = await makeHook('true', byId)
    const first = await deliver(hook)
    await ended(first)
    expect((await explain(first)).repetitions).toBeUndefined()
    await deliver(hook)
    expect((await explain(first)).message).toMatch(
      /The sender repeated the delivery once, at 20\S+Z; svc ignored that\. Replay/,
    )
    await deliver(hook)
    await server.stop()
    await start()
    const { message, repetitions } = await explain(first)
    expect(message).toContain('repeated the delivery 2 times, last at ')
    expect(repetitions).toEqual({
      count: 2,
      first_timestamp: expect.any(String) as string,
      last_timestamp: expect.any(String) as string,
    })
  })
})

describe('delivery_id_header', () => {
  it('names the header that tells a delivery; another body makes no difference', async () => {
    const hook = await makeHook('true', { delivery_id_header: 'X-Delivery' })
    const first = await post(hook, { attempt: 1 }, { 'x-delivery': '7' })
    const again = await post(hook, { attempt: 2 }, { 'X-DELIVERY': '7' })
    const next = await post(hook, { attempt: 1 }, { 'x-delivery': '8' })
    expect([isReplay(first), isReplay(again), isReplay(next)]).toEqual([false, true, false])
    expect(again.body).toEqual({ attempt: 1 })
    expect(instancesOf(hook)).toBe(2)
  })

  fullOnly(it)('without the header nothing is known of it; Idempotency-Key counts then', async () => {
    const hook = await makeHook('true', { delivery_id_header: 'X-Delivery' })
    expect([isReplay(await post(hook, {})), isReplay(await post(hook, {}))]).toEqual([false, false])
    const key = { 'Idempotency-Key': 'k' }
    expect([isReplay(await post(hook, {}, key)), isReplay(await post(hook, {}, key))]).toEqual([false, true])
    const both = { ...key, 'X-Delivery': '1' }
    expect([isReplay(await post(hook, {}, both)), isReplay(await post(hook, {}, both))]).toEqual([false, true])
  })
})

describe('Prefer: wait', () => {
  it('200 with the instances and executions once they have finished', async () => {
    const hook = await makeHook('echo "{{ trigger.body.text }}"; exit {{ trigger.body.code }}')
    const answer = await post<Outcome>(hook, { text: 'out', code: 0 }, { Prefer: 'wait=20' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('preference-applied')).toBe('wait=20')
    expect(answer.body).toEqual({
      trigger_instances: [{ id: idsOf(answer), status: 'processed' }],
      executions: [
        {
          id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
          status: 'succeeded',
          action: 'core.local',
          rule: `default.${hook}`,
          result: expect.objectContaining({ stdout: 'out', return_code: 0 }) as object,
        },
      ],
    })
    const failed = await post<Outcome>(hook, { text: 'out', code: 3 }, { Prefer: 'wait=20' })
    expect([failed.status, failed.body.executions[0]?.status]).toEqual([200, 'failed'])
  })

  it('at once where there is nothing to wait for', async () => {
    const hook = await makeHook('true', {}, { criteria: { 'trigger.body.a': { type: 'equals', pattern: 'never' } } })
    const none = await post<Outcome>(hook, {}, { Prefer: 'wait=300' })
    expect([none.status, none.body.executions, none.body.trigger_instances[0]?.status]).toEqual([200, [], 'processed'])
    const disabled = await makeHook('true', {}, { enabled: false })
    const idle = await post<Outcome>(disabled, {}, { Prefer: 'wait=300' })
    expect([idle.status, idle.body.executions, idle.body.trigger_instances[0]?.status]).toEqual([200, [], 'processed'])
  })

  it('202 as usual when the time is over', async () => {
    const { cmd, letGo } = held()
    const hook = await makeHook(cmd)
    const startedAt = performance.now()
    const answer = await post(hook, { a: 1 }, { Prefer: 'wait=1' })
    const seconds = (performance.now() - startedAt) / 1000
    letGo()
    expect([answer.status, answer.body, answer.headers.get('preference-applied')]).toEqual([202, { a: 1 }, null])
    expect(seconds).toBeGreaterThanOrEqual(0.9)
  })

  it.each(
    variants(
      [
        'wait=0',
        'wait=x',
        'respond-async',
        'wait=',
        'wait=-1',
        'wait=1.5',
        'wait',
        'xwait=5',
        'return=minimal; wait=5',
      ],
      3,
    ),
  )('%j is no wait', async (prefer) => {
    const answer = await post(await makeHook(), {}, { Prefer: prefer })
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([202, null])
  })

  it.each(
    variants(
      [
        ['respond-async, wait=20', 'wait=20'],
        ['wait=999999999', 'wait=300'],
        ['WAIT=20', 'wait=20'],
        ['wait = "20"; foo=bar', 'wait=20'],
        ['wait=20, wait=1', 'wait=20'],
      ],
      2,
    ),
  )('%j is %s', async (prefer, applied) => {
    const hook = await makeHook()
    const answer = await post(hook, {}, { Prefer: prefer })
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([200, applied])
  })

  it('a repetition waits for what the first one has caused, finished or not', async () => {
    const { cmd, letGo } = held()
    const hook = await makeHook(cmd)
    const key = { 'Idempotency-Key': 'k' }
    expect((await post(hook, {}, key)).status).toBe(202)
    const waiting = post<Outcome>(hook, {}, { ...key, Prefer: 'wait=20' })
    letGo()
    const answer = await waiting
    expect([answer.status, isReplay(answer), answer.body.executions[0]?.result?.stdout]).toEqual([200, true, 'done'])
    const later = await post<Outcome>(hook, {}, { ...key, Prefer: 'wait=20' })
    expect([later.status, later.body]).toEqual([200, answer.body])
  })

  it('a long result is left where it is', async () => {
    const hook = await makeHook('head -c 2000000 /dev/zero | tr "\\0" x')
    const answer = await post<Outcome>(hook, {}, { Prefer: 'wait=20' })
    const [execution] = answer.body.executions
    expect([answer.status, execution?.status, execution?.result]).toEqual([200, 'succeeded', undefined])
    expect(execution?.result_size).toBeGreaterThan(2_000_000)
  })

  fullOnly(it)('many wait at once, each for its own', async () => {
    const hook = await makeHook('echo {{ trigger.body.n }}')
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => post<Outcome>(hook, { n }, { Prefer: 'wait=60' })),
    )
    expect(answers.map(({ status, body }) => [status, body.executions[0]?.result?.stdout])).toEqual(
      answers.map((_, n) => [200, String(n)]),
    )
  })

  fullOnly(it)('a sender that goes away is forgotten, and what it caused goes on', async () => {
    const { cmd, flag, letGo } = held()
    const hook = await makeHook(cmd)
    const statusOf = (): string | undefined =>
      rowsOf<{ status: string }>(server, 'select status from executions where instr(parameters, ?) > 0', flag)[0]
        ?.status
    const { hostname, port } = new URL(server.urls.api)
    const outgoing = request({
      hostname,
      port,
      method: 'POST',
      path: `/v1/webhooks/${hook}`,
      headers: { ...token, Prefer: 'wait=300', 'Content-Type': 'application/json' },
    })
    outgoing.on('error', () => undefined)
    outgoing.end('{}')
    await waitFor('the execution to run', () => statusOf() === 'running')
    outgoing.destroy()
    letGo()
    expect(await waitFor('its end', () => statusOf() === 'succeeded')).toBe(true)
  })

  fullOnly(it)('a server that stops lets nobody wait', async () => {
    const hook = await makeHook('sleep 100')
    const waiting = post(hook, { a: 1 }, { Prefer: 'wait=300' })
    await waitFor('the instance', () => instancesOf(hook) === 1)
    const stopped = server.stop()
    const answer = await waiting
    expect([answer.status, answer.body]).toEqual([202, { a: 1 }])
    await stopped
    await start()
  })
})
