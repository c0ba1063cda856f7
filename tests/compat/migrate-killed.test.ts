/** An import that is killed loses nothing: the next one ends it, whatever it was at. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { runCli, startCli } from '../helpers/cli.ts'
import { variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { makeInstallation, manifest, PACKS, type Installation } from './installation.ts'

const KEYS = 200
const PACK_COUNT = 12

let old: Installation
let app: InProcessApp
beforeEach(async () => {
  old = makeInstallation()
  app = await createTestApp()
  old.write(
    'keys.json',
    Array.from({ length: KEYS }, (_, i) => ({ name: `key${i}`, value: `value ${i}`, scope: 'st2kv.system' })),
  )
  for (let i = 0; i < PACK_COUNT; i += 1) {
    old.write(`${PACKS}/pack${i}/pack.yaml`, manifest(`pack${i}`))
    old.write(`${PACKS}/pack${i}/actions/act.yaml`, 'name: act\nrunner_type: noop\n')
    old.write(`${PACKS}/pack${i}/README.md`, 'x'.repeat(200_000))
  }
  old.write('rules.json', [
    {
      name: 'last',
      pack: 'default',
      trigger: { type: 'core.st2.webhook', parameters: { url: 'x' } },
      criteria: {},
      action: { ref: 'pack0.act' },
    },
  ])
})
afterEach(async () => {
  await app.stop()
  old.remove()
})

const hasKey = async (name: string): Promise<boolean> => (await app.call('GET', `/v1/keys/${name}`)).status === 200
const packs = (): string[] => readdirSync(join(app.basePath, 'packs'))

const moments: readonly { when: string; isTime: () => Promise<boolean> }[] = [
  { when: 'some keys are there', isTime: () => hasKey('key20') },
  {
    when: 'a pack is being copied',
    isTime: () => Promise.resolve(packs().some((name) => name.startsWith('.migrate-new-'))),
  },
  { when: 'a pack is there', isTime: () => Promise.resolve(existsSync(join(app.basePath, 'packs', 'pack5'))) },
]

test.each(variants(moments))('killed when $when', async ({ isTime }) => {
  const words = ['migrate', 'import', old.path, '--config-file', app.configFile]
  const first = startCli(words, {})
  await waitFor('the moment', async () => first.process.exitCode !== null || (await isTime()))
  first.process.kill('SIGKILL')
  await first.exit
  const second = await runCli([...words, '-j'], {})
  expect(second).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(second.stdout)).toMatchObject({ attention: [], problems: [] })
  for (let i = 0; i < KEYS; i += 1) expect(await hasKey(`key${i}`)).toBe(true)
  const expected = Array.from({ length: PACK_COUNT }, (_, i) => `pack${i}`)
  expect(packs().toSorted()).toEqual(['default', ...expected].toSorted())
  const actions = (await app.call('GET', '/v1/actions?name=act')).body
  expect(actions).toHaveLength(PACK_COUNT)
  expect((await app.call('GET', '/v1/rules/default.last')).status).toBe(200)
  expect((await runCli(words, {})).stdout).toMatch(/^Nothing has changed\.$/m)
})
