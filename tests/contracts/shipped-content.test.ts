/** What comes with the program is registered without being checked: here is where it is. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkDefinition } from '../../src/modules/actions/definition.ts'
import { readPack } from '../../src/modules/packs/read.ts'
import { createRunners, type Runners } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import { checkParameterSchema } from '../../src/schema.ts'

let launcher: Launcher
let runners: Runners

beforeAll(async () => {
  launcher = (await createLauncher('child-process')).launcher
  runners = await createRunners({ launcher, maxResultBytes: 1000, systemUser: 'svc-no-such-account' })
})
afterAll(async () => {
  await runners.stop()
  await launcher.stop()
})

it('the parameters of runner types are right', () => {
  for (const { definition } of runners.list) {
    for (const [name, schema] of Object.entries(definition.runner_parameters)) {
      expect(name).toMatch(/^\w+$/)
      expect([definition.name, name, checkParameterSchema(schema)]).toEqual([definition.name, name, undefined])
    }
  }
})

it('the actions of the core pack are right', async () => {
  const core = await readPack(join(import.meta.dirname, '../../src/modules/packs/core'))
  if (!('ref' in core)) throw new Error('the core pack has no manifest')
  expect(core.problems).toEqual([])
  expect(core.actions.files.length).toBeGreaterThan(0)
  const types = new Map(runners.list.map(({ definition }) => [definition.name, definition.runner_parameters]))
  for (const { path, document } of core.actions.files) {
    const given = { pack: core.ref, ...(document.value as object) } // a mapping, or it is refused
    expect([path, checkDefinition(given, (name) => types.get(name))]).toEqual([path, { definition: expect.anything() }])
  }
})
