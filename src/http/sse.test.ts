import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { openEvents } from '../../tests/helpers/sse.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import type { EventSink, StreamRoute } from './route.ts'
import { frame, type SinkOptions } from './sse.ts'
import { fullOnly } from '../../tests/helpers/tiers.ts'

let http: TestHttp | undefined

afterEach(async () => {
  await http?.close()
  http = undefined
})

/** A stream whose writing is in the hands of the test. */
async function openStream(run: (sink: EventSink) => Promise<void>, events: Partial<SinkOptions> = {}) {
  const route: StreamRoute = {
    kind: 'stream',
    surface: 'stream',
    method: 'get',
    path: '/stream',
    permission: 'public',
    summary: 'Writes what the test says.',
    handler: () => run,
  }
  http = await startHttp([route], { events: { heartbeatSeconds: 60, maxQueuedBytes: 100_000, ...events } })
  return `${http.urls.stream}/v1/stream`
}

const untilClosed = (sink: EventSink): Promise<void> =>
  new Promise((resolve) => sink.closed.addEventListener('abort', () => resolve()))

test('a frame is its lines and an empty one', () => {
  expect(frame('svc.execution__update', '{"a":1}')).toBe('event: svc.execution__update\ndata: {"a":1}\n\n')
  expect(frame('x', '{}', 'abc/1')).toBe('id: abc/1\nevent: x\ndata: {}\n\n')
})

describe('a stream', () => {
  test('has the headers of contract 04, 4.1, at once, and exactly the bytes written', async () => {
    let write: (text: string) => void = () => undefined
    let end: () => void = () => undefined
    const url = await openStream((sink) => {
      write = (text) => sink.write(text)
      return new Promise((resolve) => (end = resolve))
    })
    const client = await openEvents(url, { 'X-Request-ID': 'my-id', Origin: 'http://allowed.example' })
    expect(client.status).toBe(200)
    expect(client.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=UTF-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'transfer-encoding': 'chunked',
      'x-request-id': 'my-id',
      'access-control-allow-origin': 'http://allowed.example',
    })
    expect(client.headers['content-encoding']).toBeUndefined()
    write('\n')
    write(frame('a', '{"text":"ä€😀\\n"}'))
    write(frame('b', '') + frame('c', '[]', '1'))
    end()
    expect(await client.ended).toBe('end')
    expect(client.raw()).toBe(
      '\nevent: a\ndata: {"text":"ä€😀\\n"}\n\nevent: b\ndata: \n\nid: 1\nevent: c\ndata: []\n\n',
    )
  })

  test('sends a line feed whenever it was silent for so long', async () => {
    let sink: EventSink | undefined
    const heartbeatMs = 600
    const url = await openStream(
      (opened) => {
        sink = opened
        return untilClosed(opened)
      },
      { heartbeatSeconds: heartbeatMs / 1000 },
    )
    const client = await openEvents(url)
    await waitFor('two heartbeats', () => /^\n{2,}$/.test(client.raw()))
    const heartbeatAt = performance.now()
    await waitFor('half a silence', () => performance.now() - heartbeatAt > heartbeatMs / 2)
    sink?.write('data: x\n\n')
    const writtenAt = performance.now()
    await waitFor('the next heartbeat', () => /^\n{2,}data: x\n{3,}$/.test(client.raw()))
    // Each write restarts the silence.
    expect(performance.now() - writtenAt).toBeGreaterThan(heartbeatMs - 100)
    client.close()
  })

  test('tells its writer that the client has gone', async () => {
    let sink: EventSink | undefined
    let hasEnded = false
    const url = await openStream(async (opened) => {
      sink = opened
      await untilClosed(opened)
      hasEnded = true
    })
    const client = await openEvents(url)
    client.close()
    await waitFor('the end', () => hasEnded)
    expect(sink?.write('data: x\n\n')).toBe(false)
    await sink?.drained()
    expect(http?.logged()).toBe('')
  })

  test('is closed for its writer as soon as it has ended', async () => {
    let sink: EventSink | undefined
    const url = await openStream((opened) => {
      sink = opened
      return Promise.resolve()
    })
    expect(await (await openEvents(url)).ended).toBe('end')
    expect(sink?.closed.aborted).toBe(true)
    expect(sink?.write('data: late\n\n')).toBe(false)
    await sink?.drained()
  })

  test('that fails is cut, and logged', async () => {
    const url = await openStream(() => Promise.reject(new Error('a bug of the writer')))
    await (
      await openEvents(url)
    ).ended
    await waitFor('the log', () => http?.logged().includes('a bug of the writer'))
    expect(http?.logged()).toContain('request.failed')
  })

  test('cannot be asked for without its body', async () => {
    const url = await openStream(untilClosed)
    const response = await fetch(url, { method: 'HEAD' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET')
  })
})

describe('a client that does not read', () => {
  function openPaused(url: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      get(url, { agent: false }, (response) => {
        response.pause()
        resolve(response)
      }).once('error', reject)
    })
  }

  test('is told of by `write`, and `drained` waits for it', async () => {
    const chunk = `data: ${'x'.repeat(100_000)}\n\n`
    const total = 200
    let timesHeldBack = 0
    let mostQueued = 0
    const url = await openStream(
      async (sink) => {
        for (let written = 0; written < total; written++) {
          const isTaken = sink.write(chunk)
          mostQueued = Math.max(mostQueued, sink.queuedBytes)
          if (isTaken) continue
          timesHeldBack += 1
          await sink.drained()
        }
      },
      { maxQueuedBytes: 1_000_000 },
    )
    const client = await openPaused(url)
    await waitFor('the writer to be held back', () => timesHeldBack > 0)
    let received = 0
    client.on('data', (part: Buffer) => (received += part.length)).resume()
    await once(client, 'end')
    expect(received).toBe(total * chunk.length)
    expect(mostQueued).toBeLessThan(1_000_000)
  })

  fullOnly(test)('is cut when the writer cannot wait and too much is queued', async () => {
    let sink: EventSink | undefined
    let hasEnded = false
    const url = await openStream(
      async (opened) => {
        sink = opened
        await untilClosed(opened)
        hasEnded = true
      },
      { maxQueuedBytes: 50_000 },
    )
    const client = await openPaused(url)
    const cut = new Promise((resolve) => client.once('error', resolve))
    let most = 0
    const chunk = `data: ${'x'.repeat(10_000)}\n\n`
    await waitFor('the cut', () => {
      sink?.write(chunk)
      most = Math.max(most, sink?.queuedBytes ?? 0)
      return hasEnded
    })
    expect(most).toBeLessThan(50_000 + 2 * chunk.length)
    client.resume()
    expect(await cut).toMatchObject({ code: 'ECONNRESET' })
  })

  test('is not cut for a single frame of any size', async () => {
    const large = `data: ${'x'.repeat(5_000_000)}\n\n`
    const url = await openStream(
      (sink) => {
        sink.write(large)
        return Promise.resolve()
      },
      { maxQueuedBytes: 20_000 },
    )
    const client = await openEvents(url)
    expect(await client.ended).toBe('end')
    expect(client.raw()).toBe(large)
  })
})
