/** A strict client of server-sent events: keeps the raw bytes as well as the frames. */
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import { waitFor } from './wait.ts'

export interface EventFrame {
  event: string
  data: string
  id: string | undefined
}

export interface EventClient {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Complete frames so far. */
  readonly frames: EventFrame[]
  /** Everything received so far. */
  raw(): string
  /** Resolves when the server has ended the response or the connection is gone; says which. */
  readonly ended: Promise<'end' | 'cut'>
  /** Stops reading, so that the server has to hold back. */
  pause(): void
  resume(): void
  close(): void
  /** The first frame, old or new, that fits. */
  frame(fits: (frame: EventFrame) => boolean, timeoutMs?: number): Promise<EventFrame>
}

/**
 * @param onFrame called for each frame as soon as it is complete
 * @param ca PEM of the authority to trust, for an https address
 */
export function openEvents(
  url: string,
  headers: Record<string, string> = {},
  onFrame?: (frame: EventFrame) => void,
  ca?: Buffer,
): Promise<EventClient> {
  return new Promise((resolve, reject) => {
    const begin = url.startsWith('https:') ? secureRequest : request
    const outgoing = begin(url, { headers, agent: false, ca }, (response) =>
      resolve(readEvents(response, () => outgoing.destroy(), onFrame)),
    )
    outgoing.once('error', reject)
    outgoing.end()
  })
}

function readEvents(response: IncomingMessage, cut: () => void, onFrame?: (frame: EventFrame) => void): EventClient {
  let raw = ''
  let rest = ''
  const frames: EventFrame[] = []
  response.setEncoding('utf8')
  response.on('data', (text: string) => {
    raw += text
    rest += text
    for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
      const frame = parseFrame(rest.slice(0, end))
      rest = rest.slice(end + 2)
      if (frame === undefined) continue
      frames.push(frame)
      onFrame?.(frame)
    }
  })
  const ended = new Promise<'end' | 'cut'>((resolve) => {
    response.once('end', () => resolve('end'))
    response.once('error', () => resolve('cut'))
    response.once('close', () => resolve('cut'))
  })
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    frames,
    raw: () => raw,
    ended,
    pause: () => response.pause(),
    resume: () => response.resume(),
    close: cut,
    frame: (fits, timeoutMs) => waitFor('an event', () => frames.find(fits), timeoutMs),
  }
}

/** Undefined for a heartbeat. */
function parseFrame(text: string): EventFrame | undefined {
  const frame: EventFrame = { event: '', data: '', id: undefined }
  let isEmpty = true
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, name, value = ''] = /^(\w+): ?(.*)$/s.exec(line) ?? []
    if (name === 'event') frame.event = value
    else if (name === 'data') frame.data = value
    else if (name === 'id') frame.id = value
    else throw new Error(`not a line of an event stream: ${JSON.stringify(line)}`)
    isEmpty = false
  }
  return isEmpty ? undefined : frame
}

/** The output that the frames of a stream carry, joined. */
export function outputOf(frames: readonly EventFrame[]): string {
  return frames
    .filter(({ event }) => event === 'svc.execution.output__create')
    .map(({ data }) => (JSON.parse(data) as { data: string }).data)
    .join('')
}
