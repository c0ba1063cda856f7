/** A front of a server that passes everything on, and keeps which routes were asked for. */
import { passOn, startFront } from './front.ts'

export interface Recorder {
  /** Stands for all three listeners. */
  readonly url: string
  /** Method and path of every request so far, such as `GET /v1/actions/core.local`. */
  readonly requests: readonly string[]
  close(): Promise<void>
}

/** @param target base URL of the API listener */
export async function startRecorder(target: string): Promise<Recorder> {
  const requests: string[] = []
  const { url, close } = await startFront((request, response) => {
    const { method = 'GET', url: path = '/' } = request
    requests.push(`${method} ${path.split('?', 1)[0]}`)
    passOn(request, response, new URL(path, target))
  })
  return { url, requests, close }
}
