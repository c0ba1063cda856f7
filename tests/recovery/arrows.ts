/** The moments right after commits, as clients see them: good moments to kill a server. */
import { get } from 'node:http'
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
export function watchArrows(server: TestServer, seen: (arrow: string) => void): Promise<void> {
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
