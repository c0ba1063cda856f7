/** What the rows are compared with, each run in a process of its own. */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { makeFolder } from './server.ts'

export interface Rate {
  /** Per second. */
  rate: number
  /** Milliseconds. */
  latencies: number[]
}

/** @param script to start instead of a command */
export function bareSpawn(count: number, atOnce: number, script?: string): Promise<Rate> {
  return new Promise((resolve, reject) => {
    const parameters = [String(count), String(atOnce), ...(script === undefined ? [] : [script])]
    const child = spawn(process.execPath, [join(import.meta.dirname, 'bare-spawn.ts'), ...parameters], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    child.once('close', (code) => (code === 0 ? resolve(JSON.parse(text) as Rate) : reject(new Error(`exit ${code}`)))) // printed by bare-spawn.ts
  })
}

/** Milliseconds of one process from start to end; the median of some. */
export function processMs(args: string[], repeats: number, program = process.execPath): number {
  const taken: number[] = []
  for (let i = 0; i < repeats; i++) {
    const at = performance.now()
    execFileSync(program, args, { stdio: 'ignore' })
    taken.push(performance.now() - at)
  }
  return taken.toSorted((a, b) => a - b)[Math.floor(repeats / 2)] ?? 0
}

/** adnanh/webhook running the same command and answering with its output; undefined when it is not installed. */
export async function webhook(count: number, atOnce: number): Promise<Rate | undefined> {
  const program = ['/usr/bin/webhook', '/usr/local/bin/webhook'].find((path) => existsSync(path))
  if (program === undefined) return undefined
  const folder = makeFolder()
  const hooks = join(folder, 'hooks.json')
  writeFileSync(join(folder, 'echo.sh'), '#!/bin/sh\necho hi\n', { mode: 0o755 })
  writeFileSync(
    hooks,
    JSON.stringify([
      { id: 'echo', 'execute-command': join(folder, 'echo.sh'), 'include-command-output-in-response': true },
    ]),
  )
  const port = await freePort()
  const child = spawn(program, ['-hooks', hooks, '-ip', '127.0.0.1', '-port', String(port)], { stdio: 'ignore' })
  try {
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
    const once = (): Promise<void> =>
      new Promise((resolve, reject) => {
        const outgoing = request(
          { host: '127.0.0.1', port, path: '/hooks/echo', method: 'POST', agent },
          (response) => {
            response.resume().on('end', resolve)
          },
        )
        outgoing.once('error', reject)
        outgoing.end()
      })
    for (let i = 0; i < 200; i++) {
      if (
        await once().then(
          () => true,
          () => false,
        )
      )
        break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const latencies: number[] = []
    let left = count
    const started = performance.now()
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (left-- > 0) {
          const at = performance.now()
          await once()
          latencies.push(performance.now() - at)
        }
      }),
    )
    agent.destroy()
    return { rate: count / ((performance.now() - started) / 1000), latencies }
  } finally {
    child.kill()
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
