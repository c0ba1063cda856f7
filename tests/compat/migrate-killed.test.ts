/** An import that is killed loses nothing: the next one ends it, whatever it was at. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { runCli, startCli } from '../helpers/cli.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
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

/** Ids of StackStorm. @param kind tells kinds apart */
const idOf = (kind: number, i: number): string =>
  `5a1f0c2e${kind.toString(16).padStart(4, '0')}${i.toString(16).padStart(12, '0')}`

const RUNS = 4000
const endpoints = ['executions', 'triggerinstances', 'ruleenforcements', 'traces'] as const

function writeHistory(): void {
  const time = '2017-11-29T20:00:00.000000Z'
  const numbers = Array.from({ length: RUNS }, (_, i) => i)
  old.write(
    'executions.json',
    numbers.map((i) => ({
      id: idOf(1, i),
      status: 'succeeded',
      start_timestamp: time,
      action: { ref: 'pack0.act', runner_type: 'noop' },
      runner: { name: 'noop' },
      liveaction: { id: idOf(2, i) },
      result: { n: i, text: 'x'.repeat(200) },
    })),
  )
  old.write(
    'instances.json',
    numbers.map((i) => ({ id: idOf(3, i), trigger: 'pack0.came', payload: { i }, occurrence_time: time })),
  )
  old.write(
    'enforcements.json',
    numbers.map((i) => ({
      id: idOf(4, i),
      trigger_instance_id: idOf(3, i),
      execution_id: idOf(1, i),
      rule: { ref: 'pack0.rule' },
      enforced_at: time,
    })),
  )
  old.write(
    'traces.json',
    numbers.map((i) => ({
      id: idOf(5, i),
      trace_tag: `run-${i}`,
      start_timestamp: time,
      action_executions: [{ object_id: idOf(1, i), ref: 'pack0.act', updated_at: time }],
      rules: [],
      trigger_instances: [{ object_id: idOf(3, i), ref: 'pack0.came', updated_at: time }],
    })),
  )
}

const countOf = async (path: string): Promise<number> =>
  Number((await app.call('GET', `/v1/${path}?limit=1`)).headers.get('x-total-count'))

const seed = seedOfRun()

fullOnly(test)(
  `killed again and again at random while it takes over the history, seed ${seed}`,
  async () => {
    old.write('keys.json', [])
    writeHistory()
    const random = createRandom(seed)
    const words = ['migrate', 'import', old.path, '--history', '--config-file', app.configFile]
    let before = 0
    const sum = async (): Promise<number> => {
      const counts = await Promise.all(endpoints.map(countOf))
      return counts.reduce((a, b) => a + b, 0)
    }
    for (let kills = 0; kills < 8; kills += 1) {
      const more = 1 + random.below(2500)
      const run = startCli(words, {})
      const enough = Math.min(before + more, endpoints.length * RUNS)
      await waitFor('some more records', async () => run.process.exitCode !== null || (await sum()) >= enough)
      run.process.kill('SIGKILL')
      await run.exit
      before = await sum()
    }
    const last = await runCli([...words, '-j'], {})
    expect(last).toMatchObject({ code: 0, stderr: '' })
    expect(await Promise.all(endpoints.map(countOf))).toEqual(endpoints.map(() => RUNS))
    for (const i of [0, RUNS / 2, RUNS - 1]) {
      const members = (await app.call('GET', `/v1/traces/${idOf(5, i)}`)).body as Record<string, unknown[]>
      expect([members['action_executions'], members['trigger_instances']]).toMatchObject([
        [{ object_id: idOf(1, i) }],
        [{ object_id: idOf(3, i) }],
      ])
    }
    expect((await runCli(words, {})).stdout).toMatch(/^Nothing has changed\.$/m)
  },
  600_000,
)
