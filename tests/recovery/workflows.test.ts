/**
 * The server is killed, or stopped, at random moments while it conducts workflows: each ends as the outcomes of its actions say, no action
 * runs twice, and none is missing. Every title shows the seed; `SVC_TEST_SEED=<seed>` makes the same choices again.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProcesses, readRecordedIds } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { rounds } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { writeFlowPack } from '../helpers/flow-pack.ts'
import { arrows, watchArrows } from './arrows.ts'
import { createWorkflowLoad, type WorkflowLoad } from './workflow-load.ts'

const KILLS = rounds({ daily: 3, full: 300 })
/** Each has data and a server of its own. */
const LANES = rounds({ daily: 1, full: 3 })
const ACTS_PER_LIFE = rounds({ daily: 12, full: 24 })
/** From the last thing that users do until the server is killed, at most. */
const LAST_ACT_MS = 600
const seed = seedOfRun()

const settings = {
  'actionrunner.actions_pool_size': '12',
  'scheduler.sleep_interval': '0.2',
  'log.level': 'WARNING',
}

/**
 * Loads the server until it gets a signal: soon after a random number of acts, or right after a random event.
 *
 * @param signal `SIGTERM`: it stops in order, in the middle of workflows
 */
async function liveAndDie(
  server: TestServer,
  load: WorkflowLoad,
  random: Random,
  signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL',
): Promise<void> {
  let isDead = false
  const kill = (): void => {
    if (isDead) return
    isDead = true
    process.kill(server.pid, signal)
  }
  const arrow = random.once(2) ? undefined : random.pick([...arrows, 'pausing', 'paused', 'resuming'])
  let events = 1 + random.below(12)
  const watching =
    arrow === undefined
      ? undefined
      : watchArrows(server, (seen) => {
          if (seen !== arrow) return
          events -= 1
          if (events === 0) kill()
        })
  let timer: NodeJS.Timeout | undefined
  // The event may never come: the last act is the end at the latest.
  const last = arrow === undefined ? 1 + random.below(ACTS_PER_LIFE) : ACTS_PER_LIFE
  let acts = 0
  const act = async (): Promise<void> => {
    while (acts < ACTS_PER_LIFE && !isDead) {
      acts += 1
      if (acts === last) timer = setTimeout(kill, random.below(LAST_ACT_MS))
      try {
        await load.act(server)
      } catch (error) {
        if (!isDead) throw error
      }
    }
  }
  try {
    await Promise.all([act(), act(), act()])
    await server.exited
  } finally {
    clearTimeout(timer)
    kill()
    await server.exited
    await watching
  }
}

describe('a server that is killed while it conducts workflows', () => {
  const lanes = Array.from({ length: LANES }, (_, index) => ({ random: createRandom(seed + index) }))
  const folders: TemporaryFolder[] = []
  const servers = new Set<TestServer>()

  beforeAll(() => {
    for (let n = 0; n < LANES; n++) folders.push(makeFolder())
  })
  afterAll(async () => {
    for (const server of servers) await server.stop('SIGKILL')
    for (const folder of folders) {
      for (const { pid } of findProcesses(folder.path)) process.kill(pid, 'SIGKILL')
      folder.remove()
    }
  })

  async function runLane(random: Random, basePath: string, kills: number): Promise<WorkflowLoad> {
    const load = createWorkflowLoad(random, basePath)
    writeFlowPack(basePath, load.actions)
    const start = async (): Promise<TestServer> => {
      const server = await startServer({ basePath, settings })
      servers.add(server)
      return server
    }
    for (let n = 0; n < kills; n++) {
      const server = await start()
      await liveAndDie(server, load, random)
      servers.delete(server)
      if (!random.once(8) && n > 0) continue
      const stopped = await start()
      await liveAndDie(stopped, load, random, 'SIGTERM')
      servers.delete(stopped)
      expect((await stopped.exited).code).toBe(0)
    }
    const last = await start()
    await waitFor('every workflow to end', () => load.conclude(last), 300_000)
    const { code } = await last.stop()
    servers.delete(last)
    expect(code).toBe(0)
    expect(readRecordedIds(basePath)).toEqual([])
    return load
  }

  it(`loses nothing over ${KILLS} kills (SVC_TEST_SEED=${seed})`, { timeout: 3_600_000 }, async () => {
    const ends = await Promise.allSettled(
      lanes.map(({ random }, index) => runLane(random, folders[index]?.path ?? '', KILLS / LANES)),
    )
    for (const end of ends) {
      if (end.status === 'rejected') throw end.reason
      expect(end.value.problems()).toEqual([])
    }
  })
})
