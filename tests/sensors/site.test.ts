/** Sensors of a site: with access control, divided among servers, and with an environment that cannot be made. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { virtualenvFailure } from '../../src/core/virtualenv-files.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { register, sensorOf, waitForInstances, waitForState, writePack } from './support.ts'

let folder: TemporaryFolder
let server: TestApp | undefined

beforeEach(() => {
  folder = makeFolder()
})

afterEach(async () => {
  await server?.stop()
  server = undefined
  folder.remove()
})

/** Tries what its token permits. */
const curious = `
import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

class Curious(object):
    def __init__(self, sensor_service, config):
        self.service = sensor_service

    def status(self, method, path):
        request = Request(os.environ["SVC_API_URL"] + path, method=method, data=b'{"action": "core.noop"}' if method == "POST" else None)
        request.add_header("X-Auth-Token", os.environ["SVC_AUTH_TOKEN"])
        request.add_header("Content-Type", "application/json")
        try:
            return urlopen(request).status
        except HTTPError as error:
            return error.code

    def setup(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "token.txt"), "w") as file:
            file.write(os.environ["SVC_AUTH_TOKEN"])

    def poll(self):
        count = int(self.service.get_value("count") or 0) + 1
        self.service.set_value("count", count)
        tried = [("GET", "/keys"), ("GET", "/actions"), ("POST", "/executions"), ("GET", "/sensortypes")]
        self.service.dispatch("site.tried", {"count": count, "is": [self.status(*each) for each in tried]})

    def cleanup(self):
        pass
`

fullOnly(it)(
  '5.10 with access control a sensor may use keys and nothing else, for as long as it runs',
  async () => {
    const assignment = join(folder.path, 'rbac', 'assignments')
    mkdirSync(assignment, { recursive: true })
    writeFileSync(join(assignment, 'admin.yaml'), 'username: admin\nroles: [system_admin]\n')
    const app = await createTestApp({
      basePath: folder.path,
      settings: {
        'auth.enable': 'True',
        'rbac.enable': 'True',
        'rbac.backend': 'default',
        'auth.service_token_ttl': '4',
      },
    })
    server = app
    const admin = await signIn(app, 'admin', firstPassword(app.basePath))
    const as: TestApp = { ...app, call: (method, path, body) => app.call(method, path, body, admin) }
    writePack(folder.path, 'site', {
      'sensors/curious.py': curious,
      'sensors/curious.yaml':
        'class_name: Curious\nentry_point: curious.py\npoll_interval: 0.5\ntrigger_types: [{name: tried}]\n',
    })
    await register(as, 'site')
    // Polls over several lives of a token.
    const instances = await waitForInstances(as, 'site.tried', 12)
    expect(instances.map(({ payload }) => payload)).toEqual(
      instances.map((_, n) => ({ count: n + 1, is: [200, 403, 403, 403] })),
    )
    expect((await sensorOf(as, 'site.Curious')).runtime).toMatchObject({ state: 'running', restarts: 0 })
    const token = readFileSync(join(folder.path, 'packs', 'site', 'token.txt'), 'utf8')
    const keys = () => app.call('GET', '/v1/keys', undefined, { 'X-Auth-Token': token })
    expect((await keys()).status).toBe(200)
    await as.call('PUT', '/v1/sensortypes/site.Curious', { enabled: false })
    await waitForState(as, 'site.Curious', 'disabled')
    expect((await keys()).status).toBe(401)
  },
  60_000,
)

describe('5.10 of several servers each runs its sensors', () => {
  /** From 0 to 2^32 - 1: the number that the MD5 hash is, modulo 2^32. */
  const placeOf = (ref: string): bigint => BigInt(`0x${createHash('md5').update(ref).digest('hex')}`) % 2n ** 32n

  const pack = (): void =>
    writePack(folder.path, 'split', {
      'sensors/stay.sh': '#!/bin/sh\nexec sleep 3000\n',
      ...Object.fromEntries(
        ['One', 'Two', 'Three'].map((name) => [
          `sensors/${name}.yaml`,
          `class_name: ${name}\nentry_point: stay.sh\nsensor_type: process\n`,
        ]),
      ),
    })

  async function statesWith(settings: Record<string, string>): Promise<string[]> {
    pack()
    server = await createTestApp({ basePath: folder.path, settings })
    await register(server, 'split')
    const states: string[] = []
    for (const name of ['One', 'Two', 'Three']) {
      // oxlint-disable-next-line no-await-in-loop
      states.push((await waitForState(server, `split.${name}`, 'running', 'elsewhere')).runtime.state)
    }
    return states
  }

  it('by a key of the datastore', async () => {
    const before = await createTestApp({ basePath: folder.path })
    const name = 'here.sensor_partition'
    await before.call('PUT', `/v1/keys/${name}`, { name, value: 'split.One, split.Three' })
    await before.stop()
    const settings = {
      'sensorcontainer.partition_provider': 'name:kvstore',
      'sensorcontainer.sensor_node_name': 'here',
    }
    expect(await statesWith(settings)).toEqual(['running', 'elsewhere', 'running'])
  })

  it('by a file', async () => {
    const file = join(folder.path, 'partition.yaml')
    writeFileSync(file, 'there: [split.One]\nhere: [split.Two]\n')
    const settings = {
      'sensorcontainer.partition_provider': `name:file, partition_file:${file}`,
      'sensorcontainer.sensor_node_name': 'here',
    }
    expect(await statesWith(settings)).toEqual(['elsewhere', 'running', 'elsewhere'])
  })

  it('by ranges of the hash', async () => {
    const place = placeOf('split.Two')
    const settings = {
      'sensorcontainer.partition_provider': `name:hash, hash_ranges:${place}..${place + 1n}`,
    }
    expect(await statesWith(settings)).toEqual(['elsewhere', 'running', 'elsewhere'])
  })

  it('by the name of one', async () => {
    expect(await statesWith({ 'sensorcontainer.sensor_ref': 'split.Three' })).toEqual([
      'elsewhere',
      'elsewhere',
      'running',
    ])
  })
})

fullOnly(it)(
  'an environment that cannot be made is not made again at each start of a sensor',
  async () => {
    const app = await createTestApp({ basePath: folder.path, settings: { 'sensorcontainer.respawn_delay': '0.1' } })
    server = app
    writePack(folder.path, 'lacking', {
      'requirements.txt': '--no-index\nnone-of-ours==1\n',
      'sensors/any.py': 'class Any(object):\n    pass\n',
      'sensors/any.yaml': 'class_name: Any\nentry_point: any.py\n',
    })
    await register(app, 'lacking')
    const record = (): { at: string } =>
      JSON.parse(readFileSync(join(folder.path, 'virtualenvs', 'lacking', virtualenvFailure), 'utf8')) as { at: string }
    const first = await waitFor(
      'the first end',
      async () => (await sensorOf(app, 'lacking.Any')).runtime.last_error !== undefined && record(),
      120_000,
    )
    const { runtime } = await waitForState(app, 'lacking.Any', 'failed')
    expect(runtime.restarts).toBeGreaterThanOrEqual(2)
    expect(runtime.last_error).toContain('none-of-ours')
    expect(runtime.last_error).toContain('packs.setup_virtualenv')
    expect(record()).toEqual(first)
    const { body } = await app.call<{ attention: string[] }>('GET', '/v1/status')
    expect(body.attention).toContain('1 sensor has failed. See `svc sensor list`; `svc sensor tail <ref>` says why.')
  },
  150_000,
)
