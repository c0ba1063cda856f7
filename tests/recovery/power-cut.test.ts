/**
 * The power fails at random moments under load, and the disk has lost what it was not told to keep: everything that was
 * answered with 201, 202 or 200 before is there, and an end with all its output. Every title shows the seed;
 * `SVC_TEST_SEED=<seed>` makes the same choices.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findDamage, withDatabase } from '../helpers/audit.ts'
import { writeFlowPack } from '../helpers/flow-pack.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createLosingDisk, type LosingDisk } from '../helpers/power.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { rounds, fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { problemsOfWorkflows } from '../helpers/workflow-audit.ts'

const CUTS = rounds({ daily: 2, full: 30 })
const CHILD = join(import.meta.dirname, '../fixtures/database-child.ts')
const CLIENTS = 6
const MAX_PROMISES = 150
const LINES = 4
const seed = seedOfRun()

const workflow = `
version: 1.0
tasks:
  first: {action: core.local cmd="true", next: [{do: [left, right]}]}
  left: {action: core.noop, next: [{do: last}]}
  right: {action: core.local cmd="true", next: [{do: last}]}
  last: {join: all, action: core.noop}
`

let folder: TemporaryFolder
let basePath = ''
let disk: LosingDisk
let server: TestServer | undefined
let random: Random

beforeEach(async () => {
  folder = makeFolder()
  basePath = join(folder.path, 'data')
  mkdirSync(basePath)
  writeFlowPack(basePath, { fork: workflow })
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
      if (n % 8 === 7) {
        // Its lines come one by one, so that most of them are stored before its end.
        const cmd = `for i in $(seq ${LINES}); do echo "$i"; sleep 0.02; done`
        const request = { action: 'core.local', parameters: { cmd }, context: { word } }
        const made = await target.call<{ id: string }>('POST', '/v1/executions', request)
        if (made.status !== 201) continue
        promised.add(`execution ${word}`)
        const { id } = made.body
        await waitForStatus(target, id, ['succeeded'])
        promised.add(`end ${id}`)
      } else if (n % 8 === 5) {
        const request = { action: 'flow.fork', context: { word } }
        const made = await target.call<{ id: string }>('POST', '/v1/executions', request)
        if (made.status !== 201) continue
        promised.add(`execution ${word}`)
        await waitForStatus(target, made.body.id, ['succeeded'])
        promised.add(`end ${made.body.id}`)
      } else if (n % 3 === 0) {
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
      ...texts(`select id from executions where status = 'succeeded'`).map((id) => `end ${id}`),
    ])
  })
}

/** Executions whose end is stored, and not all of their output. */
function cutOff(): unknown[] {
  return withDatabase(basePath, (database) =>
    database
      .prepare(
        `select e.id, e.action_ref, group_concat(o.data, '') as output
          from executions e left join output_records o on o.execution_id = e.id
          where e.status = 'succeeded' and e.action_ref = 'core.local' and e.parent is null
          group by e.id having length(ifnull(output, '')) < ?`,
      )
      .all(2 * LINES),
  )
}

const openCount = (): unknown =>
  withDatabase(basePath, (database) =>
    database.prepare(`select count(*) from executions where end_timestamp is null`).pluck().get(),
  )

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
  expect(cutOff()).toEqual([])
  return [...promised].filter((promise) => !there.has(promise))
}

describe(`a power cut (seed ${seed})`, () => {
  it(
    'takes nothing that was promised, and the server goes on',
    async () => {
      const promised: Promised = new Set()
      for (let cut = 0; cut < CUTS; cut++) {
        expect(await lifeUntilCut('full', promised)).toEqual([])
        expect(findDamage(basePath)).toEqual([])
      }
      const again = await start('full')
      expect((await again.call('POST', '/v1/executions', { action: 'core.noop' })).status).toBe(201)
      await waitFor('the end of all that was begun', () => openCount() === 0)
      expect(problemsOfWorkflows(basePath)).toEqual([])
    },
    CUTS * 60_000,
  )

  fullOnly(it)('takes no name of a file that was promised', async () => {
    const place = join(folder.path, 'new', 'place')
    const started = await startServer({
      basePath,
      settings: { 'database.path': join(place, 'svc.db'), 'log.level': 'ERROR' },
      env: disk.env,
    })
    server = started
    const ask = async (method: string, path: string, body?: unknown): Promise<string> => {
      const { status, body: answer } = await started.call<{ execution_id: string }>(method, path, body)
      expect([path, status < 300]).toEqual([path, true])
      return answer.execution_id
    }
    await ask('PUT', '/v1/keys/word', { name: 'word', value: 'hidden', secret: true })
    await ask('POST', '/v1/backups')
    await waitForStatus(started, await ask('POST', '/v1/packs/install', { packs: ['examples'] }), ['succeeded'])
    await ask('POST', '/v1/actions', {
      name: 'made',
      pack: 'default',
      runner_type: 'local-shell-script',
      entry_point: 'made.sh',
      data_files: [
        { file_path: 'made.sh', content: '#!/bin/sh\n' },
        { file_path: 'lib/part.sh', content: 'true\n' },
      ],
    })
    await started.stop('SIGKILL')
    server = undefined
    const packs = join(basePath, 'packs')
    const actions = join(packs, 'default', 'actions')
    const [backup = ''] = readdirSync(join(basePath, 'backups'))
    for (const [at, name] of [
      [folder.path, 'new'],
      [join(folder.path, 'new'), 'place'],
      [place, 'svc.db'],
      [basePath, 'keys'],
      [join(basePath, 'keys'), 'secrets.json'],
      [basePath, 'backups'],
      [join(basePath, 'backups'), backup],
      [basePath, 'packs'],
      [packs, 'default'],
      [join(packs, 'default'), 'pack.yaml'],
      [packs, 'examples'],
      [actions, 'made.sh'],
      [actions, 'lib'],
      [join(actions, 'lib'), 'part.sh'],
    ] as const) {
      expect([at, disk.namesIn(at)]).toEqual([at, expect.arrayContaining([name])])
    }
  })

  // So the test can fail: this is what the weaker promise of `normal` means.
  fullOnly(it)('takes promises of a server that does not wait for the disk, and damages nothing', async () => {
    expect(await lifeUntilCut('full', new Set())).toEqual([])
    const missing = await lifeUntilCut('normal', new Set())
    expect(missing.length).toBeGreaterThan(0)
    expect(findDamage(basePath)).toEqual([])
  })

  it.each([
    ['loses what promises nothing', ['promised', 'unpromised'], ['promised']],
    ['keeps what promises nothing and comes before a promise', ['unpromised', 'promised'], ['promised', 'unpromised']],
  ])('%s', async (_, writes, kept) => {
    disk.settle()
    const path = join(basePath, 'svc.db')
    const env = { ...process.env, ...disk.env }
    const child = fork(CHILD, ['write-and-die', path, ...writes], { env })
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    // Nothing that was not synced.
    disk.cutPower({ ...random, once: () => false })
    const users = withDatabase(basePath, (database) =>
      database.prepare('select name from users order by name').pluck().all(),
    )
    expect(users).toEqual(kept)
  })
})
