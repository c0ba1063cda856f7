/** Rows about scripts of packs. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bareSpawn } from './references.ts'
import { median, ms, times, type Row } from './report.ts'
import { connect, makeFolder, startBenchServer, type Client, type Started } from './server.ts'

const ROUNDS = 3
const PER_ROUND = 300

/** local-shell-script, POST answered → final record read, one at a time; the reference starts the same file. */
export async function scripts(): Promise<Row[]> {
  const basePath = makeFolder()
  const pack = join(basePath, 'packs/bench')
  const script = join(pack, 'actions/hello.sh')
  mkdirSync(join(pack, 'actions'), { recursive: true })
  writeFileSync(
    join(pack, 'pack.yaml'),
    'name: bench\nref: bench\ndescription: x\nversion: 1.0.0\nauthor: x\nemail: x@example.test\n',
  )
  writeFileSync(
    join(pack, 'actions/hello.yaml'),
    'name: hello\nrunner_type: local-shell-script\nentry_point: hello.sh\nparameters: {name: {type: string}}\n',
  )
  writeFileSync(script, '#!/bin/sh\necho "$1"\n', { mode: 0o755 })
  const server = await startBenchServer({ basePath })
  const client = await connect(server.port)
  try {
    await client.call('POST', '/v1/packs/register', { packs: ['bench'] })
    for (let i = 0; i < 100; i++) await answeredToFinal(client)
    const ours: number[] = []
    const reference: number[] = []
    // In turns, because the machine's speed drifts.
    for (let round = 0; round < ROUNDS; round++) {
      reference.push(...(await bareSpawn(PER_ROUND, 1, script)).latencies)
      for (let i = 0; i < PER_ROUND; i++) ours.push(await answeredToFinal(client))
    }
    const [p50, bare] = [median(ours), median(reference)]
    return [
      {
        work: 'local-shell-script echo, POST answered → final record read, 1 at once: p50',
        ours: ms(p50),
        reference: `bare spawn of the same script ${ms(bare)}`,
        budget: `≤ 1.5 × (is ${times(p50 / bare)})`,
        isMet: p50 <= 1.5 * bare,
      },
    ]
  } finally {
    client.close()
    await server.stop()
    rmSync(basePath, { recursive: true, force: true })
  }
}

async function answeredToFinal(client: Client): Promise<number> {
  const { id } = await client.call<Started>('POST', '/v1/executions', {
    action: 'bench.hello',
    parameters: { name: 'hi' },
  })
  const at = performance.now()
  await client.ended(id)
  const { status } = await client.call<{ status: string }>('GET', `/v1/executions/${id}`)
  if (status !== 'succeeded') throw new Error(`the script ended as ${status}`)
  return performance.now() - at
}
