/** The moments right after commits, as clients see them: good moments to kill a server. */
import { get } from 'node:http'
import type { Random } from '../helpers/random.ts'
import type { TestServer } from '../helpers/server.ts'

/** What can be seen on the general stream right after each commit in the life of an execution. */
export const arrows = [
  'requested',
  'delayed',
  'scheduled',
  'running',
  'output',
  'succeeded',
  'failed',
  'timeout',
  'canceling',
  'canceled',
] as const

/** Calls `seen` for every event until the server is gone. */
function watchArrows(server: TestServer, seen: (arrow: string) => void): Promise<void> {
  const events = 'svc.execution__create,svc.execution__update,svc.execution.output__create'
  return new Promise((resolve) => {
    let rest = ''
    const request = get(`${server.urls.stream}/v1/stream?events=${events}`, { agent: false }, (response) => {
      response.setEncoding('utf8').on('data', (text: string) => {
        const frames = (rest + text).split('\n\n')
        rest = frames.pop() ?? ''
        for (const frame of frames) {
          if (frame.includes('event: svc.execution.output__create')) seen('output')
          else {
            const data = /^data: (.*)$/m.exec(frame)?.[1]
            // The shape of a record of contract 03.
            if (data !== undefined) seen((JSON.parse(data) as { status: string }).status)
          }
        }
      })
      response.once('close', resolve)
      response.once('error', resolve)
    })
    request.once('error', () => resolve())
  })
}

interface LastLife {
  /** What one of the users does next; it may fail once the server is gone. */
  readonly act: () => Promise<unknown>
  /** Users that act at the same time. */
  readonly users: number
  /** Acts of all users together. */
  readonly acts: number
  /** From the last act until the server gets the signal, at most. */
  readonly lastActMs: number
  readonly arrows: readonly [string, ...string[]]
  /** Events of one arrow that the server lives through, at most. */
  readonly events: number
  /** `SIGTERM`: it stops in order. Default: `SIGKILL`. */
  readonly signal?: 'SIGKILL' | 'SIGTERM'
}

/** Loads the server until it gets the signal: soon after a random number of acts, or right after a random event. */
export async function liveAndDie(server: TestServer, random: Random, life: LastLife): Promise<void> {
  let isDead = false
  const kill = (): void => {
    if (isDead) return
    isDead = true
    process.kill(server.pid, life.signal ?? 'SIGKILL')
  }
  const arrow = random.once(2) ? undefined : random.pick(life.arrows)
  let events = 1 + random.below(life.events)
  const watching =
    arrow === undefined
      ? undefined
      : watchArrows(server, (seen) => {
          if (seen !== arrow) return
          events -= 1
          if (events === 0) kill()
        })
  let timer: NodeJS.Timeout | undefined
  // The event may never come: the last act is the end at the latest.
  const last = arrow === undefined ? 1 + random.below(life.acts) : life.acts
  let acts = 0
  const act = async (): Promise<void> => {
    while (acts < life.acts && !isDead) {
      acts += 1
      if (acts === last) timer = setTimeout(kill, random.below(life.lastActMs))
      try {
        await life.act()
      } catch (error) {
        if (!isDead) throw error
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: life.users }, act))
    await server.exited
  } finally {
    clearTimeout(timer)
    kill()
    await server.exited
    await watching
  }
}
