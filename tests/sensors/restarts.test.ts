/** When a sensor that has ended starts again (contract 05, 5.10), on a clock that stands still. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { TestClock } from '../helpers/clock.ts'
import type { TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { register, sensorOf, waitForOutput, waitForState, writePack, type SensorAnswer } from './support.ts'

const REF = 'ends.Ends'
/** Fails when the test says so, each time by the next file. */
const ends = `#!/bin/sh
n=$(ls "$HOME/lives" | wc -l)
mkdir -p "$HOME/lives/$n"
until [ -e "$HOME/ends/$n" ]; do sleep 0.02; done
exit "$(cat "$HOME/ends/$n")"
`

let server: TestApp | undefined
let clock: TestClock
let lives: number

afterEach(async () => {
  await server?.stop()
  server = undefined
})

async function startWith(settings: Record<string, string> = {}): Promise<TestApp> {
  clock = new TestClock()
  lives = 0
  const app = await createTestApp({ clock, settings })
  server = app
  for (const folder of ['lives', 'ends']) mkdirSync(join(app.basePath, folder))
  writePack(app.basePath, 'ends', {
    'sensors/ends.sh': ends.replaceAll('$HOME', app.basePath),
    'sensors/ends.yaml': 'class_name: Ends\nentry_point: ends.sh\nsensor_type: process\n',
  })
  await register(app, 'ends')
  await waitForState(app, REF, 'running')
  return app
}

/** Ends the life that goes on. */
function end(app: TestApp, exitCode = 3): Promise<SensorAnswer> {
  const file = join(app.basePath, 'ends', String(lives))
  writeFileSync(`${file}.new`, String(exitCode))
  renameSync(`${file}.new`, file)
  lives += 1
  return waitForState(app, REF, 'waiting', 'failed', 'finished')
}

const secondsTo = (time: string | undefined): number => (Date.parse(time ?? '') - clock.now() / 1000) / 1000

/** Lets the time pass up to the next start. @returns the seconds */
async function startAgain(app: TestApp, { runtime }: SensorAnswer): Promise<number> {
  const seconds = secondsTo(runtime.next_start)
  clock.advance(Math.ceil(seconds * 1000))
  await waitForState(app, REF, 'running')
  return Math.round(seconds * 10) / 10
}

it('5.10 twice after the delay, then less often up to the maximum; ten seconds of running forget that', async () => {
  const app = await startWith({ 'sensorcontainer.max_respawn_delay': '15' })
  const seen: [string, number][] = []
  // How long it runs before each end.
  for (const ms of [0, 0, 0, 9_999, 10_000]) {
    clock.advance(ms)
    // oxlint-disable-next-line no-await-in-loop -- one life after the other
    const sensor = await end(app)
    // oxlint-disable-next-line no-await-in-loop
    seen.push([sensor.runtime.state, await startAgain(app, sensor)])
  }
  expect(seen).toEqual([
    ['waiting', 2.5],
    ['waiting', 2.5],
    ['failed', 10],
    ['failed', 15],
    ['waiting', 2.5],
  ])
  expect((await sensorOf(app, REF)).runtime.restarts).toBe(5)
})

fullOnly(it)(
  '5.10 with max_respawn_delay = 0 svc gives up after two starts; enabling the sensor starts it',
  async () => {
    const app = await startWith({ 'sensorcontainer.max_respawn_delay': '0' })
    for (let n = 0; n < 2; n++) await startAgain(app, await end(app))
    const { runtime } = await end(app)
    expect(runtime).toMatchObject({ state: 'failed', last_error: 'Failed: exit code 3.' })
    expect(runtime).not.toHaveProperty('next_start')
    await waitForOutput(app, REF, 'Failed: exit code 3. svc does not start it again.')
    clock.advance(86_400_000)
    expect((await sensorOf(app, REF)).runtime.state).toBe('failed')
    await app.call('PUT', `/v1/sensortypes/${REF}`, { enabled: true })
    await waitForState(app, REF, 'running')
    // From the beginning.
    expect((await end(app)).runtime.state).toBe('waiting')
  },
)

fullOnly(
  it.each([
    ['waits', 3],
    ['has ended by itself', 0],
  ]),
)('enabling a sensor that %s starts it at once, and one that runs not again', async (_, exitCode) => {
  const app = await startWith()
  await end(app, exitCode)
  for (let n = 0; n < 2; n++) await app.call('PUT', `/v1/sensortypes/${REF}`, { enabled: true })
  const { runtime } = await waitForState(app, REF, 'running')
  clock.advance(2_500)
  await app.call('PUT', `/v1/sensortypes/${REF}`, { enabled: true })
  expect((await sensorOf(app, REF)).runtime).toMatchObject({ state: 'running', restarts: 1, pid: runtime.pid })
})

fullOnly(it)('with respawn_delay = 0 svc does not start it again', async () => {
  const app = await startWith({ 'sensorcontainer.respawn_delay': '0' })
  const { runtime } = await end(app)
  expect([runtime.state, runtime.next_start]).toEqual(['failed', undefined])
})
