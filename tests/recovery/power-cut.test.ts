/**
 * The power fails at random moments under load, and the disk has lost what it was not told to keep: everything that was
 * answered with 201, 202 or 200 before is there. Every title shows the seed; `SVC_TEST_SEED=<seed>` makes the same choices.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findDamage, withDatabase } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createLosingDisk, type LosingDisk } from '../helpers/power.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { rounds } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const CUTS = rounds({ daily: 2, full: 30 })
const CLIENTS = 6
const MAX_PROMISES = 150
const seed = seedOfRun()

let folder: TemporaryFolder
let basePath = ''
let disk: LosingDisk
let server: TestServer | undefined
let random: Random

beforeEach(async () => {
  folder = makeFolder()
  basePath = join(folder.path, 'data')
  mkdirSync(basePath)
  disk = await createLosingDisk(folder.path, basePath)
  random = createRandom(seed)
})
afterEach(async () => {
  await server?.stop('SIGKILL')
  server = undefined
  folder.remove()
})

/** What the server has answered with success, as a row that says the same has to be in the file. */
type Promised = Set<string>

async function start(synchronous: string): Promise<TestServer> {
  disk.settle()
  server = await startServer({
    basePath,
    settings: { 'database.synchronous': synchronous, 'log.level': 'ERROR' },
    env: disk.env,
  })
  return server
}

/** Asks for things until the server is gone, or has promised so many. */
async function load(target: TestServer, promised: Promised, lane: number, most: number): Promise<void> {
  for (let n = 0; promised.size < most; n++) {
    const word = `${target.pid}-${lane}-${n}`
    try {
      if (n % 3 === 0) {
        const request = { action: 'core.noop', context: { word } }
        if ((await target.call('POST', '/v1/executions', request)).status === 201) promised.add(`execution ${word}`)
      } else if (n % 3 === 1) {
        if ((await target.call('POST', '/v1/webhooks/told', { word })).status === 202) promised.add(`delivery ${word}`)
      } else {
        const answer = await target.call('PUT', `/v1/keys/${word}`, { name: word, value: word })
        if (answer.status < 300) promised.add(`key ${word}`)
      }
    } catch {
      // It is gone.
      return
    }
  }
}

function stored(): Set<string> {
  return withDatabase(basePath, (database) => {
    const texts = (query: string): string[] => database.prepare<[], string>(query).pluck().all()
    const wordsOf = (kind: string, query: string): string[] =>
      texts(query).flatMap((text) => (/"word":"([^"]*)"/.exec(text) ?? []).slice(1).map((word) => `${kind} ${word}`))
    return new Set([
      ...wordsOf('execution', 'select context from executions'),
      ...wordsOf('delivery', 'select payload from trigger_instances'),
      ...texts('select name from key_value_pairs').map((name) => `key ${name}`),
    ])
  })
}

/** @returns what is promised and not there */
async function lifeUntilCut(synchronous: string, promised: Promised): Promise<string[]> {
  const started = await start(synchronous)
  const trigger = { type: 'core.svc.webhook', parameters: { url: 'told' } }
  const rule = { name: 'on_told', trigger, enabled: true, action: { ref: 'core.noop' } }
  // 409: from an earlier life.
  expect([201, 409]).toContain((await started.call('POST', '/v1/rules', rule)).status)
  const enough = promised.size + 20 + random.below(MAX_PROMISES)
  const clients = Array.from({ length: CLIENTS }, (_, lane) => load(started, promised, lane, enough + 1000))
  await waitFor('some promises', () => promised.size >= enough)
  await started.stop('SIGKILL')
  server = undefined
  await Promise.all(clients)
  disk.cutPower(random)
  const there = stored()
  return [...promised].filter((promise) => !there.has(promise))
}

describe(`a power cut (seed ${seed})`, () => {
  it('takes nothing that was promised, and the server goes on', async () => {
    const promised: Promised = new Set()
    for (let cut = 0; cut < CUTS; cut++) {
      expect(await lifeUntilCut('full', promised)).toEqual([])
      expect(findDamage(basePath)).toEqual([])
    }
    const again = await start('full')
    expect((await again.call('POST', '/v1/executions', { action: 'core.noop' })).status).toBe(201)
  })

  // So the test can fail: this is what the weaker promise of `normal` means.
  it('takes promises of a server that does not wait for the disk, and damages nothing', async () => {
    expect(await lifeUntilCut('full', new Set())).toEqual([])
    const missing = await lifeUntilCut('normal', new Set())
    expect(missing.length).toBeGreaterThan(0)
    expect(findDamage(basePath)).toEqual([])
  })
})
