/** What a notification costs the execution that it is about. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startReceiver } from '../helpers/receiver.ts'
import { makeFolder } from '../helpers/folders.ts'
import { median, ms, times, type Row } from './report.ts'
import { connect, startBenchServer, type Client } from './server.ts'

const ROUNDS = 5
const EXECUTIONS = 30

/** Milliseconds for each execution of an action, one after the other, until it has ended. */
async function timeOf(client: Client, rule: string): Promise<number> {
  const begun = performance.now()
  for (let n = 0; n < EXECUTIONS; n++) {
    const before = await count(client, rule)
    await client.call('POST', `/v1/webhooks/${rule}`, { n })
    while ((await count(client, rule)) === before) await new Promise((resolve) => setImmediate(resolve))
  }
  return (performance.now() - begun) / EXECUTIONS
}

/** Ended executions of a rule: the newest one tells. */
async function count(client: Client, rule: string): Promise<string> {
  const path = `/v1/executions?rule=${rule}&status=succeeded&limit=1&include_attributes=id`
  const [newest] = await client.call<{ id: string }[]>('GET', path)
  return newest?.id ?? ''
}

/** An execution whose rule notifies of each success, and one whose rule notifies nobody. */
export async function notifying(): Promise<Row[]> {
  const folder = makeFolder()
  const receiver = await startReceiver()
  mkdirSync(join(folder.path, 'notifications'))
  const text = `name: hook\nchannel: webhook\nwebhook_url: ${receiver.url}/\non: all\n`
  writeFileSync(join(folder.path, 'notifications', 'hook.yaml'), text)
  const server = await startBenchServer({ basePath: folder.path, flags: ['--notifications-digest-threshold=0'] })
  const client = await connect(server.port, false)
  try {
    for (const name of ['plain', 'told']) {
      await client.call('POST', '/v1/rules', {
        name,
        enabled: true,
        trigger: { type: 'core.svc.webhook', parameters: { url: name } },
        action: { ref: 'core.local', parameters: { cmd: 'true' } },
        ...(name === 'told' ? { notify: 'hook' } : {}),
      })
    }
    const taken = { plain: [] as number[], told: [] as number[] }
    await timeOf(client, 'plain')
    await timeOf(client, 'told')
    for (let round = 0; round < ROUNDS; round++) {
      taken.plain.push(await timeOf(client, 'plain'))
      taken.told.push(await timeOf(client, 'told'))
    }
    const factor = median(taken.told) / median(taken.plain)
    if (receiver.received.length === 0) throw new Error('nothing was sent')
    return [
      {
        work: 'webhook → rule → execution has ended, with a notification of each success that is sent: median',
        ours: ms(median(taken.told)),
        reference: `without ${ms(median(taken.plain))} (is ${times(factor)})`,
        budget: '≤ 1.3 ×',
        isMet: factor <= 1.3,
      },
    ]
  } finally {
    client.close()
    await server.stop()
    await receiver.close()
    folder.remove()
  }
}
