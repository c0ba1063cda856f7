/** Rows about timers: what many of them cost at rest, and how soon what is due at once has started. */
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { median, type Row } from './report.ts'
import { connect, startBenchServer, type BenchServer, type Client } from './server.ts'

const FEW = 10
const MANY = 10_000
const DUE_AT_ONCE = 1000
const REST_SECONDS = 20
const ROUNDS = 3

/** Rules with a timer each. @param parametersOf of the n-th `core.svc.CronTimer` */
async function createTimers(client: Client, count: number, parametersOf: (n: number) => object): Promise<void> {
  let n = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (n < count) {
        const mine = n++
        const trigger = { type: 'core.svc.CronTimer', parameters: parametersOf(mine) }
        const rule = { name: `timed${mine}`, enabled: true, trigger, action: { ref: 'core.noop' } }
        const made = await client.call('POST', '/v1/rules', rule)
        if (made['id'] === undefined) throw new Error(`no rule: ${JSON.stringify(made)}`)
      }
    }),
  )
}

/** Milliseconds of processor time, in steps of ten. */
function processorMs({ pid }: BenchServer): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** A second of the year on which no timer of the first row fires meanwhile. */
function rareTime(n: number): string {
  const month = ((new Date().getUTCMonth() + 6) % 12) + 1
  return `${n % 60} ${Math.floor(n / 60) % 60} ${Math.floor(n / 3600)} 1 ${month} *`
}

export async function restingTimers(): Promise<Row[]> {
  const [few, many] = [await startBenchServer(), await startBenchServer()]
  const clients = [await connect(few.port, false), await connect(many.port, false)] as const
  try {
    const parametersOf = (n: number): object => ({ cron: rareTime(n), timezone: 'UTC' })
    await createTimers(clients[0], FEW, parametersOf)
    await createTimers(clients[1], MANY, parametersOf)
    // Checkpoints, and what else follows the making of rules.
    await wait(5_000)
    const spent: [few: number, many: number][] = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = [processorMs(few), processorMs(many)] as const
      await wait(REST_SECONDS * 1000)
      spent.push([processorMs(few) - before[0], processorMs(many) - before[1]])
    }
    const [ofFew, ofMany] = [median(spent.map(([a]) => a)), median(spent.map(([, b]) => b))]
    return [
      {
        work: `${MANY} timers at rest: processor time in ${REST_SECONDS} s`,
        ours: `${ofMany} ms`,
        reference: `${FEW} timers ${ofFew} ms`,
        budget: '≤ 1.2 ×, or 20 ms more',
        isMet: ofMany <= Math.max(ofFew * 1.2, ofFew + 20),
      },
    ]
  } finally {
    for (const client of clients) client.close()
    await Promise.all([few.stop(), many.stop()])
  }
}

interface Execution {
  log: { status: string; timestamp: string }[]
}

export async function timersDueAtOnce(): Promise<Row[]> {
  const server = await startBenchServer()
  const client = await connect(server.port, false)
  try {
    const due = new Date(Math.ceil(Date.now() / 1000) * 1000 + 30_000)
    const cron = `${due.getUTCSeconds()} ${due.getUTCMinutes()} ${due.getUTCHours()} ${due.getUTCDate()} * *`
    // Different ends make different timers.
    const end = (n: number): string => new Date(due.getTime() + 3_600_000 + n * 1000).toISOString()
    await createTimers(client, DUE_AT_ONCE, (n) => ({ cron, timezone: 'UTC', end: end(n) }))
    if (Date.now() > due.getTime() - 2000) throw new Error('the machine is too slow: the rules took 28 s')
    await wait(due.getTime() - Date.now() - 500)
    await server.loopDelay()
    const before = processorMs(server)
    const path = `/v1/executions?limit=100&include_attributes=log,status&action=core.noop&status=succeeded`
    for (;;) {
      await wait(250)
      const done = await client.call<unknown>('GET', `${path}&offset=${DUE_AT_ONCE - 1}`)
      if (Array.isArray(done) && done.length > 0) break
    }
    const spent = processorMs(server) - before
    const { max } = await server.loopDelay()
    const late: number[] = []
    for (let offset = 0; offset < DUE_AT_ONCE; offset += 100) {
      for (const { log } of await client.call<Execution[]>('GET', `${path}&offset=${offset}`)) {
        const began = log.find(({ status }) => status === 'running')?.timestamp ?? ''
        late.push(Date.parse(began) - due.getTime())
      }
    }
    const last = Math.max(...late)
    return [
      {
        work: `${DUE_AT_ONCE} timers due in one second: the last execution has started after`,
        ours: `${(last / 1000).toFixed(2)} s`,
        reference: `processor time of the server ${(spent / 1000).toFixed(2)} s`,
        budget: '≤ 2 s',
        isMet: late.length === DUE_AT_ONCE && last <= 2000,
        note: `${late.length} executions of core.noop; half of them within ${(median(late) / 1000).toFixed(2)} s; the event loop waited at most ${max.toFixed(0)} ms`,
      },
    ]
  } finally {
    client.close()
    await server.stop()
  }
}
