/** Rows about events: accepting webhooks, and matching rules. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { median, ms, perSecond, quantile, times, type Row } from './report.ts'
import { connect, startBenchServer, type Client } from './server.ts'

const ROUNDS = 3
/** About a kilobyte. */
const body = { kind: 'push', id: 17, text: 'x'.repeat(950) }

async function bareServer(): Promise<{ port: number; stop(): void }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'bare-http.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the reference ended')))
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
  })
  return { port, stop: () => child.kill() }
}

interface Posted {
  /** Per second. */
  rate: number
  /** Milliseconds. */
  latencies: number[]
}

/** @param hookOf path of the n-th request */
async function post(client: Client, count: number, atOnce: number, hookOf: (n: number) => string): Promise<Posted> {
  const latencies: number[] = []
  let next = 0
  const started = performance.now()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) {
        const path = hookOf(next++)
        const at = performance.now()
        const answer = await client.call('POST', path, body)
        latencies.push(performance.now() - at)
        if (answer['id'] !== body.id) throw new Error(`not accepted: ${JSON.stringify(answer)}`)
      }
    }),
  )
  return { rate: count / ((performance.now() - started) / 1000), latencies }
}

function rule(n: number, hook: string): object {
  return {
    name: `rule${n}`,
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: hook } },
    criteria: {
      'trigger.body.kind': { type: 'equals', pattern: 'push' },
      'trigger.body.id': { type: 'gt', pattern: 1000 + n },
    },
    action: { ref: 'core.noop' },
  }
}

/** `perHook` rules for each of so many hooks, none of which matches. */
async function createRules(client: Client, hooks: number, perHook: number): Promise<void> {
  let n = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (n < hooks * perHook) {
        const mine = n++
        const made = await client.call('POST', '/v1/rules', rule(mine, `hook${mine % hooks}`))
        if (made['id'] === undefined) throw new Error(`no rule: ${JSON.stringify(made)}`)
      }
    }),
  )
}

/** POST → 202: durable, with its trigger instance, and looked at by a rule. */
export async function webhooks(): Promise<Row[]> {
  const [server, bare] = [await startBenchServer(), await bareServer()]
  const [ours, reference] = [await connect(server.port, false), await connect(bare.port, false)]
  try {
    await createRules(ours, 1, 1)
    const path = (): string => '/v1/webhooks/hook0'
    const taken = { one: [] as number[], bareOne: [] as number[], rate: [] as number[], bareRate: [] as number[] }
    await post(ours, 500, 1, path)
    await post(reference, 500, 1, path)
    for (let round = 0; round < ROUNDS; round++) {
      taken.bareOne.push(...(await post(reference, 500, 1, path)).latencies)
      taken.one.push(...(await post(ours, 500, 1, path)).latencies)
      taken.bareRate.push((await post(reference, 5000, 50, path)).rate)
      taken.rate.push((await post(ours, 5000, 50, path)).rate)
      await processed(ours)
    }
    const [p50, rate, bareRate] = [median(taken.one), median(taken.rate), median(taken.bareRate)]
    return [
      {
        work: 'webhook POST → 202, durable, with its trigger instance, 1 at once: p50',
        ours: `${ms(p50)} (p99 ${ms(quantile(taken.one, 0.99))})`,
        reference: `bare server that keeps nothing ${ms(median(taken.bareOne))}`,
        budget: '≤ 3 ms',
        isMet: p50 <= 3,
      },
      {
        work: 'the same, 50 at once',
        ours: perSecond(rate),
        reference: `bare server that keeps nothing ${perSecond(bareRate)} (is ${times(rate / bareRate)})`,
        budget: '≥ 2500/s',
        isMet: rate >= 2500,
      },
    ]
  } finally {
    ours.close()
    reference.close()
    bare.stop()
    await server.stop()
  }
}

/** Waits until no trigger instance is waiting for its rules. */
async function processed(client: Client): Promise<void> {
  for (;;) {
    const pending = await client.call<unknown[]>('GET', '/v1/triggerinstances?status=pending&limit=1')
    if (pending.length === 0) return
  }
}

const EVENTS = 3000
const RULES_A_TRIGGER = 10
const HOOKS = 1000

/** Events until all their rules are looked at: ten rules of one trigger, against as many of each of a thousand triggers. */
export async function ruleMatching(): Promise<Row[]> {
  const [few, many] = [await startBenchServer(), await startBenchServer()]
  const [fewClient, manyClient] = [await connect(few.port, false), await connect(many.port, false)]
  try {
    await createRules(fewClient, 1, RULES_A_TRIGGER)
    await createRules(manyClient, HOOKS, RULES_A_TRIGGER)
    const measure = async (client: Client, hooks: number): Promise<number> => {
      const at = performance.now()
      await post(client, EVENTS, 16, (n) => `/v1/webhooks/hook${n % hooks}`)
      await processed(client)
      return (performance.now() - at) / EVENTS
    }
    await measure(fewClient, 1)
    await measure(manyClient, HOOKS)
    const taken = { few: [] as number[], many: [] as number[] }
    for (let round = 0; round < ROUNDS; round++) {
      taken.few.push(await measure(fewClient, 1))
      taken.many.push(await measure(manyClient, HOOKS))
    }
    const [ours, reference] = [median(taken.many), median(taken.few)]
    return [
      {
        work: 'rule matching, 10,000 rules on 1,000 triggers: cost of an event, POST included',
        ours: ms(ours),
        reference: `10 rules on 1 trigger ${ms(reference)}`,
        budget: `≤ 2 × (is ${times(ours / reference)})`,
        isMet: ours <= 2 * reference,
      },
    ]
  } finally {
    fewClient.close()
    manyClient.close()
    await Promise.all([few.stop(), many.stop()])
  }
}
