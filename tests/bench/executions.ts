/** Rows about running executions. */
import { median, ms, perSecond, quantile, times, type Row } from './report.ts'
import { bareSpawn, webhook } from './references.ts'
import { connect, runCommand, startBenchServer, type Client, type Started } from './server.ts'

const ROUNDS = 3

/** POST answered → final record read, one at a time. */
export async function oneAtATime(): Promise<Row[]> {
  const server = await startBenchServer()
  const client = await connect(server.port)
  try {
    for (let i = 0; i < 100; i++) await runCommand(client, 'echo hi')
    const ours: number[] = []
    const reference: number[] = []
    // In turns, because the machine's speed drifts.
    for (let round = 0; round < ROUNDS; round++) {
      reference.push(...(await bareSpawn(300, 1)).latencies)
      for (let i = 0; i < 300; i++) ours.push(await answeredToFinal(client))
    }
    const [p50, p99, bare] = [median(ours), quantile(ours, 0.99), median(reference)]
    return [
      {
        work: 'core.local echo, POST answered → final record read, 1 at once: p50',
        ours: ms(p50),
        reference: `bare spawn ${ms(bare)}`,
        budget: `≤ 1.5 × (is ${times(p50 / bare)})`,
        isMet: p50 <= 1.5 * bare,
      },
      {
        work: 'the same: p99',
        ours: ms(p99),
        reference: `bare spawn ${ms(quantile(reference, 0.99))}`,
        budget: '≤ 10 ms',
        isMet: p99 <= 10,
      },
    ]
  } finally {
    client.close()
    await server.stop()
  }
}

async function answeredToFinal(client: Client): Promise<number> {
  const { id } = await client.call<Started>('POST', '/v1/executions', {
    action: 'core.local',
    parameters: { cmd: 'echo hi' },
  })
  const at = performance.now()
  await client.ended(id)
  await client.call('GET', `/v1/executions/${id}`)
  return performance.now() - at
}

interface Sustained {
  rate: number
  bad: number
}

async function sustained(client: Client, count: number, atOnce: number): Promise<Sustained> {
  let left = count
  let bad = 0
  const started = performance.now()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) {
        if ((await runCommand(client, 'echo hi')).status !== 'succeeded') bad += 1
      }
    }),
  )
  return { rate: count / ((performance.now() - started) / 1000), bad }
}

/** Full durable history, 16 at once; the same with 500 MB of live data in the server. */
export async function throughput(): Promise<Row[]> {
  const [small, large] = [await startBenchServer(), await startBenchServer({ ballastMb: 500 })]
  const [client, largeClient] = [await connect(small.port), await connect(large.port)]
  try {
    await sustained(client, 300, 16)
    await sustained(largeClient, 300, 16)
    const bare: number[] = []
    const hooks: number[] = []
    const ours: Sustained[] = []
    const loaded: Sustained[] = []
    for (let round = 0; round < ROUNDS; round++) {
      bare.push((await bareSpawn(1000, 16)).rate)
      ours.push(await sustained(client, 1500, 16))
      loaded.push(await sustained(largeClient, 1500, 16))
      const hook = await webhook(1000, 16)
      if (hook !== undefined) hooks.push(hook.rate)
    }
    const [rate, bareRate] = [median(ours.map((one) => one.rate)), median(bare)]
    const loadedRate = median(loaded.map((one) => one.rate))
    const bad = [...ours, ...loaded].reduce((sum, one) => sum + one.bad, 0)
    const rows: Row[] = [
      {
        work: 'executions with full durable history, 16 at once',
        ours: `${perSecond(rate)}, ${bad} spurious failures`,
        reference: `bare spawn ${perSecond(bareRate)}`,
        budget: `≥ 1.0 × (is ${times(rate / bareRate)})`,
        isMet: rate >= bareRate && bad === 0,
      },
      {
        work: 'the same with 500 MB of live data in the server',
        ours: perSecond(loadedRate),
        reference: `row above ${perSecond(rate)}`,
        budget: `≥ 0.9 × (is ${times(loadedRate / rate)})`,
        isMet: loadedRate >= 0.9 * rate,
      },
    ]
    if (hooks.length > 0) {
      const hookRate = median(hooks)
      rows.push({
        work: 'next goal: against a webhook server that keeps nothing',
        ours: perSecond(rate),
        reference: `webhook ${perSecond(hookRate)}`,
        budget: `≥ 0.6 × (is ${times(rate / hookRate)})`,
        isMet: rate >= 0.6 * hookRate,
        reason:
          'Four units in two commits and two changes of thread an execution; half of the processor time is ours, a third the child’s.',
      })
    }
    return rows
  } finally {
    client.close()
    largeClient.close()
    await Promise.all([small.stop(), large.stop()])
  }
}
