/** Rows about ending executions: how long a cancel takes until nothing of the command is left. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { median, ms, quantile, type Row } from './report.ts'
import { connect, root, startBenchServer, type Client, type Started } from './server.ts'

/** Contract 03, 3.8. */
const GRACE_MS = 2000
const ROUNDS = 60
const STUBBORN = 15
const stubbornScripts = ['ignores-term.sh', 'leaves-session.sh', 'forks-twice.sh']

/** DELETE sent → final state announced, for commands that end when they are told to and for some that do not. */
export async function stopping(): Promise<Row[]> {
  const server = await startBenchServer()
  const client = await connect(server.port)
  try {
    const ours: number[] = []
    const reference: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      reference.push(await bareKill())
      ours.push(await canceled(client, await started(server.port, client, 'exec sleep 1000')))
    }
    const commands = Array.from({ length: STUBBORN }, (_, i) => {
      const script = stubbornScripts[i % stubbornScripts.length] ?? ''
      return `exec sh ${join(root, 'tests', 'fixtures', script)}`
    })
    const stubborn = await Promise.all(commands.map((command) => started(server.port, client, command)))
    const late = (await Promise.all(stubborn.map((id) => canceled(client, id)))).map((taken) => taken - GRACE_MS)
    return [
      {
        work: 'cancel of `sleep`, DELETE sent → nothing left of it: p50',
        ours: ms(median(ours)),
        reference: `bare kill → exit ${ms(median(reference))}`,
        budget: '≤ 50 ms',
        isMet: median(ours) <= 50,
      },
      {
        work: `cancel of ${STUBBORN} commands at once that resist: the slowest, beyond the grace of 2 s`,
        ours: ms(quantile(late, 1)),
        reference: '',
        budget: '≤ 1 s',
        isMet: quantile(late, 1) <= 1000,
      },
    ]
  } finally {
    client.close()
    await server.stop()
  }
}

/** Its id, once it has written its first line. */
async function started(port: number, client: Client, cmd: string): Promise<string> {
  const { id } = await client.call<Started>('POST', '/v1/executions', {
    action: 'core.local',
    parameters: { cmd: `echo ready; ${cmd}` },
  })
  const output = `http://127.0.0.1:${port}/v1/executions/${id}/output`
  while ((await (await fetch(output)).text()) === '') continue
  return id
}

async function canceled(client: Client, id: string): Promise<number> {
  const at = performance.now()
  const end = client.ended(id)
  await client.call('DELETE', `/v1/executions/${id}`)
  const status = await end
  if (status !== 'canceled') throw new Error(`a canceled execution ended as ${status}`)
  return performance.now() - at
}

async function bareKill(): Promise<number> {
  const child = spawn('/bin/sh', ['-c', 'echo ready; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  const at = performance.now()
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
  return performance.now() - at
}
