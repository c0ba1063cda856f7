/** Rows about being watched: what metrics, log files and spans cost a request and an execution. */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { median, ms, times as timesAsLong, type Row } from './report.ts'
import { connect, runCommand, startBenchServer, type BenchServer, type Client } from './server.ts'

const ROUNDS = 10
const REQUESTS_A_ROUND = 300
const EXECUTIONS_A_ROUND = 30
const PATH = '/v1/actions/core.local'

const silent = ['--metrics-prometheus=False', '--log-level=CRITICAL']
const BUDGET = 1.25
/** As much as a verified credential may cost; each line is a write to standard error and one to the file. */
const LINES_BUDGET_MS = 0.2

/** The same work on servers that differ in what they tell of it, in turns. */
export async function beingWatched(): Promise<Row[]> {
  const statsd = createSocket('udp4')
  await new Promise<void>((resolve) => statsd.bind(0, '127.0.0.1', resolve))
  const collector = createServer((request, response) => {
    request.resume().once('end', () => response.end('{}'))
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  const { port } = collector.address() as AddressInfo // it listens by TCP
  const metrics = ['--metrics-driver=statsd', `--metrics-port=${statsd.address().port}`, '--log-level=CRITICAL']
  const files = [
    '--metrics-prometheus=False',
    '--log-level=INFO',
    '--log-file=logs/svc.log',
    '--log-max-bytes=10000000',
  ]
  const kinds = {
    unwatched: silent,
    metrics,
    files,
    all: [...metrics.slice(0, 2), ...files.slice(1), `--tracing-otlp-endpoint=http://127.0.0.1:${port}`],
  }
  const names = Object.keys(kinds) as (keyof typeof kinds)[]
  const servers: BenchServer[] = []
  const clients = new Map<string, Client>()
  try {
    for (const name of names) {
      const server = await startBenchServer({ flags: kinds[name] })
      servers.push(server)
      clients.set(name, await connect(server.port))
    }
    const requests: Record<string, number[]> = {}
    const executions: Record<string, number[]> = {}
    for (let round = 0; round < ROUNDS; round++) {
      for (const name of names) {
        const client = clients.get(name)
        if (client === undefined) continue
        for (let i = 0; i < REQUESTS_A_ROUND; i++) {
          const at = performance.now()
          await client.call('GET', PATH)
          ;(requests[name] ??= []).push(performance.now() - at)
        }
        for (let i = 0; i < EXECUTIONS_A_ROUND; i++) {
          const at = performance.now()
          const { status } = await runCommand(client, 'echo hi')
          ;(executions[name] ??= []).push(performance.now() - at)
          if (status !== 'succeeded') throw new Error(`an execution ended as ${status}`)
        }
      }
    }
    const row = (work: string, taken: Record<string, number[]>, name: string, budgetMs?: number): Row => {
      const [ours, base] = [median(taken[name] ?? []), median(taken['unwatched'] ?? [])]
      const ratio = `${timesAsLong(ours / base)}`
      return {
        work,
        ours: ms(ours),
        reference: `unwatched ${ms(base)}`,
        budget:
          budgetMs === undefined
            ? `≤ ${BUDGET} × (is ${ratio})`
            : `≤ ${budgetMs} ms more (is ${(ours - base).toFixed(3)} ms, ${ratio})`,
        isMet: budgetMs === undefined ? ours / base <= BUDGET : ours - base <= budgetMs,
      }
    }
    return [
      row(`GET ${PATH} with Prometheus and statsd: p50`, requests, 'metrics'),
      row(`GET ${PATH} with two lines on standard error and in a file: p50`, requests, 'files', LINES_BUDGET_MS),
      row('core.local echo with metrics, log files and spans: p50', executions, 'all'),
    ]
  } finally {
    for (const client of clients.values()) client.close()
    for (const server of servers) await server.stop()
    statsd.close()
    collector.close()
  }
}
