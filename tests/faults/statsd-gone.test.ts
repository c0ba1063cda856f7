/** A statsd server that is not there, has no address, or swallows everything: nobody notices, and nothing is kept for it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { createLog } from '../../src/lib/log/log.ts'
import { createStatsd } from '../../src/modules/monitoring/statsd.ts'
import { runToEnd, waitForLog, withServer, type TestServer } from '../helpers/server.ts'
import { startStatsd } from '../helpers/statsd.ts'
import { TextSink } from '../helpers/text-sink.ts'
import { waitFor } from '../helpers/wait.ts'

const to = (host: string, port: number): Record<string, string> => ({
  'metrics.driver': 'statsd',
  'metrics.host': host,
  'metrics.port': String(port),
})

/** A port that nobody listens on. */
async function closedPort(): Promise<number> {
  const statsd = await startStatsd()
  await statsd.stop()
  return statsd.port
}

async function expectUndisturbed(server: TestServer): Promise<void> {
  const ended = await Promise.all(Array.from({ length: 20 }, (_, i) => runToEnd(server, { cmd: `echo ${i}` })))
  expect(ended.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 'succeeded'))
}

const troubles = (server: TestServer): string[] =>
  server
    .log()
    .split('\n')
    .filter((line) => / (WARNING|ERROR|CRITICAL) /.test(line) && line.includes('metrics'))

setFlagsFromString('--expose-gc')
/** What nobody refers to any more is none of what is measured. */
const collectGarbage = runInNewContext('gc') as () => void // it takes nothing and answers nothing

describe('a statsd server', () => {
  it('whose port is closed is sent to in vain, and gets lines once it is there', async () => {
    const port = await closedPort()
    await withServer({ settings: to('127.0.0.1', port) }, async (server) => {
      await expectUndisturbed(server)
      const statsd = await startStatsd(port)
      try {
        await expectUndisturbed(server)
        await waitFor('lines', () => statsd.count('svc.action.executions') > 0)
        expect(statsd.broken).toEqual([])
      } finally {
        await statsd.stop()
      }
      expect(troubles(server)).toEqual([])
      expect(await server.stop()).toEqual({ code: 0, signal: null })
    })
  })

  it('whose name has no address is told of once, however much there is to send', async () => {
    await withServer({ settings: to('statsd.invalid', 8125) }, async (server) => {
      await expectUndisturbed(server)
      await waitForLog(server, 'event=metrics.unreachable')
      await expectUndisturbed(server)
      expect(troubles(server)).toHaveLength(1)
      expect(await server.stop()).toEqual({ code: 0, signal: null })
    })
  })

  it('behind an address that nobody has does not hold the stop', async () => {
    await withServer({ settings: to('192.0.2.1', 8125) }, async (server) => {
      await expectUndisturbed(server)
      expect(troubles(server)).toEqual([])
      expect(await server.stop()).toEqual({ code: 0, signal: null })
    })
  })

  it.each(['127.0.0.1', 'statsd.invalid', '192.0.2.1', '::1'])(
    'at %s costs no memory while it is away',
    async (host) => {
      const statsd = createStatsd({
        driver: 'statsd',
        host,
        port: await closedPort(),
        prefix: '',
        sampleRate: 1,
        readings: () => [],
        log: createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() }),
      })
      const used = (): number => {
        collectGarbage()
        const { heapUsed, external, arrayBuffers } = process.memoryUsage()
        return (heapUsed + external + arrayBuffers) / 1e6
      }
      const before = used()
      for (let round = 0; round < 40; round += 1) {
        for (let i = 0; i < 25_000; i += 1) statsd.count('execution.status', { status: 'succeeded' })
        // A packet is handed on in later turns.
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      // A million lines are 40 MB, and much more as packets that wait.
      await vi.waitFor(() => expect(used() - before).toBeLessThan(30), 30_000)
      await statsd.stop()
    },
  )
})
