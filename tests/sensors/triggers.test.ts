/** What sensors are told of the triggers of their types: each change once, whenever it comes (contract 05, 5.10). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { register, waitForState, writePack } from './support.ts'

interface Line {
  type: string
  trigger?: { type: string; parameters: object; description?: string }
  triggers?: { type: string; parameters: object }[]
}

let server: TestApp

/** Writes down all that svc says. */
const listener = (notes: string): string => `#!/bin/sh\nexec cat > "${notes}"\n`
const schema = '{type: object, properties: {place: {type: string}}, additionalProperties: false}'
const types = `trigger_types:
  - name: plain
  - {name: near, parameters_schema: ${schema}}
  - {name: far, parameters_schema: ${schema}}
`
const yaml = `class_name: Told\nentry_point: told.sh\nsensor_type: process\n${types}`
const rule = (pack: string, type: string, parameters: object) => ({
  name: 'r',
  pack: 'default',
  enabled: true,
  trigger: { type: `${pack}.${type}`, parameters },
  action: { ref: 'core.noop' },
})

/** `type parameters` of each line, without the types that others have changed. */
function toldTo(notes: string): string[] {
  const lines = readFileSync(notes, 'utf8').split('\n').slice(0, -1)
  return lines.flatMap((text) => {
    const { type, trigger, triggers = [] } = JSON.parse(text) as Line
    const known = trigger === undefined ? triggers : [trigger]
    return known.map((each) => `${type} ${each.type} ${Object.values(each.parameters).join()}`).sort()
  })
}

/** All that it has been told before a trigger that is created now. */
async function allToldTo(notes: string, pack: string): Promise<string[]> {
  const last = { ...rule(pack, 'far', { place: 'the last' }), name: `last-${pack}` }
  expect((await server.call('POST', '/v1/rules', last)).status).toBe(201)
  const end = `add_trigger ${pack}.far the last`
  await waitFor('the last trigger', () => toldTo(notes).includes(end))
  return toldTo(notes).slice(0, -1)
}

beforeAll(async () => {
  server = await createTestApp()
})

afterAll(() => server.stop())

describe('a sensor', () => {
  it('5.10 gets each trigger that differs in parameters, of each of its types, and each change once', async () => {
    const notes = join(server.basePath, 'told.notes')
    writePack(server.basePath, 'told', { 'sensors/told.sh': listener(notes), 'sensors/told.yaml': yaml })
    await register(server, 'told')
    await waitForState(server, 'told.Told', 'running')
    const put = (name: string, type: string, place: string) =>
      server.call('POST', '/v1/rules', { ...rule('told', type, { place }), name })
    await put('one', 'near', 'here')
    await put('two', 'near', 'there')
    await put('same', 'near', 'here')
    await put('other', 'far', 'here')
    await server.call('DELETE', '/v1/rules/default.one')
    await server.call('PUT', '/v1/rules/default.two', { ...rule('told', 'near', { place: 'elsewhere' }), name: 'two' })
    await server.call('DELETE', '/v1/rules/default.same')
    const type = (await server.call('GET', '/v1/triggertypes/told.plain')).body
    await server.call('PUT', '/v1/triggertypes/told.plain', { ...type, description: 'Another.' })
    const told = await allToldTo(notes, 'told')
    // Of one change of a rule, which has both, either may come first.
    expect([...told.slice(0, 4), ...told.slice(4, 6).sort(), ...told.slice(6)]).toEqual([
      'start told.plain ',
      'add_trigger told.near here',
      'add_trigger told.near there',
      'add_trigger told.far here',
      'add_trigger told.near elsewhere',
      'remove_trigger told.near there',
      'remove_trigger told.near here',
      'update_trigger told.plain ',
    ])
  })

  fullOnly(it)('5.10 is told of what changes between its decision to start and its start', async () => {
    // All turns to start are taken by sensors that have not done their setup.
    const ready = join(server.basePath, 'ready')
    const names = ['A', 'B', 'C', 'D']
    const slow = names.map((name): [string, string] => [
      `sensors/${name}.yaml`,
      `class_name: ${name}\nentry_point: slow.py\n`,
    ])
    const python = names.map((name) => `class ${name}(Slow):\n    pass\n`).join('\n')
    writePack(server.basePath, 'slow', {
      ...Object.fromEntries(slow),
      'sensors/slow.py': `import os, time
class Slow(object):
    def __init__(self, sensor_service, config):
        pass
    def setup(self):
        while not os.path.exists("${ready}"):
            time.sleep(0.02)
    def run(self):
        while True:
            time.sleep(1)
${python}`,
    })
    await register(server, 'slow')
    await Promise.all(names.map((name) => waitForPid(`slow.${name}`)))
    const notes = join(server.basePath, 'late.notes')
    const put = (name: string, place: string) =>
      server.call('POST', '/v1/rules', { ...rule('late', 'near', { place }), name })
    writePack(server.basePath, 'late', {
      'sensors/told.sh': listener(notes),
      'sensors/told.yaml': `${yaml}enabled: false\n`,
    })
    await register(server, 'late')
    await put('early', 'before')
    await put('gone', 'gone')
    await server.call('PUT', '/v1/sensortypes/late.Told', { enabled: true })
    await waitForState(server, 'late.Told', 'starting')
    await put('meanwhile', 'meanwhile')
    await server.call('DELETE', '/v1/rules/default.gone')
    await put('brief', 'brief')
    await server.call('DELETE', '/v1/rules/default.brief')
    writeFileSync(ready, '')
    await waitForState(server, 'late.Told', 'running')
    const told = await allToldTo(notes, 'late')
    expect(told.sort()).toEqual([
      'add_trigger late.near meanwhile',
      'remove_trigger late.near gone',
      'start late.near before',
      'start late.near gone',
      'start late.plain ',
    ])
  })
})

const waitForPid = (ref: string) =>
  waitFor(`the process of ${ref}`, async () => {
    const { body } = await server.call<{ runtime: { pid?: number } }>('GET', `/v1/sensortypes/${ref}`)
    return body.runtime.pid
  })
