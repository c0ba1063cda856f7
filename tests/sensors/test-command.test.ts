/** `svc sensor test`: a sensor on a server of its own. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { writePack } from './support.ts'

const yaml = (name: string): string =>
  `class_name: ${name}\nentry_point: ${name}.sh\nsensor_type: process\ntrigger_types: [{name: ${name}}]\n`

let folder: TemporaryFolder

beforeAll(() => {
  folder = makeFolder()
  writePack(folder.path, 'tried', {
    'sensors/fails.yaml': yaml('fails').replace(
      '{name: fails}',
      '{name: fails, payload_schema: {type: object, properties: {n: {type: integer}}}}',
    ),
    'sensors/fails.sh': `#!/bin/sh
echo "with $SVC_SENSOR_CONFIG" >&2
echo '{"trigger": "tried.fails", "payload": {"n": "text"}}'
echo '{"trigger": "tried.fails", "payload": {"n": 1}}'
exit 3
`,
    'sensors/repeats.yaml': `${yaml('repeats')}poll_interval: 0.1\n`,
    'sensors/repeats.sh': `#!/bin/sh
echo '{"trigger": "tried.repeats", "payload": 7}'
echo '{"trigger": "tried.repeats"}'
`,
    'sensors/stays.yaml': yaml('stays'),
    'sensors/stays.sh': `#!/bin/sh\nsetsid sleep 3000 &\necho '{"trigger": "tried.stays"}'\nexec sleep 3000\n`,
    'config.schema.yaml': 'word: {type: string}\n',
    'word.yaml': 'word: hello\n',
  })
})

afterAll(() => folder.remove())

function start(...args: string[]) {
  const pack = join(folder.path, 'packs', 'tried')
  const child = spawn(process.execPath, ['dist/cli.js', 'sensor', 'test', pack, ...args], {
    env: { PATH: process.env['PATH'], HOME: folder.path, TMPDIR: folder.path },
  })
  const text = { stdout: '', stderr: '' }
  child.stdout.on('data', (data) => (text.stdout += String(data)))
  child.stderr.on('data', (data) => (text.stderr += String(data)))
  const code = new Promise<number | null>((resolve) => child.on('close', resolve))
  return { child, text, code }
}

/** Commands of the processes that know the folder. */
const left = (): string[] =>
  readdirSync('/proc').flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder.path)) return []
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')]
    } catch {
      return []
    }
  })

it('prints dispatches as JSON, says why one is dropped and why the sensor has failed', async () => {
  const { text, code } = start('fails', '-j', '--pack-config', join(folder.path, 'packs', 'tried', 'word.yaml'))
  expect(await code).toBe(1)
  const lines = text.stdout.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { trigger: 'tried.fails', payload: { n: 1 }, occurrence_time: expect.any(String) },
  ])
  expect(text.stderr).toContain('with {"word":"hello"}')
  expect(text.stderr).toContain('the payload does not fit trigger type "tried.fails"')
  expect(text.stderr).toContain('The sensor has ended: Failed: exit code 3. svc does not start it again.')
  expect(text.stderr).toContain('The sensor has failed: Failed: exit code 3.')
  expect(readdirSync(folder.path).filter((name) => name.startsWith('svc-trial'))).toEqual([])
}, 60_000)

it.each(variants(['SIGINT', 'SIGTERM'] as const))(
  'ends with all processes at %s, and leaves nothing',
  async (signal) => {
    const { child, text, code } = start('stays')
    await waitFor('the dispatch', () => text.stdout.includes('tried.stays {}'), 60_000)
    expect(left().some((command) => command.includes('sleep 3000'))).toBe(true)
    child.kill(signal)
    expect(await code).toBe(130)
    expect(left()).toEqual([])
    expect(readdirSync(folder.path).filter((name) => name.startsWith('svc-trial'))).toEqual([])
  },
  60_000,
)

fullOnly(it)(
  'leaves nothing when it is ended while its server starts',
  async () => {
    const { child, code } = start('stays')
    const trials = (): string[] => readdirSync(folder.path).filter((name) => name.startsWith('svc-trial'))
    await waitFor('the server to start', () => left().some((command) => command.includes(' serve ')), 60_000)
    child.kill('SIGTERM')
    expect(await code).toBe(130)
    expect([left(), trials()]).toEqual([[], []])
  },
  60_000,
)

fullOnly(it)(
  'goes on after a wrong dispatch of a program that runs again and again',
  async () => {
    const { text, code } = start('repeats', '--count', '2')
    expect(await code).toBe(0)
    expect(text.stdout).toBe('tried.repeats {}\ntried.repeats {}\n')
    expect(text.stderr).toContain('the payload is no object')
  },
  60_000,
)

fullOnly(it)(
  'names the sensors when it cannot know which one is meant',
  async () => {
    for (const args of [[], ['Other']]) {
      const { text, code } = start(...args)
      // oxlint-disable-next-line no-await-in-loop -- a server each
      expect(await code).toBe(2)
      expect(text.stdout).toContain('has the sensors fails, repeats, stays')
    }
  },
  60_000,
)
