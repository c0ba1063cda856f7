/**
 * The server is killed at random moments while jobs fail and recover and receivers answer, answer with errors, or keep it
 * waiting. Afterwards each failure and each recovery has been told: none is lost, and none twice, by the id of the message.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findDamage, notFinal, readRows, withDatabase } from '../helpers/audit.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startReceiver, type Receiver } from '../helpers/receiver.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

/** `SVC_TEST_KILLS` for a longer search. */
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? 20)
const LONGEST_LIFE_MS = 400
const REQUESTS = 6
const seed = seedOfRun()

const settings = {
  'actionrunner.actions_pool_size': '8',
  'actionrunner.shutdown_grace_seconds': '0',
  'notifications.destinations': 'hook, slow',
  'notifications.on': 'all',
  'notifications.digest_threshold': '0',
  'log.level': 'ERROR',
}

interface Row {
  id: string
  destination: string
  occasion: string
  status: string
  execution: string
  job: string
}

const rowsOf = (basePath: string): Row[] =>
  withDatabase(basePath, (database) =>
    database
      .prepare<[], Row>('select id, destination, occasion, status, execution, job from notifications order by id')
      .all(),
  )

async function liveAndDie(server: TestServer, random: Random): Promise<void> {
  const timer = setTimeout(() => process.kill(server.pid, 'SIGKILL'), 20 + random.below(LONGEST_LIFE_MS))
  let isDead = false
  void server.exited.then(() => (isDead = true))
  const post = async (): Promise<void> => {
    for (let n = 0; n < REQUESTS && !isDead; n++) {
      const parameters = { cmd: random.pick(['exit 1', 'exit 1', 'true']) }
      await server.call('POST', '/v1/executions', { action: 'core.local', parameters }).catch(() => undefined)
    }
  }
  await Promise.all([post(), post()])
  await server.exited
  clearTimeout(timer)
}

/** Answers at random: at once, late, with an error that passes, or not before the sender gives up. */
function answerAtRandom(receiver: Receiver, random: Random, accepted: Map<string, number>): void {
  receiver.answer = ({ headers }) => {
    const id = String(headers['webhook-id'])
    if (random.below(5) === 0) return { status: 503 }
    // What is accepted counts, although the server may be killed before it hears of that.
    accepted.set(id, (accepted.get(id) ?? 0) + 1)
    return { status: 200, text: 'ok', afterMs: random.below(60) }
  }
}

it(`notifications: ${KILLS} kills lose none and tell none twice`, { timeout: 900_000 }, async () => {
  const random = createRandom(seed)
  const folder = makeFolder()
  const basePath = folder.path
  const receiver = await startReceiver()
  const accepted = new Map<string, number>()
  answerAtRandom(receiver, random, accepted)
  mkdirSync(join(basePath, 'notifications'))
  for (const name of ['hook', 'slow']) {
    const text = `name: ${name}\nchannel: webhook\nwebhook_url: ${receiver.url}/${name}\n`
    writeFileSync(join(basePath, 'notifications', `${name}.yaml`), text)
  }
  try {
    /** By id: how often svc was killed while it knew no answer. */
    const unanswered = new Map<string, number>()
    for (let kill = 0; kill < KILLS; kill++) {
      await liveAndDie(await startServer({ basePath, settings }), random)
      for (const { id, status } of rowsOf(basePath)) {
        if (status === 'sending') unanswered.set(id, (unanswered.get(id) ?? 0) + 1)
      }
    }
    receiver.answer = ({ headers }) => {
      const id = String(headers['webhook-id'])
      accepted.set(id, (accepted.get(id) ?? 0) + 1)
      return { status: 200 }
    }
    const last = await startServer({ basePath, settings })
    try {
      await waitFor('every execution to end', () => readRows(basePath, notFinal).size === 0 || undefined, 120_000)
      await waitFor(
        'every notification to be sent',
        () => rowsOf(basePath).every(({ status }) => status === 'sent') || undefined,
        240_000,
      )
    } finally {
      await last.stop()
    }

    const rows = rowsOf(basePath)
    const executions = [...readRows(basePath).values()]
    const wanted = { failed: 'failed', abandoned: 'failed', timeout: 'timeout', succeeded: 'succeeded' }
    for (const { id, status } of executions) {
      const told = rows.filter(({ execution }) => execution === id)
      const names = told.map(({ destination }) => destination)
      expect([seed, id, status, names.toSorted()]).toEqual([seed, id, status, ['hook', 'slow']])
      const meaning = wanted[status as keyof typeof wanted]
      for (const { occasion } of told) {
        expect([id, occasion === 'recovered' ? 'succeeded' : occasion]).toEqual([id, meaning])
      }
    }
    expect(rows).toHaveLength(2 * executions.length)
    // Else nothing of the above was put to the test.
    expect(rows.length).toBeGreaterThan(0)
    // Each was accepted; more often only when svc died without an answer to it.
    for (const { id } of rows) {
      const times = accepted.get(id) ?? 0
      expect([seed, id, times >= 1 && times <= 1 + (unanswered.get(id) ?? 0)]).toEqual([seed, id, true])
    }
    // Between two recoveries of a job and destination there is a failure.
    for (const name of ['hook', 'slow']) {
      const ends = rows.filter(({ destination }) => destination === name).map(({ occasion }) => occasion)
      expect(
        ends.filter((occasion, i) => occasion === 'recovered' && ends.slice(0, i).every((e) => e !== 'failed')),
      ).toEqual([])
    }
    expect(findDamage(basePath)).toEqual([])
  } finally {
    await receiver.close()
    folder.remove()
  }
})
