/** Rows about commands on other hosts. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeSshSite } from '../helpers/sshd.ts'
import { median, ms, quantile, times, type Row } from './report.ts'
import { connect, startBenchServer, type Client, type Started } from './server.ts'

const ROUNDS = 3
const EACH = 30
const run = promisify(execFile)

/** POST answered → final, over a connection that is there already; beside the client of OpenSSH with a master connection. */
export async function remoteCommands(): Promise<Row[]> {
  const site = await makeSshSite()
  const key = site.makeKey('id_bench')
  const sshd = await site.start()
  const settings = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'no',
    UserKnownHostsFile: join(site.folder, 'known_hosts'),
    ControlMaster: 'auto',
    ControlPath: join(site.folder, 'control'),
    ControlPersist: '60',
    LogLevel: 'ERROR',
  }
  const options = ['-F', 'none', '-i', key.path, '-p', String(sshd.port), '-l', site.user].concat(
    Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
  )
  const server = await startBenchServer({
    flags: ['--system-user-user', site.user, '--system-user-ssh-key-file', key.path],
  })
  const client = await connect(server.port)
  try {
    // The first of each connects; the master goes on by itself, and would keep the pipes of its starter.
    await once(spawn('ssh', [...options, '-M', '-N', '-f', sshd.host], { stdio: 'ignore' }), 'exit')
    const openssh = async (): Promise<number> => {
      const at = performance.now()
      const { stdout } = await run('ssh', [...options, sshd.host, 'echo hi'])
      if (stdout !== 'hi\n') throw new Error(`ssh printed ${stdout}`)
      return performance.now() - at
    }
    for (let i = 0; i < 5; i++) {
      await openssh()
      await answeredToFinal(client, sshd.address)
    }
    const ours: number[] = []
    const reference: number[] = []
    // In turns, because the machine's speed drifts.
    for (let round = 0; round < ROUNDS; round++) {
      for (let i = 0; i < EACH; i++) reference.push(await openssh())
      for (let i = 0; i < EACH; i++) ours.push(await answeredToFinal(client, sshd.address))
    }
    const [p50, bare] = [median(ours), median(reference)]
    return [
      {
        work: 'SSH command with a reused connection, POST answered → final: p50',
        ours: `${ms(p50)} (p99 ${ms(quantile(ours, 0.99))})`,
        reference: `ssh with a control master ${ms(bare)}`,
        budget: `≤ 1.5 × (is ${times(p50 / bare)})`,
        isMet: p50 <= 1.5 * bare,
      },
    ]
  } finally {
    await run('ssh', [...options, '-O', 'exit', sshd.host]).catch(() => undefined)
    client.close()
    await server.stop()
    await site.stop()
  }
}

async function answeredToFinal(client: Client, hosts: string): Promise<number> {
  const { id } = await client.call<Started>('POST', '/v1/executions', {
    action: 'core.remote',
    parameters: { cmd: 'echo hi', hosts },
  })
  const at = performance.now()
  const status = await client.ended(id)
  if (status !== 'succeeded') throw new Error(`An execution is ${status}`)
  return performance.now() - at
}
