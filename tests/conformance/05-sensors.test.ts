/** Contract 05, 5.10: the records of sensors, and what changes them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { Answer, TestApp } from '../helpers/server.ts'
import type { ErrorAnswer } from './support.ts'

type Record = { [name: string]: unknown; id: string; ref: string; enabled: boolean }

const manifest = (name: string): string => `name: ${name}\ndescription: d\nversion: 1.0.0\nauthor: a\n`
const empty = 'class One:\n    pass\n'

let server: TestApp

function write(path: string, text: string): void {
  const file = join(server.basePath, 'packs', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

async function register(...packs: string[]): Promise<{ sensors: number; problems?: { message: string }[] }> {
  const { body } = await server.call('POST', '/v1/packs/register', { packs, fail_on_failure: false })
  return body as { sensors: number }
}

const get = <T = Record>(path: string): Promise<Answer<T>> => server.call<T>('GET', `/v1${path}`)
const refsOf = async (query: string): Promise<string[]> =>
  (await get<Record[]>(`/sensortypes?${query}`)).body.map(({ ref }) => ref)

beforeAll(async () => {
  server = await createTestApp()
  write('one/pack.yaml', manifest('one'))
  write('one/sensors/deep/one.py', empty)
  write(
    'one/sensors/one.yaml',
    `class_name: One
entry_point: deep/one.py
description: Watches.
enabled: false
poll_interval: 7
trigger_types: [{name: seen, payload_schema: {type: object}}, {name: other, pack: one}]
`,
  )
  write('two/pack.yaml', manifest('two'))
  write('two/sensors/a.py', empty)
  write('two/sensors/a.yaml', 'class_name: A\nentry_point: a.py\nenabled: false\n')
  write('two/sensors/b.yml', 'class_name: B\nentry_point: a.py\nenabled: false\ntrigger_types: null\n')
  await register('one', 'two')
})

afterAll(() => server.stop())

describe('records of sensors', () => {
  it('5.10 have every attribute', async () => {
    const { body } = await get('/sensortypes/one.One')
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      uid: 'sensor_type:one:One',
      ref: 'one.One',
      pack: 'one',
      class_name: 'One',
      name: 'One',
      sensor_type: 'python',
      artifact_uri: `file://${server.basePath}/packs/one/sensors/deep/one.py`,
      entry_point: 'sensors.deep.one.One',
      description: 'Watches.',
      enabled: false,
      poll_interval: 7,
      trigger_types: ['one.seen', 'one.other'],
      metadata_file: 'sensors/one.yaml',
      runtime: { state: 'disabled', node: 'sensornode1', restarts: 0, dispatches: 0, dropped: 0 },
    })
    expect((await get(`/sensortypes/${body.id}`)).body).toEqual(body)
    expect((await get('/triggertypes/one.seen')).status).toBe(200)
    expect((await get('/sensortypes/two.B')).body).toMatchObject({ description: '', trigger_types: [] })
  })

  it.each([
    ['', ['one.One', 'two.A', 'two.B']],
    ['name=A', ['two.A']],
    ['pack=two', ['two.A', 'two.B']],
    ['enabled=false', ['one.One', 'two.A', 'two.B']],
    ['enabled=1', []],
    ['trigger=one.other', ['one.One']],
    ['trigger=one.othe', []],
    ['id=000000000000000000000000', []],
    ['limit=1&offset=1', ['two.A']],
    ['pack=two&name=One', []],
  ])('5.10 the list with "%s"', async (query, refs) => {
    expect(await refsOf(query)).toEqual(refs)
  })

  it('5.10 one is found by its id in the list', async () => {
    const { body } = await get('/sensortypes/two.A')
    expect(await refsOf(`id=${body.id}`)).toEqual(['two.A'])
  })

  it('5.10 an unknown one is 404 for GET and PUT', async () => {
    for (const answer of [
      await server.call<ErrorAnswer>('GET', '/v1/sensortypes/one.None'),
      await server.call<ErrorAnswer>('PUT', '/v1/sensortypes/one.None', { enabled: false }),
    ]) {
      expect([answer.status, answer.body.faultstring]).toEqual([
        404,
        'Resource with a reference or id "one.None" not found',
      ])
    }
  })
})

describe('what changes a sensor', () => {
  it('5.10 PUT changes `enabled` alone, by a part or by the whole record', async () => {
    const before = (await get('/sensortypes/two.A')).body
    const whole = { ...before, enabled: false, description: 'changed', pack: 'one' }
    expect((await server.call('PUT', '/v1/sensortypes/two.A', whole)).body).toEqual(before)
    expect((await server.call('PUT', `/v1/sensortypes/${before.id}`, { enabled: false })).body).toEqual(before)
    expect((await server.call('PUT', '/v1/sensortypes/two.A', { enabled: 'yes' })).status).toBe(400)
    expect((await server.call('PUT', '/v1/sensortypes/two.A', {})).status).toBe(400)
    expect((await get('/sensortypes/two.A')).body).toEqual(before)
  })

  it('5.10 registering again keeps the id, and `enabled` until the file changes it', async () => {
    write('three/pack.yaml', manifest('three'))
    write('three/sensors/a.py', empty)
    const say = (more: string): void => write('three/sensors/a.yaml', `class_name: A\nentry_point: a.py\n${more}`)
    say('enabled: true\npoll_interval: 5\n')
    write('three/sensors/a.py', 'class A:\n    def __init__(self, service, config, poll_interval): pass\n')
    await register('three')
    const first = (await get('/sensortypes/three.A')).body
    expect(first).toMatchObject({ enabled: true, poll_interval: 5 })
    await server.call('PUT', '/v1/sensortypes/three.A', { enabled: false })
    say('enabled: true\ndescription: Says more.\n')
    expect(await register('three')).toMatchObject({ sensors: 1 })
    const { poll_interval: _p, runtime: _r, ...others } = first
    const { runtime: _, ...changed } = (await get('/sensortypes/three.A')).body
    expect(changed).toEqual({ ...others, enabled: false, description: 'Says more.' })
    say('enabled: false\n')
    await register('three')
    say('enabled: true\n')
    await register('three')
    expect((await get('/sensortypes/three.A')).body).toMatchObject({ id: first.id, enabled: true })
  })

  it('5.10 its record goes with its file, not with a broken one, and with its pack', async () => {
    write('four/pack.yaml', manifest('four'))
    write('four/sensors/a.py', empty)
    write('four/sensors/a.yaml', 'class_name: A\nentry_point: a.py\nenabled: false\n')
    write('four/sensors/b.yaml', 'class_name: B\nentry_point: a.py\nenabled: false\n')
    await register('four')
    write('four/sensors/a.yaml', 'class_name: [\n')
    rmSync(join(server.basePath, 'packs', 'four', 'sensors', 'b.yaml'))
    await register('four')
    expect(await refsOf('pack=four')).toEqual(['four.A'])
    write('four/sensors/a.yaml', 'class_name: Renamed\nentry_point: a.py\nenabled: false\n')
    await register('four')
    expect(await refsOf('pack=four')).toEqual(['four.Renamed'])
  })
})
