/** Sensors that send wrong lines and dispatches without end. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { register, sensorOf, waitForOutput, waitForState, writePack } from './support.ts'

const yaml = (name: string): string =>
  `sensor_type: process\nclass_name: ${name}\nentry_point: ${name.toLowerCase()}.sh\ntrigger_types:\n  - name: ${name.toLowerCase()}\n    payload_schema: { type: object, properties: { n: { type: integer } } }\n`

const floods: Readonly<Record<string, string>> = {
  Lines: 'x',
  Triggers: '{"trigger": "flood.none", "payload": {}}',
  Objects: '[1, 2]',
  Types: '{"type": "other"}',
  Payloads: '{"trigger": "flood.payloads", "payload": {"n": "no number"}}',
}

let server: TestApp

beforeAll(async () => {
  server = await createTestApp({ settings: { 'sensorcontainer.respawn_delay': '3600' } })
})

afterAll(() => server.stop())

it('a sensor that sends what is wrong without end holds up only itself; svc explains the first ones and counts the rest', async () => {
  const names = Object.keys(floods)
  writePack(
    server.basePath,
    'flood',
    Object.fromEntries(
      names.flatMap((name) => [
        [`sensors/${name.toLowerCase()}.sh`, `#!/bin/sh\nexec yes '${floods[name]}'\n`],
        [`sensors/${name.toLowerCase()}.yaml`, yaml(name)],
      ]),
    ),
  )
  await register(server, 'flood')
  await Promise.all(
    names.map((name) =>
      waitFor(`a flood from ${name}`, async () => {
        expect((await server.call('GET', '/v1/packs?limit=1')).status).toBe(200)
        return (await sensorOf(server, `flood.${name}`)).runtime.dropped > 1_000
      }),
    ),
  )
  for (const name of names) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await server.call('PUT', `/v1/sensortypes/flood.${name}`, { enabled: false })
  }
  for (const name of names) {
    // oxlint-disable-next-line no-await-in-loop
    const { runtime } = await waitForState(server, `flood.${name}`, 'disabled')
    expect(runtime.last_error).toMatch(/^A dispatch was dropped: /)
    // oxlint-disable-next-line no-await-in-loop
    const output = await waitForOutput(server, `flood.${name}`, 'more dispatches were dropped.')
    const counts = [...output.matchAll(/svc: (\d+) more dispatches were dropped\./g)].map(([, count]) => Number(count))
    const explained = output.split('svc: A dispatch was dropped: ').length - 1
    expect(counts.reduce((sum, count) => sum + count, explained)).toBe(runtime.dropped)
    expect(explained).toBeLessThan(runtime.dropped / 10)
  }
})
