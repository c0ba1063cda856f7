/** A reader of one execution's output whose connection is cut again and again, and whose server is restarted. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findProcesses, readOutput } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { run, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { openEvents, outputOf, type EventFrame } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'

const CUTS = 100
const CUTS_BEFORE_RESTART = 60
const PIECES = 64
const seed = seedOfRun()

let folder: TemporaryFolder
const servers: TestServer[] = []

beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop('SIGKILL')
  for (const { pid } of findProcesses(folder.path)) process.kill(pid, 'SIGKILL')
  folder.remove()
})

/** Text in several alphabets and bytes that are no text, cut where it hurts. */
function makePieces(): Buffer[] {
  const random = createRandom(seed)
  return Array.from({ length: PIECES }, (_, index) => {
    const size = 1 + random.below(6000)
    if (index % 3 === 0) return randomBytes(size)
    return Buffer.from('a line\n' + 'äöü 漢字 🚀\n'.repeat(size / 20)).subarray(0, size)
  })
}

describe('the output stream of an execution', () => {
  it(`gives every byte once over ${CUTS} cuts and a restart (SVC_TEST_SEED=${seed})`, async () => {
    const random = createRandom(seed)
    const settings = {
      'stream.port': String(await findPort()),
      'actionrunner.shutdown_grace_seconds': '600',
    }
    const start = async (): Promise<TestServer> => {
      const started = await startServer({ basePath: folder.path, settings })
      servers.push(started)
      return started
    }
    let server = await start()
    const pieces = makePieces()
    const piecesPath = join(folder.path, 'pieces')
    mkdirSync(piecesPath)
    pieces.forEach((piece, index) => writeFileSync(join(piecesPath, String(index)), piece))
    // Goes round the pieces until there is enough, then says how many it wrote.
    const { id } = await run(server, {
      cmd: `i=0; cd ${piecesPath}; until [ -e ../enough ]; do cat $((i % ${PIECES})); i=$((i + 1)); sleep 0.02; done; echo $i > ../written`,
      timeout: 0,
    })

    const frames: EventFrame[] = []
    let lastId: string | undefined
    let hasEnded = false
    let cuts = 0
    /** One connection, cut after some frames, in the middle of one or before the first. */
    async function readSome(): Promise<void> {
      let wanted = random.below(4)
      const url = `${server.urls.stream}/v1/executions/${id}/output`
      const client = await openEvents(url, lastId === undefined ? {} : { 'Last-Event-ID': lastId })
      expect(client.status).toBe(200)
      let seen = 0
      await waitFor('frames', () => {
        for (const frame of client.frames.slice(seen)) {
          // What came after these is thrown away with the connection.
          if (wanted === 0) break
          seen += 1
          if (frame.event === 'EOF') {
            hasEnded = true
            break
          }
          frames.push(frame)
          lastId = frame.id
          wanted -= 1
        }
        return wanted === 0 || hasEnded
      })
      client.close()
      await client.ended
      cuts += 1
    }

    while (cuts < CUTS_BEFORE_RESTART) await readSome()
    process.kill(server.pid, 'SIGTERM')
    // It goes on writing in its grace, and nobody reads: more than the cuts to come can take.
    const backlog = readOutput(folder.path, id).length + 4 * (CUTS - cuts)
    await waitFor('a backlog', () => readOutput(folder.path, id).length > backlog, 200_000)
    writeFileSync(join(folder.path, 'enough'), '')
    expect(await server.exited).toMatchObject({ code: 0 })
    servers.pop()
    server = await start()
    expect(await waitForStatus(server, id)).toMatchObject({ status: 'succeeded' })

    while (cuts < CUTS) await readSome()
    expect(hasEnded).toBe(false)
    const last = await openEvents(
      `${server.urls.stream}/v1/executions/${id}/output`,
      lastId === undefined ? {} : { 'Last-Event-ID': lastId },
    )
    expect(await last.ended).toBe('end')
    expect(last.frames.at(-1)?.event).toBe('EOF')
    frames.push(...last.frames.slice(0, -1))

    const ids = frames.map((frame) => frame.id)
    expect(ids).toEqual(ids.map((_, index) => `${id}/${index + 1}`))
    const rounds = Number(readFileSync(join(folder.path, 'written'), 'utf8'))
    const written = Buffer.concat(
      Array.from({ length: rounds }, (_, index) => pieces[index % PIECES] ?? Buffer.alloc(0)),
    )
    const expected = new TextDecoder('utf-8', { ignoreBOM: true }).decode(written)
    const received = outputOf(frames)
    expect(received.length).toBe(expected.length)
    expect(received === expected).toBe(true)
    const whole = await server.call('GET', `/v1/executions/${id}/output`)
    expect(whole.text === expected).toBe(true)
  })
})
