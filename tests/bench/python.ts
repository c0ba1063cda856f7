/** Rows about Python actions. */
import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mb, median, ms, quantile, type Row, times } from './report.ts'
import { connect, pssBytes, startBenchServer, type Client, type Started } from './server.ts'

const ROUNDS = 5
const RUNS_PER_ROUND = 30

/** A trivial action one at a time: where an interpreter waits for it, and where the next comes at once. */
export async function pythonActions(): Promise<Row[]> {
  // Not the program in the PATH, which may only look for it.
  const program = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim()
  const server = await startBenchServer()
  const client = await connect(server.port)
  const waiting = (): number[] => interpretersOf(server.pid)
  try {
    // Bytecode is written and the pool filled.
    for (let i = 0; i < 5; i++) await answeredToFinal(client)
    const idle: number[] = []
    const inARow: number[] = []
    const bare: number[] = []
    // In turns, because the machine's speed drifts.
    for (let round = 0; round < ROUNDS; round++) {
      for (let i = 0; i < RUNS_PER_ROUND; i++) {
        bare.push(await processMs(program))
        await bothReady(waiting)
        idle.push(await answeredToFinal(client))
      }
      for (let i = 0; i < RUNS_PER_ROUND; i++) inARow.push(await answeredToFinal(client))
    }
    await bothReady(waiting)
    const memory = median(waiting().map(pssBytes))
    const [ours, reference] = [median(idle), median(bare)]
    return [
      {
        work: 'core.uuid (Python), POST answered → final record read, 1 at once, an interpreter waits: p50',
        ours: ms(ours),
        reference: `python3 -c pass ${ms(reference)}`,
        budget: `≤ 0.5 × (is ${times(ours / reference)})`,
        isMet: ours <= 0.5 * reference,
        note:
          `p99 ${ms(quantile(idle, 0.99))}; the next at once, so that starting interpreters sets the pace: p50 ` +
          `${ms(median(inARow))} (${times(median(inARow) / reference)}); an interpreter that waits takes ${mb(memory)} (Pss)`,
      },
    ]
  } finally {
    client.close()
    await server.stop()
  }
}

async function answeredToFinal(client: Client): Promise<number> {
  const { id } = await client.call<Started>('POST', '/v1/executions', { action: 'core.uuid', parameters: {} })
  const at = performance.now()
  await client.ended(id)
  const { status } = await client.call<{ status: string }>('GET', `/v1/executions/${id}`)
  if (status !== 'succeeded') throw new Error(`core.uuid is ${status}`)
  return performance.now() - at
}

function processMs(program: string): Promise<number> {
  return new Promise((resolve) => {
    const at = performance.now()
    const child = spawn(program, ['-c', 'pass'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.resume()
    child.stderr.resume()
    child.once('close', () => resolve(performance.now() - at))
  })
}

/** Two that have nothing more to do: they sleep, and have used no processor time between two looks. */
async function bothReady(waiting: () => number[]): Promise<void> {
  let before = ''
  for (let quiet = 0; quiet < 3;) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    const now = waiting().map(usage).join()
    quiet = now === before && now.split(',').length === 2 ? quiet + 1 : 0
    before = now
  }
}

function usage(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return `${pid} ${fields[0]} ${fields[11]} ${fields[12]}`
  } catch {
    return ''
  }
}

function interpretersOf(server: number): number[] {
  return readdirSync(`/proc/${server}/task`)
    .flatMap((task) => readFileSync(`/proc/${server}/task/${task}/children`, 'utf8').split(' '))
    .filter((pid) => pid !== '')
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('/python/lib/start.py')
      } catch {
        return false
      }
    })
}
