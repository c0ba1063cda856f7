/** A mix of requests, each of which leaves behind what is needed to find out later what became of it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionAnswer, TestServer } from '../helpers/server.ts'
import type { Random } from '../helpers/random.ts'

/** One request, whatever was answered. */
export interface Job {
  /** Its number within the load. */
  n: number
  kind: JobKind
  delayMs: number
  /** What stdout holds when the command has run to its end. */
  stdout: string
  /** Set by the answer 201. */
  id: string | undefined
  /** When the request for its cancellation was sent. */
  isCancelAsked: boolean
}

export type JobKind =
  'echo' | 'failure' | 'noop' | 'output' | 'chatter' | 'sleeper' | 'daemon' | 'bare' | 'late' | 'stubborn'

const NUMBERS = 120_000
const numbers = Array.from({ length: NUMBERS }, (_, index) => `${index + 1}\n`).join('')
const LINES = 40
const lines = Array.from({ length: LINES }, (_, index) => `line ${index}\n`).join('')

export interface Load {
  readonly jobs: Job[]
  /** What every process of this load has in its command line: the number of the job follows it. */
  readonly token: string
  /** Sends one request, and perhaps one that cancels it. Rejects when the server dies before it answers. */
  post(server: TestServer): Promise<void>
  /** How often the command of each job was begun. */
  runs(): Map<number, number>
}

/** @param folder where commands note that they run */
export function createLoad(random: Random, folder: string): Load {
  const jobs: Job[] = []
  // Part of the seconds of `sleep`, so that a process shows whose it is even without an environment.
  const token = `00${100_000 + random.below(900_000)}7`
  const runsFile = join(folder, 'runs')
  writeFileSync(runsFile, '')

  function choose(): Job {
    const kind: JobKind = random.once(400)
      ? 'stubborn'
      : random.pick([
          ...(['echo', 'echo', 'echo', 'echo', 'failure', 'noop', 'output', 'chatter'] as const),
          ...(['sleeper', 'sleeper', 'daemon', 'bare', 'late'] as const),
        ])
    const job: Job = {
      n: jobs.length + 1,
      kind,
      delayMs: random.once(6) ? 1 + random.below(1500) : 0,
      stdout: '',
      id: undefined,
      isCancelAsked: false,
    }
    jobs.push(job)
    return job
  }

  /** Each begins by noting its number in one write. */
  function commandOf(job: Job): { cmd: string; timeout?: number } {
    const begun = `echo ${job.n} >> ${runsFile};`
    const sleep = (seconds: string): string => `/bin/sleep ${seconds}${token}${String(job.n).padStart(6, '0')}`
    switch (job.kind) {
      case 'failure':
        return { cmd: `${begun} exit 3` }
      case 'output':
        job.stdout = numbers
        return { cmd: `${begun} seq 1 ${NUMBERS}` }
      case 'chatter':
        job.stdout = lines
        return {
          cmd: `${begun} i=0; while [ $i -lt ${LINES} ] && echo line $i; do i=$((i+1)); ${sleep('0.02')}; done`,
        }
      case 'sleeper':
        job.stdout = 'up\n'
        return { cmd: `${begun} echo up; ${sleep('1.')}` }
      case 'daemon':
        job.stdout = 'up\n'
        return {
          cmd: `${begun} setsid sh -c 'setsid ${sleep('0.7')} & (trap "" HUP; ${sleep('0.7')} &) & ${sleep('0.7')}' & echo up; ${sleep('1.')}; wait`,
        }
      case 'bare':
        job.stdout = 'up\n'
        return { cmd: `${begun} exec env -i /bin/sh -c 'echo up; ${sleep('1.')} & ${sleep('1.')} & wait'` }
      case 'late':
        return { cmd: `${begun} ${sleep('60.')}`, timeout: 1 }
      case 'stubborn':
        return { cmd: `${begun} trap "" TERM; ${sleep('60.')}; ${sleep('60.')}`, timeout: 3 }
      case 'noop':
        return { cmd: '' }
      case 'echo':
        job.stdout = `hello ${job.n}\n`
        return { cmd: `${begun} echo hello ${job.n}` }
    }
  }

  return {
    jobs,
    token,
    async post(server) {
      const job = choose()
      const command = commandOf(job)
      const cancels = random.once(job.kind === 'sleeper' || job.kind === 'daemon' ? 3 : 20)
      const answer = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
        ...(job.kind === 'noop' ? { action: 'core.noop' } : { action: 'core.local', parameters: command }),
        ...(job.delayMs === 0 ? {} : { delay: job.delayMs }),
        context: { job: job.n },
      })
      if (answer.status !== 201) throw new Error(`job ${job.n} was not accepted (${answer.status}): ${answer.text}`)
      job.id = answer.body.id
      if (!cancels) return
      job.isCancelAsked = true
      const canceled = await server.call('DELETE', `/v1/executions/${job.id}`)
      if (canceled.status !== 200) throw new Error(`job ${job.n} (${canceled.status}): ${canceled.text}`)
    },
    runs() {
      const counts = new Map<number, number>()
      for (const line of readFileSync(runsFile, 'utf8').split('\n')) {
        if (line !== '') counts.set(Number(line), (counts.get(Number(line)) ?? 0) + 1)
      }
      return counts
    },
  }
}
