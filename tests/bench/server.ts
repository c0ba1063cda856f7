/** The built server as the benchmark runs it: in a process of its own, optionally with ballast and a loop-delay gauge. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, get, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '..', '..')
export const finalStatuses = new Set(['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'])

export interface BenchServer {
  pid: number
  port: number
  /** Milliseconds from start to the line that says it is ready. */
  startMs: number
  /** Resident bytes of the server process. */
  rss(): number
  /** Proportional bytes of the server and all its descendants. */
  pss(): number
  /** Event-loop delay since the last call. */
  loopDelay(): Promise<{ p99: number; max: number }>
  stop(): Promise<void>
}

export interface BenchServerOptions {
  basePath?: string
  ballastMb?: number
  /** What is run in place of the instrumented server, which alone can tell of its loop. */
  program?: readonly [file: string, ...args: string[]]
  /** Further flags of `svc serve`. */
  flags?: readonly string[]
}

export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), 'svc-bench-'))
}

const instrumented = [
  process.execPath,
  // As `cli.ts` gives them.
  '--max-semi-space-size=8',
  '--heap-growing-percent=30',
  join(import.meta.dirname, 'instrumented-server.ts'),
] as const

export async function startBenchServer(options: BenchServerOptions = {}): Promise<BenchServer> {
  const basePath = options.basePath ?? makeFolder()
  const started = performance.now()
  const [file, ...args] = options.program ?? instrumented
  const child = spawn(
    file,
    [
      ...args,
      '--system-base-path',
      basePath,
      '--auth-port=0',
      '--api-port=0',
      '--stream-port=0',
      ...(options.flags ?? []),
    ],
    {
      cwd: basePath,
      env: { PATH: process.env['PATH'] ?? '', HOME: basePath, BENCH_BALLAST_MB: String(options.ballastMb ?? 0) },
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
  let output = ''
  const listeners = new Set<() => void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text
    for (const listener of listeners) listener()
  })
  const line = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(output)
        if (match === null) return
        listeners.delete(look)
        output = output.replace(match[0], '')
        resolve(match)
      }
      child.once('exit', () => reject(new Error(`the server ended: ${output}`)))
      listeners.add(look)
      look()
    })
  const ready = await line(/API http:\/\/127\.0\.0\.1:(\d+)/)
  return {
    pid: child.pid ?? 0,
    port: Number(ready[1]),
    startMs: performance.now() - started,
    rss: () => statusBytes(child.pid ?? 0),
    pss: () => treeOf(child.pid ?? 0).reduce((sum, pid) => sum + pssBytes(pid), 0),
    async loopDelay() {
      const answer = line(/BENCH (\{.*\})/)
      child.kill('SIGWINCH')
      return JSON.parse((await answer)[1] ?? '{}') as { p99: number; max: number } // written by instrumented-server.ts
    },
    async stop() {
      await ended(child)
      if (options.basePath === undefined) rmSync(basePath, { recursive: true, force: true })
    },
  }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

function statusBytes(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) * 1024
}

export function pssBytes(pid: number): number {
  const match = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
  return Number(match?.[1] ?? 0) * 1024
}

/** A process and all its descendants. One that ends meanwhile has none. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)]
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '))
      .filter((text) => text !== '')
      .map(Number)
  } catch {
    return []
  }
}

export interface Client {
  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>
  /** Resolves with the last status of an execution, learnt from the general stream. */
  ended(id: string): Promise<string>
  close(): void
}

/**
 * One keep-alive client, and unless `listens` is false one stream that hears how executions end.
 *
 * @param always headers of every request
 */
export async function connect(port: number, listens = true, always: Record<string, string> = {}): Promise<Client> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const waiting = new Map<string, { resolve: (status: string) => void; reject: (error: Error) => void }>()
  const heard = new Map<string, string>()
  let isClosing = false
  let cut: Error | undefined

  /** Nothing would be heard of the executions any more. */
  function streamEnded(): void {
    if (isClosing) return
    cut = new Error('The event stream has ended; this process was too slow for it, or the server has stopped.')
    for (const { reject } of waiting.values()) reject(cut)
  }

  const stream = await new Promise<{ destroy(): void } | undefined>((resolve, reject) => {
    if (!listens) {
      resolve(undefined)
      return
    }
    const outgoing = get(
      { host: '127.0.0.1', port, path: '/stream/v1/stream?events=svc.execution__update' },
      (response) => {
        let rest = ''
        response.setEncoding('utf8').on('data', (text: string) => {
          rest += text
          for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
            const head = rest.slice(0, Math.min(end, 200))
            rest = rest.slice(end + 2)
            const match = /data: \{"id":"(\w+)","status":"(\w+)"/.exec(head)
            if (match?.[1] === undefined || match[2] === undefined || !finalStatuses.has(match[2])) continue
            const waiter = waiting.get(match[1])
            waiting.delete(match[1])
            if (waiter === undefined) heard.set(match[1], match[2])
            else waiter.resolve(match[2])
          }
        })
        response.on('error', () => undefined)
        response.on('close', streamEnded)
        resolve(outgoing)
      },
    )
    outgoing.once('error', reject)
  })

  return {
    call<T>(method: string, path: string, body?: unknown) {
      const text = body === undefined ? undefined : JSON.stringify(body)
      return new Promise<T>((resolve, reject) => {
        const headers =
          text === undefined
            ? always
            : { ...always, 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
        const outgoing = request({ host: '127.0.0.1', port, method, path, agent, headers }, (response) => {
          let received = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk))
          response.on('end', () => resolve(JSON.parse(received) as T)) // the caller knows what it asked for
        })
        outgoing.once('error', reject)
        outgoing.end(text)
      })
    },
    async ended(id) {
      const known = heard.get(id)
      heard.delete(id)
      if (known !== undefined) return known
      if (cut !== undefined) throw cut
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
    },
    close() {
      isClosing = true
      stream?.destroy()
      agent.destroy()
    },
  }
}

export interface Started {
  id: string
}

/** Runs a command to its end. */
export async function runCommand(
  client: Client,
  cmd: string,
  timeoutSeconds = 60,
): Promise<{ id: string; status: string }> {
  const { id } = await client.call<Started>('POST', '/v1/executions', {
    action: 'core.local',
    parameters: { cmd, timeout: timeoutSeconds },
  })
  return { id, status: await client.ended(id) }
}
