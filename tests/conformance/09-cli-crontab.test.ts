/**
 * `svc crontab import`: crontabs with everything that cron understands become packs that a server registers, with the times
 * that croniter reads from the same lines (`tests/fixtures/crontabs/next-times.py`).
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { nextTime } from '../../src/modules/timers/next-time.ts'
import { readTimer } from '../../src/modules/triggers/builtin/timer-parameters.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { createTestApp } from '../helpers/app.ts'
import { jsonOf, runCli, startCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { projectRoot, type TestApp } from '../helpers/server.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

interface Imported {
  pack: string
  folder: string
  jobs: { line: number; rule: string; action: string; cron: string; enabled: boolean; next_runs: string[] }[]
  not_converted: { line: number }[]
  created: { path: string; text: string }[]
  changed: { path: string }[]
  removed: string[]
  unchanged: number
}

interface Rule {
  ref: string
  enabled: boolean
  description: string
  trigger: { type: 'core.svc.CronTimer'; parameters: Record<string, unknown> }
  notify?: unknown
}

const crontabs = join(projectRoot, 'tests/fixtures/crontabs')
const nextTimes = JSON.parse(readFileSync(join(crontabs, 'next-times.json'), 'utf8')) as Record<
  string,
  Record<string, string[]>
>
/** After which next-times.py counts, as wall time of the zone. */
const AFTER = '2030-01-10T12:34:00Z'
const names = readdirSync(crontabs)
  .filter((name) => name.endsWith('.cron') && name !== 'invalid.cron')
  .map((name) => basename(name, '.cron'))
const systemNames = ['system', 'packages']

let server: TestApp
let folder: TemporaryFolder

beforeAll(async () => {
  // Nothing runs by itself: a rule that is enabled here only stands there.
  server = await createTestApp({ settings: { 'timersengine.enable': 'False' } })
}, 120_000)
afterAll(() => server.stop())
beforeEach(() => {
  folder = makeFolder()
})
afterEach(() => folder.remove())

const at = (...parts: string[]): string => join(folder.path, ...parts)

function svc(...args: string[]): Promise<CliExit> {
  const env = {
    HOME: folder.path,
    USER: 'alice',
    SVC_API_URL: `${server.urls.api}/v1`,
    SVC_CONFIG_FILE: server.configFile,
  }
  return runCli(args, env, { cwd: folder.path })
}

/** Where there is no configuration. */
function alone(args: readonly string[], input?: string): Promise<CliExit> {
  return runCli(
    ['crontab', 'import', ...args],
    { HOME: folder.path, USER: 'alice' },
    { cwd: folder.path, ...(input === undefined ? {} : { input }) },
  )
}

async function ended(code: number, run: Promise<CliExit>): Promise<string> {
  const { code: found, stdout, stderr } = await run
  expect([found, stdout, stderr]).toEqual([code, stdout, stderr])
  return stdout
}

function importFixture(name: string, ...flags: string[]): Promise<Imported> {
  const system = systemNames.includes(name) ? ['--system'] : []
  const file = join(crontabs, `${name}.cron`)
  return jsonOf<Imported>(svc, ['crontab', 'import', file, '--timezone', 'Europe/Berlin', ...system, ...flags])
}

async function register(pack: string): Promise<void> {
  const { body, text } = await server.call('POST', '/v1/packs/register', { packs: [pack], fail_on_failure: false })
  expect([body['problems'] ?? [], body['warnings'] ?? [], text]).toEqual([[], [], text])
}

async function rulesOf(pack: string): Promise<Map<string, Rule>> {
  const { body } = await server.call<Rule[]>('GET', `/v1/rules?pack=${pack}&limit=-1`)
  return new Map(body.map((rule) => [rule.ref, rule]))
}

function nextOf({ trigger: { type, parameters } }: Rule, count: number): string[] {
  const read = readTimer(type, parameters, 'UTC')
  if ('problem' in read) throw new Error(read.problem)
  const offset =
    Date.parse(AFTER) -
    Date.parse(`${new Date(AFTER).toLocaleString('sv', { timeZone: String(parameters['timezone']) })}Z`)
  const times: string[] = []
  for (let last = (Date.parse(AFTER) + offset) * 1000; times.length < count;) {
    last = nextTime(read.schedule, 0, last) ?? Infinity
    times.push(new Date(last / 1000).toISOString().replace('.000Z', 'Z'))
  }
  return times
}

describe.each(variants(['calendar', ...names.filter((name) => name !== 'calendar')]))('%s.cron', (name) => {
  test('becomes a pack of a server, whose rules are due when the lines are', async () => {
    const { pack, jobs } = await importFixture(name)
    await register(pack)
    const rules = await rulesOf(pack)
    const wanted = nextTimes[name] ?? {}
    expect(jobs.map(({ line }) => String(line))).toEqual(Object.keys(wanted))
    expect([...rules.keys()].toSorted()).toEqual(jobs.map(({ rule }) => rule).toSorted())
    for (const { line, rule: ref } of jobs) {
      const rule = rules.get(ref)
      expect(rule?.enabled).toBe(false)
      expect([line, ...(rule === undefined ? [] : nextOf(rule, 20))]).toEqual([line, ...(wanted[String(line)] ?? [])])
    }
    // The same file gives the same pack.
    const again = await importFixture(name)
    expect([again.created, again.changed, again.removed]).toEqual([[], [], []])
    rmSync(join(server.basePath, 'packs', pack), { recursive: true })
  })
})

test('delays and recipients of mails are in the rules', async () => {
  const told = async (name: string): Promise<unknown[]> => {
    const { pack } = await importFixture(name)
    await register(pack)
    const rules = [...(await rulesOf(pack)).values()]
    rmSync(join(server.basePath, 'packs', pack), { recursive: true })
    return rules
      .map(({ ref, trigger, notify }) => [ref, trigger.parameters['jitter_seconds'] ?? 0, notify ?? null] as const)
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([, ...rest]) => rest)
  }
  const failed = (...to: string[]): unknown => [{ use: 'mail', to, on: ['failed', 'timeout'] }]
  expect(await told('mail')).toEqual([
    [0, null],
    [0, null],
    [0, null],
    [0, failed('ops@example.org')],
    [0, null],
    [0, failed('ops@example.org', 'root', 'dev@example.org')],
  ])
  expect((await told('packages')).map((rule) => (rule as [number])[0]).toSorted((a, b) => a - b)).toEqual([
    0, 0, 0, 1800,
  ])
})

test('every file that is made of a crontab', async () => {
  const { created, jobs } = await importFixture('percent', '--dry-run')
  const text = created
    .map((file) => `=== ${file.path.slice(server.basePath.length)}\n${file.text}`)
    .join('\n')
    .replaceAll(crontabs, '…')
  await expect(text).toMatchFileSnapshot(join(projectRoot, 'tests/golden/crontabs/percent.txt'))
  expect(jobs.every(({ next_runs: runs }) => runs.length === 2)).toBe(true)
  expect(readdirSync(join(server.basePath, 'packs'))).not.toContain('crontab_percent')
})

fullOnly(test.for(names))('every file of %s.cron', async (name, { expect: expecting }) => {
  const { created } = await importFixture(name, '--dry-run')
  const text = created.map((file) => `=== ${file.path.slice(server.basePath.length)}\n${file.text}`).join('\n')
  await expecting(text.replaceAll(crontabs, '…')).toMatchFileSnapshot(
    join(projectRoot, `tests/golden/crontabs/${name}.txt`),
  )
})

fullOnly(test)('commands get the variables, the shell, the folder and the input that cron gives them', async () => {
  const printed = async (name: string): Promise<string[]> => {
    const { pack, jobs } = await importFixture(name)
    await register(pack)
    const outputs: string[] = []
    for (const { action } of jobs) {
      const { result } = await jsonOf<{ result: { stdout: string } }>(svc, ['run', action])
      outputs.push(result.stdout)
    }
    return outputs
  }
  expect(await printed('environment')).toEqual([
    '[  two blanks  ][it is "quoted"][][a value with blanks # and no comment][$HOME/bin][/tmp]',
    'changed',
    expect.stringMatching(/^\/bin\/sh .*\.sh$/),
  ])
  expect(await printed('percent')).toEqual([
    'first line\nsecond line',
    '--',
    '',
    'b % INPUT\nINPUT',
    'got one\ngot $HOME\ngot `id`',
    'back\\%slash',
  ])
})

fullOnly(test.skipIf(process.getuid?.() !== 0))('jobs run as the user of their line, or of --user', async () => {
  await ensureDebianPackage('sudo', '/usr/bin/sudo')
  writeFileSync(
    at('users'),
    '@daily nobody id -un; pwd; echo $HOME $USER\nHOME=/tmp\n@daily root id -un; pwd; cat%input\n',
  )
  writeFileSync(
    at('own'),
    '@daily id -un; echo "$0"\nSHELL=/bin/bash\n@hourly [[ 1 = 1 ]] && id -un\nHOME=/\n@weekly [[ 1 = 1 ]] && id -un; echo "$USER"\n',
  )
  const outputs: string[] = []
  for (const flags of [
    [at('users'), '--system'],
    [at('own'), '--user', 'nobody'],
  ]) {
    const { pack, jobs } = await jsonOf<Imported>(svc, ['crontab', 'import', ...flags])
    await register(pack)
    for (const { action } of jobs) {
      const { stdout } = await svc('run', '-j', action)
      const { result } = JSON.parse(stdout) as { result: { stdout: string; stderr: string } }
      outputs.push(`${result.stdout}${result.stderr}`.trim())
    }
  }
  // The home of nobody does not exist: cron would not run these jobs either.
  const noHome = expect.stringContaining('cd: ') as string
  expect(outputs).toEqual([noHome, 'root\n/tmp\ninput', noHome, noHome, 'nobody\nnobody'])
})

describe('an import of the same file again', () => {
  test('follows its changes, keeps what is enabled and what is not its own', async () => {
    const write = (text: string): void => writeFileSync(at('jobs.txt'), text)
    const run = (...flags: string[]): Promise<Imported> =>
      jsonOf<Imported>(svc, ['crontab', 'import', 'jobs.txt', ...flags])
    write('0 1 * * * one.sh\n0 2 * * * two.sh\n0 3 * * * three.sh\n')
    const first = await run('--enable')
    expect(first.jobs.map(({ rule, enabled }) => [rule, enabled])).toEqual([
      ['crontab_jobs.one', true],
      ['crontab_jobs.two', true],
      ['crontab_jobs.three', true],
    ])
    writeFileSync(join(first.folder, 'actions', 'own.sh'), '#!/bin/sh\n')
    await register('crontab_jobs')
    write('# New.\n0 2 * * * new.sh\n0 1 * * * one.sh\n0 23 * * * two.sh\n')
    const second = await run()
    const short = (path: string): string => path.slice(first.folder.length + 1)
    expect({
      created: second.created.map(({ path }) => short(path)),
      changed: second.changed.map(({ path }) => short(path)),
      removed: second.removed.map(short).toSorted(),
      enabled: second.jobs.map(({ rule, enabled }) => [rule, enabled]),
    }).toEqual({
      created: ['actions/new.sh', 'actions/new.yaml', 'rules/new.yaml'],
      changed: ['actions/two.sh', 'rules/two.yaml', 'README.md'],
      removed: ['actions/three.sh', 'actions/three.yaml', 'rules/three.yaml'],
      enabled: [
        ['crontab_jobs.new', false],
        ['crontab_jobs.one', true],
        ['crontab_jobs.two', true],
      ],
    })
    expect(readdirSync(join(first.folder, 'actions'))).toContain('own.sh')
    await register('crontab_jobs')
    const rules = await rulesOf('crontab_jobs')
    const told = new Map([...rules.values()].map(({ ref, enabled, description }) => [ref, [enabled, description]]))
    expect(told).toEqual(
      new Map([
        ['crontab_jobs.new', [false, 'New.']],
        ['crontab_jobs.one', [true, expect.any(String)]],
        ['crontab_jobs.two', [true, expect.any(String)]],
      ]),
    )
    expect(rules.get('crontab_jobs.two')?.trigger.parameters).toMatchObject({
      cron: '0 23 * * *',
      timezone: expect.any(String),
    })
    // A registration takes over that a file is enabled now.
    await run('--enable')
    await register('crontab_jobs')
    expect((await rulesOf('crontab_jobs')).get('crontab_jobs.new')?.enabled).toBe(true)
  })

  test('leaves what somebody has made his own, and refuses other packs', async () => {
    writeFileSync(at('jobs'), '0 1 * * * one.sh\n')
    mkdirSync(at('cron/actions'), { recursive: true })
    writeFileSync(at('cron/actions/one.sh'), '#!/bin/sh\necho another\n')
    expect(await ended(1, alone(['jobs', '--pack', 'cron']))).toContain(
      'already, so nothing was written:\n  cron/actions/one.sh\n',
    )
    rmSync(at('cron'), { recursive: true })
    await ended(0, alone(['jobs', '--pack', 'cron']))
    writeFileSync(at('cron/actions/one.sh'), '#!/bin/sh\necho mine\n')
    rmSync(at('cron/rules/one.yaml'))
    symlinkSync('/nowhere', at('cron/rules/one.yaml'))
    writeFileSync(at('jobs'), '0 2 * * * one.sh\n')
    const printed = await ended(0, alone(['jobs', '--pack', 'cron']))
    expect(printed).toContain('Left as you made it: cron/actions/one.sh\nLeft as you made it: cron/rules/one.yaml\n')
    expect(readFileSync(at('cron/actions/one.sh'), 'utf8')).toContain('mine')
    expect(await ended(1, alone(['-', '--pack', 'cron'], '0 1 * * * other.sh\n'))).toContain(
      `The pack "cron" in cron has the jobs of ${at('jobs')}, not of standard input (alice).`,
    )
    mkdirSync(at('web'))
    writeFileSync(at('web/pack.yaml'), 'name: web\n')
    expect(await ended(1, alone(['jobs', '--pack', 'web']))).toContain('is not from a crontab')
    expect(readdirSync(at('web'))).toEqual(['pack.yaml'])
  })
})

test('a crontab with an invalid line is not converted at all', async () => {
  const printed = await ended(1, alone([join(crontabs, 'invalid.cron')]))
  expect(printed).toContain('21 lines are invalid, so nothing was written.\n  line 2: the line has fewer')
  expect(printed).not.toContain('\u001b')
  expect(readdirSync(folder.path)).toEqual([])
})

test('standard input, odd file names, and what is no crontab', async () => {
  expect(await ended(0, alone(['-'], '@daily run\n'))).toContain('crontab_alice.run, disabled')
  // That of another account, with another pack or with the same: nothing of alice is lost unnoticed.
  expect(await ended(0, alone(['-', '--user', 'bob'], '@daily other\n'))).toContain(
    'crontab_bob.other, disabled, as bob',
  )
  expect(await ended(1, alone(['-'], '@daily other\n'))).toContain('  crontab_alice.run: @daily run\nIf they may go')
  expect(await ended(0, alone(['-', '--replace'], '@daily other\n'))).toContain(
    'No longer in the crontab, removed:\n  crontab_alice.run: @daily run\n',
  )
  writeFileSync(at('a\nrm -rf $HOME'), '@daily run\n')
  await ended(0, alone(['a\nrm -rf $HOME', '--pack', 'odd']))
  const script = readFileSync(at('odd/actions/run.sh'), 'utf8').split('\n')
  expect(script.filter((line) => !line.startsWith('#'))).toEqual(['cd "$HOME" || exit', 'run', ''])
  writeFileSync(at('cronjobs'), '@daily run\n')
  expect(await ended(0, alone(['cronjobs']))).toContain('cronjobs_jobs.run, disabled')
  writeFileSync(at('latin'), Buffer.from('@daily \xfc\n', 'latin1'))
  expect(await ended(2, alone(['latin']))).toContain('is not UTF-8')
  expect(await ended(2, alone(['none']))).toContain('does not exist')
  expect(await ended(2, alone(['.']))).toContain('is not a file')
  writeFileSync(at('empty'), '# nothing\n\nA=b\n@reboot run\n')
  expect(await ended(1, alone(['empty']))).toContain('has no line that can be converted.\n  line 4: ')
  writeFileSync(at('variables'), `A=${'x'.repeat(19_000)}\n${'@daily run\n'.repeat(2000)}`)
  expect(await ended(1, alone(['variables']))).toContain('Divide the crontab.')
  expect(await ended(2, alone(['-'], '# '.repeat(600_000)))).toContain('1048576 bytes')
  writeFileSync(at('large'), '# '.repeat(600_000))
  expect(await ended(2, alone(['large']))).toContain('1048576 bytes')
  expect(await ended(2, alone(['-', '--timezone', 'Mars/Olympus'], ''))).toContain('this is no time zone')
  expect(await ended(2, alone(['-', '--user', 'a b'], ''))).toContain('cannot be the name of a user')
  expect((await alone(['-', '--user', 'a', '--system'], '')).code).toBe(2)
})

fullOnly(test)(
  'killed at any moment, an import leaves a whole pack or none, and the next one completes it',
  async () => {
    const random = createRandom(seedOfRun())
    const lines = Array.from({ length: 60 }, (_, i) => `${i % 60} 3 * * * job${i}.sh\n`)
    const manifest = at('crontab_jobs/pack.yaml')
    const isWhole = (count: number): boolean =>
      ['actions', 'rules'].every((part) => {
        const names = readdirSync(at('crontab_jobs', part)).filter(
          (name) => !name.startsWith('.') && name.endsWith('.yaml'),
        )
        return names.length === count
      })
    let killed = 0
    for (let round = 0; round < 10; round += 1) {
      rmSync(at('crontab_jobs'), { recursive: true, force: true })
      writeFileSync(at('jobs'), lines.join(''))
      const cli = startCli(
        ['crontab', 'import', 'jobs', '--timezone', 'UTC'],
        { HOME: folder.path },
        { cwd: folder.path },
      )
      await waitFor('its folder', () => existsSync(at('crontab_jobs')) || cli.stdout() !== '')
      await setTimeout(random.below(40))
      cli.process.kill('SIGKILL')
      const { code } = await cli.exit
      if (code === null) killed += 1
      if (existsSync(manifest)) expect(isWhole(60)).toBe(true)
      await ended(0, alone(['jobs', '--timezone', 'UTC']))
      expect(isWhole(60)).toBe(true)
    }
    expect(killed).toBeGreaterThan(0)
  },
)
