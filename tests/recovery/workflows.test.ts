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
import { arrows, liveAndDie } from './arrows.ts'
import { createWorkflowLoad, type WorkflowLoad } from './workflow-load.ts'

const KILLS = rounds({ daily: 3, full: 300 })
/** Each has data and a server of its own. */
const LANES = rounds({ daily: 1, full: 3 })
const ACTS_PER_LIFE = rounds({ daily: 12, full: 24 })
/** From the last thing that users do until the server is killed, at most. */
const LAST_ACT_MS = 600
const seed = seedOfRun()
const life = {
  users: 3,
  acts: ACTS_PER_LIFE,
  lastActMs: LAST_ACT_MS,
  arrows: [...arrows, 'pausing', 'paused', 'resuming'] as const,
  events: 12,
}

const settings = {
  'actionrunner.actions_pool_size': '12',
  'scheduler.sleep_interval': '0.2',
  'log.level': 'WARNING',
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
      await liveAndDie(server, random, { ...life, act: () => load.act(server) })
      servers.delete(server)
      if (!random.once(8) && n > 0) continue
      const stopped = await start()
      await liveAndDie(stopped, random, { ...life, act: () => load.act(stopped), signal: 'SIGTERM' })
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
