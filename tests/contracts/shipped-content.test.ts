/** What comes with the program is registered without being checked: here is where it is. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkActionDefinition } from '../../src/modules/actions/definition.ts'
import { readPack } from '../../src/modules/packs/read.ts'
import { createRunners, type Runners, workflowRunners } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import { checkParameterSchema } from '../../src/lib/schema/index.ts'

let launcher: Launcher
let runners: Runners

beforeAll(async () => {
  launcher = (await createLauncher('child-process')).launcher
  runners = await createRunners({
    launcher,
    maxResultBytes: 1000,
    systemUser: 'svc-no-such-account',
    packManager: { perform: () => Promise.reject(new Error('nothing is run here')) },
  })
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

it.each(['chatops', 'core', 'examples', 'linux', 'packs'])('the actions of the pack %s are right', async (name) => {
  const pack = await readPack(join(import.meta.dirname, '../../src/modules/packs', name))
  if (!('ref' in pack)) throw new Error('the pack has no manifest')
  expect(pack.problems).toEqual([])
  expect(pack.actions.files.length).toBeGreaterThan(0)
  const definitions = [...runners.list.map(({ definition }) => definition), ...workflowRunners]
  const types = new Map(definitions.map((definition) => [definition.name, definition.runner_parameters]))
  for (const { path, document } of pack.actions.files) {
    const given = { pack: pack.ref, ...(document.value as object) } // a mapping, or it is refused
    expect([path, await checkActionDefinition(given, (name) => types.get(name))]).toEqual([
      path,
      { definition: expect.anything(), warnings: [] },
    ])
  }
})
