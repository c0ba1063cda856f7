/** Output by the gigabyte, and readers that do not read: the server does not grow. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { watchMemory, type MemoryWatch } from '../helpers/resources.ts'
import { run, runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

const MIB = 1024 * 1024
/** A busy machine collects garbage later; a part of the output that stayed would be far more. */
const MAX_GROWTH_MIB = 200
const LARGE_BYTES = 1_000_000_000
const line = 'All work and no play makes a dull server, said the client.\n'

let server: TestServer
let watch: MemoryWatch | undefined
const responses: IncomingMessage[] = []

async function start(settings: Record<string, string> = {}): Promise<void> {
  server = await startServer({ settings: { 'log.level': 'WARNING', ...settings } })
  // Code that was never run is compiled first; that growth has nothing to do with the amount of output.
  await runToEnd(server, { cmd: `yes "${line.trim()}" | head -c ${32 * MIB}` })
}
afterEach(async () => {
  watch?.stop()
  watch = undefined
  for (const response of responses.splice(0)) response.destroy()
  await server.stop('SIGKILL')
})

function open(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (response) => {
      responses.push(response)
      // Cut by the server, or by this test.
      response.on('error', () => undefined)
      resolve(response)
    })
    request.once('error', reject)
  })
}

interface Tally {
  bytes: number
  /** Digest of everything, in hexadecimal, once it has ended. */
  digest: Promise<string>
}

/** Takes whatever comes and keeps nothing. */
function takeAll(response: IncomingMessage): Tally {
  const hash = createHash('sha256')
  const tally: Tally = {
    bytes: 0,
    digest: new Promise((resolve) => response.once('end', () => resolve(hash.digest('hex')))),
  }
  response.on('data', (chunk: Buffer) => {
    hash.update(chunk)
    tally.bytes += chunk.length
  })
  return tally
}

/** Digest of the beginning of what `yes` writes, so many bytes of it, so many times. */
function digestOfLines(bytes: number, times = 1): string {
  const hash = createHash('sha256')
  const block = Buffer.from(line.repeat(10_000))
  for (let n = 0; n < times; n++) {
    for (let done = 0; done < bytes; done += block.length) {
      hash.update(block.subarray(0, Math.min(block.length, bytes - done)))
    }
  }
  return hash.digest('hex')
}

describe('a gigabyte of output', () => {
  it('passes through without staying in memory', async () => {
    await start()
    watch = watchMemory(server.pid)
    const { id } = await run(server, { cmd: `yes "${line.trim()}" | head -c ${LARGE_BYTES}`, timeout: 0 })
    await waitForStatus(server, id, ['succeeded'], 500_000)
    const whole = takeAll(await open(`${server.urls.api}/v1/executions/${id}/output`))
    expect(await whole.digest).toBe(digestOfLines(LARGE_BYTES))
    expect(whole.bytes).toBe(LARGE_BYTES)
    expect(watch.stop()).toBeLessThan(MAX_GROWTH_MIB)

    const { body } = await server.call<{ result: { stdout: string; stdout_truncated: boolean } }>(
      'GET',
      `/v1/executions/${id}`,
    )
    expect(body.result.stdout_truncated).toBe(true)
    expect(body.result.stdout.length).toBe(10_485_760)
    expect(body.result.stdout.startsWith(line)).toBe(true)
  })
})

describe('clients that stop reading', () => {
  it('cost bounded memory, and nobody else notices them', async () => {
    // A result as large as usual would hide what the clients cost.
    await start({ 'actionrunner.max_result_bytes': '65536' })
    const bytes = 1_000_000
    const times = 50
    // Writes the next piece when it is told to: a reader that is only slower than the disk is not one that stopped.
    const go = (n: number): string => join(server.basePath, `go-${n}`)
    const { id } = await run(server, {
      cmd: `n=0; while [ $n -lt ${times} ]; do
        until [ -e ${go(0).slice(0, -1)}$n ]; do sleep 0.01; done; yes "${line.trim()}" | head -c ${bytes}; n=$((n + 1)); done`,
      timeout: 0,
    })
    await waitForStatus(server, id, ['running'])
    const ofExecution = `${server.urls.stream}/v1/executions/${id}/output`
    const general = `${server.urls.stream}/v1/stream?events=svc.execution.output__create,svc.execution__update`
    const laggards: IncomingMessage[] = []
    const stalled: IncomingMessage[] = []
    for (let n = 0; n < 50; n++) {
      // Nobody has asked for data yet, so nothing is read.
      laggards.push(await open(general))
      stalled.push(await open(ofExecution))
    }
    const [readerOfExecution, readerOfAll] = [readText(await open(ofExecution)), readText(await open(general))]
    watch = watchMemory(server.pid)
    for (let n = 0; n < times; n++) {
      const hasAll = (reader: TextReader): boolean => reader.lengthOf(id) === n * bytes
      await waitFor(`${n} pieces`, () => hasAll(readerOfExecution) && hasAll(readerOfAll))
      writeFileSync(go(n), '')
    }
    await waitForStatus(server, id, ['succeeded'], 300_000)
    await readerOfExecution.ended
    await waitFor('the last event', () => readerOfAll.lastStatusOf(id) === 'succeeded')
    expect(watch.stop()).toBeLessThan(MAX_GROWTH_MIB)
    expect(readerOfExecution.digestOf(id)).toBe(digestOfLines(bytes, times))
    expect(readerOfAll.digestOf(id)).toBe(digestOfLines(bytes, times))

    // Those of the general stream, which has no history, are disconnected; the others go on where they were.
    const outcomes = await Promise.all(laggards.map((laggard) => outcomeOf(laggard)))
    expect(outcomes).toEqual(laggards.map(() => 'cut'))
    const late = stalled.slice(0, 2).map((response) => readText(response))
    for (const reader of late) {
      await reader.ended
      expect(reader.digestOf(id)).toBe(digestOfLines(bytes, times))
    }
  })
})

/** Reads to the end without keeping anything. */
function outcomeOf(response: IncomingMessage): Promise<'end' | 'cut'> {
  return new Promise((resolve) => {
    response.once('end', () => resolve('end'))
    response.once('close', () => resolve('cut'))
    if (response.destroyed) resolve('cut')
    response.resume()
  })
}

interface TextReader {
  ended: Promise<unknown>
  /** Characters of output so far. */
  lengthOf(executionId: string): number
  digestOf(executionId: string): string
  lastStatusOf(executionId: string): string | undefined
}

/** Reads events and keeps a digest of the output of each execution. */
function readText(response: IncomingMessage): TextReader {
  const hashes = new Map<string, ReturnType<typeof createHash>>()
  const lengths = new Map<string, number>()
  const statuses = new Map<string, string>()
  let rest = ''
  response.setEncoding('utf8').on('data', (text: string) => {
    const frames = (rest + text).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      if (data === undefined) continue
      // An output record or an execution (contract 04).
      const event = JSON.parse(data) as { id: string; execution_id?: string; data?: string; status: string }
      if (event.execution_id === undefined) {
        statuses.set(event.id, event.status)
      } else {
        const hash = hashes.get(event.execution_id) ?? createHash('sha256')
        hashes.set(event.execution_id, hash.update(event.data ?? ''))
        lengths.set(event.execution_id, (lengths.get(event.execution_id) ?? 0) + (event.data ?? '').length)
      }
    }
  })
  return {
    ended: new Promise((resolve) => response.once('end', resolve)),
    lengthOf: (executionId) => lengths.get(executionId) ?? 0,
    digestOf: (executionId) => hashes.get(executionId)?.digest('hex') ?? '',
    lastStatusOf: (executionId) => statuses.get(executionId),
  }
}
