/** `GET /v1/status` and `svc status` where something needs attention. */
import { expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import { run, withServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

interface Status {
  status: string
  attention: string[]
  pid: number
  urls: Record<string, string>
  queues: { name: string; length: number; limit: number }[]
  components: { name: string; state: string }[]
  disk: { free_bytes: number; total_bytes: number }
  gauges: Record<string, number>
}

test('10.7 a queue with as many messages as the guideline says needs attention, and an engine that is off does not', () =>
  withServer(
    { settings: { 'actionrunner.actions_pool_size': '1', 'timersengine.enable': 'False' } },
    async (server) => {
      const look = async (): Promise<Status> => (await server.call<Status>('GET', '/v1/status')).body
      expect(await look()).toMatchObject({ status: 'ok', attention: [], pid: server.pid, urls: server.urls })
      const config = ['--config-file', server.configFile]
      expect((await runCli(['status', ...config], {})).code).toBe(0)

      const ids: string[] = []
      for (let i = 0; i < 11; i++) ids.push((await run(server, { cmd: 'sleep 1000', timeout: 0 })).id)
      const busy = await waitFor('ten to wait', async () => {
        const status = await look()
        return status.queues[0]?.length === 10 && status
      })
      expect(busy).toMatchObject({
        status: 'attention',
        attention: ['The queue "request" has 10 messages; it should stay below 10.'],
        gauges: { 'actionrunner.slots.used': 1, 'actionrunner.slots.size': 1, 'executions.running': 1 },
      })
      expect(busy.components.find(({ name }) => name === 'svctimersengine')?.state).toBe('disabled')
      expect(busy.disk.total_bytes).toBeGreaterThan(busy.disk.free_bytes)
      const told = await runCli(['status', ...config], {})
      expect(told.code).toBe(1)
      expect(told.stdout).toContain(
        'Something needs attention:\n  The queue "request" has 10 messages; it should stay below 10.\n',
      )
      expect(told.stdout).toContain('running       1 of 1 slots\n')
      for (const id of ids.toReversed()) await server.call('DELETE', `/v1/executions/${id}`)
    },
  ))
