/** What `svc init`, `svc pack create` and `svc action new` create works at once (contract 09; docs/packs.md). */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runnerParameterNames } from '../../src/cli/scaffold/action.ts'
import { shippedPacks } from '../../src/cli/scaffold/names.ts'
import { createTestApp } from '../helpers/app.ts'
import { jsonOf, runCli, spawnCli, startCli, waitForOutput, type CliExit } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { projectRoot, type TestApp } from '../helpers/server.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'

let server: TestApp
let folder: TemporaryFolder

beforeAll(async () => {
  server = await createTestApp()
}, 120_000)
afterAll(() => server.stop())
beforeEach(() => {
  folder = makeFolder()
})
afterEach(() => folder.remove())

const at = (...names: string[]): string => join(folder.path, ...names)

/** Beside the server of the tests. */
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
function alone(args: readonly string[], cwd = folder.path): Promise<CliExit> {
  return runCli(args, { HOME: folder.path, USER: 'alice' }, { cwd })
}

async function ended(code: number, run: Promise<CliExit>): Promise<string> {
  const { code: found, stdout, stderr } = await run
  expect([found, stdout, stderr]).toEqual([code, stdout, stderr])
  return stdout
}

test('the packs and runner parameters that scaffolding knows are those of the server', async () => {
  const { body: packs } = await server.call<{ ref: string }[]>('GET', '/v1/packs')
  const shipped = readdirSync(join(projectRoot, 'src/modules/packs'), { withFileTypes: true })
    .filter((entry) => existsSync(join(projectRoot, 'src/modules/packs', entry.name, 'pack.yaml')))
    .map(({ name }) => name)
  expect(new Set([...packs.map(({ ref }) => ref), ...shipped])).toEqual(new Set(shippedPacks))
  for (const [kind, runner] of [
    ['shell', 'local-shell-script'],
    ['python', 'python-script'],
  ] as const) {
    const { body } = await server.call<{ runner_parameters: object }>('GET', `/v1/runnertypes/${runner}`)
    expect(Object.keys(body.runner_parameters).toSorted()).toEqual(runnerParameterNames[kind])
  }
})

test('a new pack is in the packs folder of the configuration, and its actions run, as those of a crontab', async () => {
  expect(await ended(0, svc('pack', 'create', 'web'))).toContain('svc pack register web')
  await ended(0, svc('action', 'new', 'web.check', '--parameter', 'host', 'tries:integer=3', 'token:secret=geheimes'))
  await ended(
    0,
    svc('rule', 'new', 'web.push', '--webhook', 'github', '--run', 'web.check', '--notify', 'mail', '--enable'),
  )
  writeFileSync(at('crontab'), 'A=b c\nMAILTO=ops@example.org\n# Says it.\n0 3 * * mon-fri cat; echo "$A"%input\n')
  await ended(0, svc('crontab', 'import', 'crontab', '--timezone', 'Europe/Berlin'))
  await ended(0, svc('pack', 'register', 'web', 'crontab'))
  expect(await ended(0, svc('run', '-k', 'stdout', 'crontab.cat'))).toBe('input\nb c\n')
  const { body } = await server.call<object>('GET', '/v1/rules/crontab.cat')
  expect(body).toMatchObject({
    enabled: false,
    description: 'Says it.',
    notify: [{ use: 'mail', to: ['ops@example.org'], on: ['failed', 'timeout'] }],
    trigger: { parameters: { cron: '0 3 * * mon-fri', timezone: 'Europe/Berlin' } },
  })
  expect(await ended(0, svc('webhook', 'list', '-p', 'web', '-a', 'parameters.url'))).toContain('web/push')
  expect(await ended(0, svc('run', '-k', 'stdout', 'web.hello', 'name=Ada'))).toBe('Hello, Ada!\n')
  expect(await ended(0, svc('run', '-k', 'stdout', 'web.check', 'host=a b'))).toBe('check runs host=a b tries=3\n')
  const script = join(server.basePath, 'packs/web/actions/check.sh')
  expect(() => accessSync(script, constants.X_OK)).not.toThrow()
})

fullOnly(test)('a Python action runs, whatever its name is', async () => {
  await ended(0, svc('pack', 'create', 'py'))
  const names = ['report', '2nd-report_x', 'action', '_']
  for (const name of names) {
    await ended(0, svc('action', 'new', `py.${name}`, '--python', '--parameter', 'n:integer', 'o:object={"a": [1]}'))
  }
  await ended(0, svc('pack', 'register', 'py'))
  for (const name of names) {
    const { result } = await jsonOf<{ result: { result: unknown } }>(svc, ['run', `py.${name}`, 'n=1'])
    expect(result.result).toEqual({ message: 'It works.', n: 1, o: { a: [1] } })
  }
})

describe('without a configuration', () => {
  test('packs are in the current folder, or where --path says; --path takes any folder', async () => {
    expect(await ended(0, alone(['pack', 'create', 'web']))).toContain('svc pack install ./web')
    await ended(0, alone(['action', 'new', 'web.one']))
    await ended(0, alone(['action', 'new', 'web.two'], at('web')))
    mkdirSync(at('real'))
    symlinkSync('real', at("link 'n' $(x)"))
    const odd = await ended(0, alone(['pack', 'create', 'deep', '--path', "web/../link 'n' $(x)"]))
    expect(odd).toContain(`svc pack install './link '\\''n'\\'' $(x)/deep'`)
    expect(readdirSync(at('web/actions')).filter((name) => name.endsWith('.yaml'))).toEqual([
      'hello.yaml',
      'one.yaml',
      'two.yaml',
    ])
    expect(readdirSync(at('real'))).toEqual(['deep'])
  })

  test('nothing is replaced', async () => {
    await ended(0, alone(['pack', 'create', 'web']))
    writeFileSync(at('web/actions/hello.sh'), 'mine')
    expect(await ended(1, alone(['pack', 'create', 'web']))).toContain('web/actions/hello.sh\n')
    expect(await ended(1, alone(['action', 'new', 'web.hello']))).toContain('web/actions/hello.sh\n')
    expect(readFileSync(at('web/actions/hello.sh'), 'utf8')).toBe('mine')
  })

  test.each([
    [['pack', 'create', 'core'], 'The pack name "core" belongs to svc.'],
    [['pack', 'create', '_global'], 'belongs to svc'],
    [['pack', 'create', '../web'], '"../web" cannot be the name of a pack'],
    [['pack', 'create', 'a'.repeat(101)], 'at most 100 characters'],
    [['pack', 'create', 'web', '--path', ''], 'The path is empty.'],
    [['action', 'new', 'web'], '"web" cannot be the reference of an action'],
    [['action', 'new', 'web.a/b'], 'cannot be the reference of an action'],
    [['action', 'new', 'web.-x'], 'cannot be the reference of an action'],
    [['action', 'new', 'none.a'], 'There is no pack "none" in .. Create it with: svc pack create none'],
    [['init', 'x', '--pack', 'no-name'], '"no-name" cannot be the name of a pack'],
  ])('%j is refused', async (args, message) => {
    expect(await ended(2, alone(args))).toContain(message)
    expect(readdirSync(folder.path)).toEqual([])
  })

  fullOnly(test)('packs are valid for svc pack validate', async () => {
    await ended(0, alone(['init', '.', '--pack', 'web']))
    await ended(0, alone(['action', 'new', 'web.check', '--python', '--parameter', 'a:secret', 'b:boolean=true']))
    expect(await ended(0, alone(['pack', 'validate', 'packs/web']))).toContain('| actions  | 2 ')
  })
})

test('the README of svc init has five lines, which name what is there', async () => {
  await ended(0, alone(['init', 'My Jobs!']))
  const lines = readFileSync(at('My Jobs!/README.md'), 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => line.replace(/ *#.*$/, '').trim())).toEqual([
    'svc serve',
    'svc run my_jobs.hello name=you',
    'svc action new my_jobs.check --shell',
    'svc pack register my_jobs',
    'svc run my_jobs.check',
  ])
  expect(readdirSync(at('My Jobs!')).toSorted()).toEqual(['.gitignore', 'README.md', 'packs', 'svc.conf'])
  if (tier === 'daily') return
  const env = {
    HOME: folder.path,
    ...Object.fromEntries(['API', 'AUTH', 'STREAM'].map((name) => [`SVC_${name}__PORT`, '0'])),
  }
  const serve = startCli(['serve'], env, { cwd: at('My Jobs!') })
  try {
    await waitForOutput(serve, 'the server to be ready', () => /API (\S+)/.test(serve.stdout()))
    const [, api = ''] = /API (\S+)/.exec(serve.stdout()) ?? []
    const printed: string[] = []
    for (const line of lines.slice(1)) {
      const words = line
        .replace(/ *#.*$/, '')
        .trim()
        .split(' ')
        .slice(1)
      const { code, stdout } = await spawnCli(words, { ...env, SVC_API_URL: `${api}/v1` }, { cwd: at('My Jobs!') })
      expect([code, stdout]).toEqual([0, stdout])
      printed.push(stdout)
    }
    expect(printed[0]).toContain('Hello, you!')
    // The data is where .gitignore says.
    expect(readdirSync(at('My Jobs!')).toSorted()).toEqual(['.gitignore', 'README.md', 'data', 'packs', 'svc.conf'])
  } finally {
    serve.process.kill('SIGTERM')
    await serve.exit
  }
})
