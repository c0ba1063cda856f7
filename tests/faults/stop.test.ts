/**
 * The server is stopped, or killed, while requests of many kinds come in: whatever was accepted is done in the end, once.
 * What a kill at each single moment leaves is tried in tests/recovery.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findDamage, findProcesses, notFinal, readRows, readStartTime, withDatabase } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { run, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { tier } from '../helpers/tiers.ts'

let folder: TemporaryFolder
let server: TestServer

beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  await server.stop('SIGKILL')
  for (const { pid } of findProcesses(folder.path)) process.kill(pid, 'SIGKILL')
  folder.remove()
})

async function start(): Promise<void> {
  const settings = {
    'actionrunner.actions_pool_size': '8',
    'actionrunner.shutdown_grace_seconds': '600',
    'log.level': 'ERROR',
  }
  server = await startServer({ basePath: folder.path, settings })
}

interface Sent {
  /** Found again in the parameters of the execution that it brings about. */
  mark: string
  status: number | undefined
  retryAfter: string | undefined
}

/** Clients that send one request after another on connections that they keep. */
function startLoad(): { sent: Sent[]; end(): Promise<void> } {
  const agent = new Agent({ keepAlive: true })
  const sent: Sent[] = []
  let isOver = false
  const send = (path: string, body: unknown, one: Sent): Promise<void> =>
    new Promise((resolve) => {
      const headers = { 'Content-Type': 'application/json' }
      const outgoing = request(`${server.urls.api}${path}`, { method: 'POST', agent, headers }, (response) => {
        text(response).then(
          () => {
            one.status = response.statusCode
            one.retryAfter = response.headers['retry-after']
            resolve()
          },
          () => resolve(),
        )
      })
      outgoing.once('error', () => resolve())
      outgoing.end(JSON.stringify(body))
    })
  const client = async (): Promise<void> => {
    while (!isOver) {
      const one: Sent = { mark: `<${sent.length}>`, status: undefined, retryAfter: undefined }
      sent.push(one)
      const kind = sent.length % 4
      const cmd = `: ${folder.path}; echo '${one.mark}'`
      if (kind === 0) await send('/v1/webhooks/load', { mark: one.mark }, one)
      else {
        const delay = kind === 1 ? { delay: 300 } : {}
        await send('/v1/executions', { action: 'core.local', parameters: { cmd }, ...delay }, one)
      }
      if (one.status === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const clients = Array.from({ length: 8 }, client)
  return {
    sent,
    async end() {
      isOver = true
      await Promise.all(clients)
      agent.destroy()
    },
  }
}

const isAccepted = ({ status }: Sent): boolean => status === 201 || status === 202

/** How often each mark was asked for by an execution. */
function countMarks(): Map<string, number> {
  const marks = new Map<string, number>()
  const all = withDatabase(folder.path, (database) =>
    database.prepare<[], string>('select parameters from executions').pluck().all(),
  )
  for (const parameters of all) {
    const mark = /<\d+>/.exec(parameters)?.[0]
    if (mark !== undefined) marks.set(mark, (marks.get(mark) ?? 0) + 1)
  }
  return marks
}

/** The daily run leaves SIGKILL to tests/recovery/kill.test.ts. */
const SIGNALS = tier === 'full' ? (['SIGTERM', 'SIGKILL'] as const) : (['SIGTERM'] as const)

describe('under load', () => {
  it.each(SIGNALS)('%s loses nothing that was accepted', async (signal) => {
    await start()
    const rule = {
      name: 'load',
      trigger: { type: 'core.svc.webhook', parameters: { url: 'load' } },
      action: { ref: 'core.local', parameters: { cmd: `: ${folder.path}; echo '{{ trigger.body.mark }}'` } },
      enabled: true,
    }
    expect((await server.call('POST', '/v1/rules', rule)).status).toBe(201)
    const finishing = await run(server, { cmd: `until [ -e ${folder.path}/go ]; do sleep 0.02; done`, timeout: 0 })
    const endless = await run(server, { cmd: `echo $$ >${folder.path}/pid; exec sleep 1000`, timeout: 0 })
    for (const { id } of [finishing, endless]) await waitForStatus(server, id, ['running'])

    const load = startLoad()
    await waitFor('a load', () => load.sent.filter(isAccepted).length > 150)
    process.kill(server.pid, signal)
    if (signal === 'SIGTERM') {
      // New work is refused while the rest goes on, until there is no patience any more.
      await waitFor('refusals', () => load.sent.some(({ status }) => status === 503))
      writeFileSync(join(folder.path, 'go'), '')
      await waitFor('the one that finishes', () => readRows(folder.path).get(finishing.id)?.status === 'succeeded')
      await waitFor('the other to be left alone', () => readRows(folder.path).get(endless.id)?.status === 'running')
      // One soon after the first is taken for the same. Once the server is heard to hurry none may come: it could meet a
      // process that is past listening, and decide how it ends.
      const endlessPid = Number(readFileSync(join(folder.path, 'pid'), 'utf8'))
      let lastAt = 0
      await waitFor('the second signal to be obeyed', () => {
        if (readStartTime(endlessPid) === undefined) return true
        if (performance.now() - lastAt < 300) return false
        lastAt = performance.now()
        process.kill(server.pid, 'SIGTERM')
        return false
      })
    }
    const exit = await server.exited
    await load.end()
    expect(exit).toEqual(signal === 'SIGTERM' ? { code: 0, signal: null } : { code: null, signal })
    const answers = new Set(load.sent.map(({ status, retryAfter }) => `${status} ${retryAfter}`))
    const expected = ['201 undefined', '202 undefined', '503 5', 'undefined undefined']
    expect([...answers].filter((answer) => !expected.includes(answer))).toEqual([])

    await start()
    await waitFor('all to end', () => readRows(folder.path, notFinal).size === 0, 60_000)
    await waitFor(
      'every instance to be looked at',
      () =>
        withDatabase(folder.path, (database) =>
          database
            .prepare(`select count(*) = 0 from trigger_instances where status in ('pending', 'processing')`)
            .pluck()
            .get(),
        ) === 1,
    )
    await waitFor('all to end', () => readRows(folder.path, notFinal).size === 0, 60_000)
    const marks = countMarks()
    expect(load.sent.filter((one) => isAccepted(one) && marks.get(one.mark) !== 1)).toEqual([])
    expect([...marks.values()].filter((times) => times > 1)).toEqual([])
    const statuses = [...readRows(folder.path).values()].map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set(['succeeded', 'abandoned']))
    // Only what ran may have been cut off.
    expect(statuses.filter((status) => status === 'abandoned').length).toBeLessThanOrEqual(8)
    expect(await waitForStatus(server, endless.id)).toMatchObject({ status: 'abandoned' })
    expect(findDamage(folder.path)).toEqual([])
  })
})
