/** A server that is killed while a job is due: no run is lost, none is doubled, and a miss is told of once. */
import { expect, test } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

interface Instance {
  id: string
  payload: { rule: { ref: string }; due_timestamp: string }
}

const KILLS = 6

const seed = seedOfRun()
test(`a server that is killed across due times (seed ${seed})`, async () => {
  const random = createRandom(seed)
  const folder = makeFolder()
  let server: TestServer = await startServer({ basePath: folder.path })
  try {
    const rule = (name: string, more: object): Promise<unknown> =>
      server.call('POST', '/v1/rules', { name, pack: 'jobs', enabled: true, ...more })
    const shell = (cmd: string): object => ({ ref: 'core.local', parameters: { cmd } })
    const trigger = { type: 'core.svc.IntervalTimer', parameters: { unit: 'seconds', delta: 2 } }
    await rule('bad', { trigger, action: shell('exit 1'), expect: { within: '1s' } })
    for (let n = 0; n < KILLS; n += 1) {
      await waitFor('a run', async () => {
        const { body } = await server.call<unknown[]>('GET', '/v1/ruleenforcements?rule_ref=jobs.bad')
        return body.length > n * 2
      })
      // At any moment around a due time.
      await new Promise((resolve) => setTimeout(resolve, random.below(2000)))
      await server.stop('SIGKILL')
      server = await startServer({ basePath: folder.path })
    }
    const alerts = await waitFor('the alert', async () => {
      const { body } = await server.call<Instance[]>('GET', '/v1/triggerinstances?trigger=core.svc.missed&limit=-1')
      return body.length > 0 && body
    })
    expect(alerts.map(({ payload }) => payload.rule.ref)).toEqual(['jobs.bad'])
    // Each firing has started one run.
    await waitFor('as many runs as firings', async () => {
      const { body: fired } = await server.call<unknown[]>(
        'GET',
        '/v1/triggerinstances?trigger_type=core.svc.IntervalTimer&status=processed&limit=-1',
      )
      const { body: enforced } = await server.call<{ trigger_instance_id: string }[]>(
        'GET',
        '/v1/ruleenforcements?rule_ref=jobs.bad&limit=-1',
      )
      const firings = new Set(enforced.map(({ trigger_instance_id: id }) => id))
      expect(firings.size).toBe(enforced.length)
      return fired.length === enforced.length
    })
  } finally {
    await server.stop()
    folder.remove()
  }
}, 180_000)
