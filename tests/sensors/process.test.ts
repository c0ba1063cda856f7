/** Sensors that are programs: JSON lines on stdout, what svc says on stdin. */
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  instancesOf,
  outputOf,
  register,
  sensorOf,
  waitForInstances,
  waitForOutput,
  waitForState,
  writePack,
} from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

const yaml = (name: string, file: string, more = ''): string =>
  `sensor_type: process\nclass_name: ${name}\nentry_point: ${file}\n${more}`
const type = (name: string): string => `trigger_types: [{name: ${name}}]\n`

const steady = `#!/bin/sh
read -r start
echo "begins" >&2
echo '{"trigger": "sh.event", "payload": {"n": 1}, "id": "one", "trace_tag": "of a program"}'
read -r answer
echo "$answer" >&2
echo '{"trigger": "sh.event", "payload": {"n": 1}, "id": "one"}'
read -r answer
echo '{"trigger": "sh.event", "payload": {"ref": "'"$SVC_SENSOR_REF"'", "url": "'"$SVC_API_URL"'"}}'
printf '%s' "$start" | grep -q '"type":"start"' && echo "got the start" >&2
echo "$SVC_SENSOR_CONFIG" >&2
while read -r line; do echo "$line" >&2; done
`

const hostile = `#!/bin/sh
echo 'no json'
echo '[1, 2]'
echo '{"trigger": "sh.hostile", "payload": 7}'
echo '{"trigger": 5, "payload": {}}'
echo '{"payload": {}}'
echo '{"trigger": "sh.hostile", "payload": {}, "id": ""}'
echo '{"type": "other"}'
head -c 1100000 /dev/zero | tr '\\0' x
echo
printf '{"trigger": "sh.hostile", "payload": {"text": "a \\377 b"}}\\n'
printf 'no \\377 text\\n' >&2
echo '{"trigger": "sh.hostile", "payload": {"n": 1}}'
exec sleep 1000
`

/** Ignores TERM, and leaves processes that have left its session. */
const stubborn = `#!/bin/bash
trap '' TERM
setsid sleep 2000 &
( trap '' TERM; setsid bash -c 'trap "" TERM; while :; do sleep 1; done' & )
echo '{"trigger": "sh.stubborn", "payload": {}}'
while :; do sleep 1; done
`

let server: TestApp

beforeAll(async () => {
  server = await createTestApp({ settings: { 'sensorcontainer.respawn_delay': '0.1' } })
  writePack(server.basePath, 'sh', {
    'sensors/steady.sh': steady,
    'sensors/steady.yaml': yaml('Steady', 'steady.sh', type('event')),
    'sensors/hostile.sh': hostile,
    'sensors/hostile.yaml': yaml('Hostile', 'hostile.sh', type('hostile')),
    'sensors/stubborn.sh': stubborn,
    'sensors/stubborn.yaml': yaml('Stubborn', 'stubborn.sh', type('stubborn')),
    'sensors/flood.sh': '#!/bin/sh\nyes "a long line of text that goes on and on" >&2\n',
    'sensors/flood.yaml': yaml('Flood', 'flood.sh'),
    'sensors/many.sh': `#!/bin/sh\ni=0\nwhile [ $i -lt 2000 ]; do echo '{"trigger": "sh.many", "payload": {"n": '$i'}, "id": '$i'}'; i=$((i+1)); done\n`,
    'sensors/many.yaml': yaml('Many', 'many.sh', type('many')),
    'sensors/done.sh': '#!/bin/sh\nexit 0\n',
    'sensors/done.yaml': yaml('Done', 'done.sh'),
    'sensors/again.sh': `#!/bin/sh\necho '{"trigger": "sh.again", "payload": {}}'\n`,
    'sensors/again.yaml': yaml('Again', 'again.sh', `poll_interval: 0.1\n${type('again')}`),
    'sensors/crash.sh': '#!/bin/sh\necho "why it ended" >&2\nexit 3\n',
    'sensors/crash.yaml': yaml('Crash', 'crash.sh'),
    'sensors/none.sh': 'no program\n',
    'sensors/none.yaml': yaml('None', 'none.sh'),
    'sensors/closes.sh': '#!/bin/sh\nexec >&- 2>&- <&-\nexec sleep 1000\n',
    'sensors/closes.yaml': yaml('Closes', 'closes.sh'),
  })
  await register(server, 'sh')
})

afterAll(() => server.stop())

/** Pids of the processes with the marker of a sensor. */
function withMarker(marker: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return readFileSync(`/proc/${name}/environ`, 'utf8').includes(marker) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

const markerOf = (pid: number | undefined): string =>
  /SVC_ACTION_EXECUTION_ID=[0-9a-f]{24}/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[0] ?? ''

describe('a program', () => {
  it('dispatches; a repeated id has no effect; it gets the start, answers and triggers', async () => {
    const instances = await waitForInstances(server, 'sh.event', 2)
    expect(instances.map(({ payload }) => payload)).toEqual([
      { n: 1 },
      { ref: 'sh.Steady', url: expect.stringMatching(/^http:.*\/v1$/) },
    ])
    const output = await waitForOutput(server, 'sh.Steady', 'got the start')
    expect(output).toContain('begins\n')
    expect(output).toContain('{"type":"stored","id":"one"}')
    const trace = await server.call<{ trace_tag: string }>('GET', `/v1/traces/${instances[0]?.trace_id}`)
    expect(trace.body.trace_tag).toBe('of a program')
    expect((await sensorOf(server, 'sh.Steady')).runtime).toMatchObject({ state: 'running', dispatches: 2, dropped: 0 })
  })

  it('wrong lines are dropped, counted and explained, and the right ones count', async () => {
    const instances = await waitForInstances(server, 'sh.hostile', 2)
    expect(instances.map(({ payload }) => payload)).toEqual([{ text: 'a � b' }, { n: 1 }])
    const { runtime } = await sensorOf(server, 'sh.Hostile')
    expect(runtime).toMatchObject({ state: 'running', dispatches: 2, dropped: 8 })
    const output = await waitForOutput(server, 'sh.Hostile', 'no � text')
    for (const text of [
      'a line is no JSON object: no json',
      'a line is no JSON object: [1, 2]',
      'the payload is no object',
      'the trigger is neither a reference nor an object',
      'the id must have 1 to 255 characters',
      'a line has more than 1048576 bytes',
    ]) {
      expect(output).toContain(text)
    }
  })

  it('that floods its output is neither held up nor stored whole', async () => {
    await waitForState(server, 'sh.Flood', 'running')
    await waitFor('the limit', async () => (await outputOf(server, 'sh.Flood')).length > 400_000)
    expect((await outputOf(server, 'sh.Flood')).length).toBeLessThan(1_200_000)
    await server.call('PUT', '/v1/sensortypes/sh.Flood', { enabled: false })
    await waitForState(server, 'sh.Flood', 'disabled')
    await waitForOutput(server, 'sh.Flood', 'bytes of output: the sensor writes more than')
  })

  it('that floods dispatches is held up, and none is lost', async () => {
    const instances = await waitForInstances(server, 'sh.many', 2000)
    expect(instances.map(({ payload }) => payload['n'])).toEqual(Array.from({ length: 2000 }, (_, i) => i))
    expect((await sensorOf(server, 'sh.Many')).runtime.dispatches).toBe(2000)
  })

  it('5.10 that ends with exit code 0 is not started again, with poll_interval after that time', async () => {
    const { runtime } = await waitForState(server, 'sh.Done', 'finished')
    expect(runtime).toMatchObject({ restarts: 0 })
    await waitForInstances(server, 'sh.again', 3)
  })

  it('5.10 that fails is started twice, then less often; it says why', async () => {
    const { runtime } = await waitForState(server, 'sh.Crash', 'failed')
    expect(runtime.restarts).toBeGreaterThanOrEqual(2)
    expect(runtime).toMatchObject({ last_error: 'Failed: exit code 3.', next_start: expect.any(String) })
    expect(await outputOf(server, 'sh.Crash')).toContain('why it ended')
    for (const [trigger, payload] of [
      ['core.svc.sensor.process_spawn', { pid: expect.any(Number), cmd: expect.stringMatching(/\/crash\.sh$/) }],
      ['core.svc.sensor.process_exit', { exit_code: 3 }],
    ] as const) {
      // oxlint-disable-next-line no-await-in-loop -- one list after the other
      const told = (await instancesOf(server, trigger)).find((each) => each.payload['id'] === 'Crash')
      expect(told?.payload).toEqual({ id: 'Crash', timestamp: expect.any(Number), ...payload })
    }
    const broken = await waitForState(server, 'sh.None', 'failed')
    expect(broken.runtime.last_error).toContain('none.sh')
    const { body } = await server.call<{ attention: string[] }>('GET', '/v1/status')
    expect(body.attention).toContainEqual(expect.stringMatching(/^\d+ sensors have failed\. See `svc sensor list`/))
  })

  it('that closes its pipes goes on', async () => {
    const { runtime } = await waitForState(server, 'sh.Closes', 'running')
    expect(process.kill(runtime.pid ?? 0, 0)).toBe(true)
  })

  fullOnly(it)('5.10 that ignores TERM is killed with all that it has started', async () => {
    await waitForInstances(server, 'sh.stubborn', 1)
    const marker = markerOf((await waitForState(server, 'sh.Stubborn', 'running')).runtime.pid)
    expect(withMarker(marker).length).toBeGreaterThan(2)
    await server.call('PUT', '/v1/sensortypes/sh.Stubborn', { enabled: false })
    await waitForState(server, 'sh.Stubborn', 'disabled')
    expect(withMarker(marker)).toEqual([])
  })

  it('5.10 is stopped with its pack, and its record goes', async () => {
    const { runtime } = await waitForState(server, 'sh.Steady', 'running')
    const { body } = await server.call('POST', '/v1/packs/uninstall', { packs: ['sh'] })
    expect(body).toHaveProperty('execution_id')
    await waitFor(
      'the record to go',
      async () => (await server.call('GET', '/v1/sensortypes/sh.Steady')).status === 404,
    )
    await waitFor('the process to end', () => {
      try {
        return !process.kill(runtime.pid ?? 0, 0)
      } catch {
        return true
      }
    })
    expect((await instancesOf(server, 'sh.event')).length).toBe(2)
  })
})
