/** The commands of the README and the build, on copies of the project. Nothing here uses the network. */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyProject, ROOT, runToEnd, type Ended } from './copy.ts'
import { startAtTerminal } from '../helpers/pty.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'

const PERMISSIVE = [
  'MIT',
  'MIT-0',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'Unlicense',
]

const folders: string[] = []

function makeCopy(options: { installed: boolean }): string {
  const folder = copyProject(options)
  folders.push(folder)
  return folder
}

function runScript(
  folder: string,
  name: string,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<Ended> {
  const script = join(folder, 'scripts', name)
  return runToEnd(process.execPath, [script, ...args], { cwd: folder, env: { ...cleanEnvironment(), ...env } })
}

/** What npm tells its scripts about itself belongs to the run of these tests, not to the copy. */
function cleanEnvironment(): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(([key]) => !/^(npm_|CI$|VITEST|NODE_ENV$)/.test(key))
  return Object.fromEntries(inherited)
}

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

describe('installing', () => {
  const unreachable = (folder: string) => ({
    npm_config_registry: 'http://127.0.0.1:9',
    npm_config_cache: join(folder, 'cache'),
    npm_config_fetch_retries: '0',
  })

  test.for(['start.mjs', 'test.mjs'])('%s refuses a Node that is too old', async (name) => {
    const preload = join(ROOT, 'tests/packaging/fake-node-version.cjs')
    const env = { FAKE_NODE_VERSION: '18.20.4', NODE_OPTIONS: `--require ${preload}` }
    const { code, stdout, stderr } = await runScript(makeCopy({ installed: false }), name, [], env)
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' })
    expect(stderr).toMatch(/^svc needs Node\.js 20 or newer [^\n]*18\.20\.4[^\n]*\n$/)
  })

  fullOnly(test)('a failure shows what npm said and what to do', async () => {
    const folder = makeCopy({ installed: false })
    const { code, stdout, stderr } = await runScript(folder, 'start.mjs', [], unreachable(folder))
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^Installing dependencies \(first start only\)…\n/)
    expect(stderr).toContain('ECONNREFUSED')
    expect(stderr).toContain('run the same command again')
    expect(stderr).not.toMatch(/^\s+at .*scripts\//m)
  })

  fullOnly(test)('a terminal shows one line that changes, and that it failed', async () => {
    const folder = makeCopy({ installed: false })
    const path = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'xterm' }
    const terminal = await startAtTerminal(
      [process.execPath, join(folder, 'scripts', 'start.mjs')],
      { ...path, ...unreachable(folder) },
      100,
    )
    expect(await terminal.exit).toBe(1)
    const text = terminal.screen()
    const begin = '\r\u001b[KInstalling dependencies (first start only)… '
    expect(text.startsWith(`${begin}0 s, 0 of `)).toBe(true)
    expect(text).toContain(`${begin}failed after `)
    expect(text.slice(text.indexOf('failed after'))).toContain('ECONNREFUSED')
  })

  fullOnly(test)('dependencies that differ from the lock file are installed anew', async () => {
    const folder = makeCopy({ installed: false })
    const record: { packages: Record<string, { integrity: string }> } = JSON.parse(
      readFileSync(join(ROOT, 'node_modules/.package-lock.json'), 'utf8'),
    )
    record.packages['node_modules/kysely'] = { integrity: 'sha512-other' }
    mkdirSync(join(folder, 'node_modules'))
    writeFileSync(join(folder, 'node_modules/.package-lock.json'), JSON.stringify(record))
    const { code, stderr } = await runScript(folder, 'start.mjs', [], unreachable(folder))
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Installing dependencies \(package-lock\.json has changed\)…\n/)
  })

  fullOnly(test)('what was left out as optional is installed when nothing starts without it', async () => {
    const folder = makeCopy({ installed: false })
    const record: { packages: Record<string, unknown> } = JSON.parse(
      readFileSync(join(ROOT, 'node_modules/.package-lock.json'), 'utf8'),
    )
    delete record.packages[`node_modules/@esbuild/${process.platform}-${process.arch}`]
    mkdirSync(join(folder, 'node_modules'))
    writeFileSync(join(folder, 'node_modules/.package-lock.json'), JSON.stringify(record))
    const { code, stderr } = await runScript(folder, 'start.mjs', [], unreachable(folder))
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Installing dependencies \(@esbuild\/\S+ missing, as with npm's option omit=optional\)…\n/)
  })

  test('a folder that cannot be written is named, with what to do', async () => {
    const folder = makeCopy({ installed: false })
    chmodSync(folder, 0o555)
    const preload = join(ROOT, 'tests/packaging/ordinary-account.cjs')
    const { code, stderr } = await runToEnd(
      process.execPath,
      ['--require', preload, join(folder, 'scripts/start.mjs')],
      { cwd: folder },
    )
    chmodSync(folder, 0o755)
    expect(code).toBe(1)
    expect(stderr).toMatch(/^EACCES: [^\n]*\.install\.lock'\nGive this account write permission there[^\n]*\n$/)
  })

  test('an npm that is not there is named', async () => {
    const folder = makeCopy({ installed: false })
    mkdirSync(join(folder, 'empty'))
    const { code, stderr } = await runScript(folder, 'start.mjs', [], { PATH: join(folder, 'empty') })
    expect(code).toBe(1)
    expect(stderr).toContain('npm was not found')
  })
})

fullOnly(describe)('building', () => {
  let folder = ''
  let dist = ''

  beforeAll(async () => {
    folder = makeCopy({ installed: true })
    dist = join(folder, 'dist')
    const built = await runScript(folder, 'build.mjs')
    if (built.code !== 0) throw new Error(built.stderr)
  })

  const entries = () => readdirSync(dist).filter((name) => name.endsWith('.js'))

  test('dist/ has the entry points, an executable among them', () => {
    expect(entries()).toEqual(
      expect.arrayContaining(['cli.js', 'main.js', 'background-thread.js', 'posix-spawn-thread.js']),
    )
    expect(statSync(join(dist, 'cli.js')).mode & 0o111).toBe(0o111)
    expect(readFileSync(join(dist, 'cli.js'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
    expect(existsSync(join(folder, '.build'))).toBe(false)
  })

  test('files that the program reads are beside it', () => {
    for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'LICENSE']) {
      expect(statSync(join(dist, 'api-docs', name)).size).toBeGreaterThan(0)
    }
    const core = join(folder, 'src/modules/packs/core')
    const assets = readdirSync(core, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'))
    expect(assets.length).toBeGreaterThan(0)
    for (const name of assets) {
      expect(readFileSync(join(dist, 'packs/core', name))).toEqual(readFileSync(join(core, name)))
    }
  })

  test('the notices name every bundled package, its permissive licence and its text', () => {
    const [intro = '', ...parts] = readFileSync(join(dist, 'THIRD-PARTY-LICENSES.txt'), 'utf8').split(
      `\n${'-'.repeat(80)}\n`,
    )
    expect(intro).not.toBe('')
    const notices = parts.map((part) => {
      const [, name = part, licence = ''] = /^(\S+) \S+ \(([^)]+)\)\n/.exec(part.trim()) ?? []
      return { name, licence, text: part.trim().split('\n').slice(1).join('\n') }
    })
    const names = notices.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['express', 'kysely', 'winston', 'swagger-ui-dist']))
    for (const native of ['better-sqlite3', 'argon2', 'koffi']) expect(names).not.toContain(native)
    const unfit = notices.filter(({ licence, text }) =>
      licence === 'named below' ? !text.includes('MIT License') : !PERMISSIVE.includes(licence),
    )
    expect(unfit).toEqual([])
    expect(notices.filter(({ text }) => text.length < 500)).toEqual([])
  })

  test('nothing is done when nothing has changed, not even by test files', async () => {
    const before = statSync(join(dist, 'build.json')).mtimeMs
    writeFileSync(join(folder, 'src/new.test.ts'), 'export {}\n')
    expect(await runScript(folder, 'build.mjs')).toMatchObject({ code: 0, stdout: 'dist/ is up to date\n' })
    expect(statSync(join(dist, 'build.json')).mtimeMs).toBe(before)
  })

  test('a lost file or a changed source is made good', async () => {
    rmSync(join(dist, 'background-thread.js'))
    expect(await runScript(folder, 'build.mjs')).toMatchObject({ code: 0 })
    expect(entries()).toContain('background-thread.js')
    const source = join(folder, 'src/cli.ts')
    writeFileSync(source, `${readFileSync(source, 'utf8')}\nprocess.title = 'changed'\n`)
    expect(await runScript(folder, 'build.mjs')).toMatchObject({ code: 0 })
    expect(readFileSync(join(dist, 'cli.js'), 'utf8')).toContain('changed')
  })

  test('a source with a fault leaves dist/ as it was', async () => {
    const source = join(folder, 'src/cli.ts')
    const content = readFileSync(source, 'utf8')
    const before = entries().map((name) => readFileSync(join(dist, name), 'utf8'))
    writeFileSync(source, 'export const = 1\n')
    const { code, stderr } = await runScript(folder, 'build.mjs')
    expect(code).toBe(1)
    expect(stderr).toContain('src/cli.ts:1')
    expect(entries().map((name) => readFileSync(join(dist, name), 'utf8'))).toEqual(before)
    writeFileSync(source, content)
  })

  test('builds at the same time wait for each other, and what runs meanwhile finds its files', async () => {
    const before = entries()
    let areBuilding = true
    const builds = Promise.all([1, 2, 3].map(() => runScript(folder, 'build.mjs', ['--force']))).finally(() => {
      areBuilding = false
    })
    const missing: string[] = []
    while (areBuilding) {
      missing.push(...before.filter((name) => !existsSync(join(dist, name))))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await builds).map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(3).fill({ code: 0, stderr: '' }))
    expect(missing).toEqual([])
  })

  test('a lock left by a build that was killed does not stop the next', async () => {
    const gone = await runToEnd(process.execPath, ['-e', 'console.log(process.pid)'])
    writeFileSync(join(folder, '.build.lock'), gone.stdout.trim())
    expect(await runScript(folder, 'build.mjs', ['--force'])).toMatchObject({ code: 0 })
    expect(existsSync(join(folder, '.build.lock'))).toBe(false)
  })

  test('nor does one with the process id that the next happens to get', async () => {
    const command = `echo $$ > .build.lock && exec "$0" scripts/build.mjs --force`
    expect(await runToEnd('/bin/sh', ['-c', command, process.execPath], { cwd: folder })).toMatchObject({ code: 0 })
    expect(existsSync(join(folder, '.build.lock'))).toBe(false)
  })
})

/** A key press or a service manager: npm passes both on in the same way. */
const SIGNALS = tier === 'full' ? (['SIGTERM', 'SIGINT'] as const) : (['SIGTERM'] as const)

describe('npm start', () => {
  test.for(SIGNALS)('%s to npm stops the server in order', async (signal, { onTestFinished }) => {
    const folder = makeCopy({ installed: true })
    const ports = ['auth', 'api', 'stream'].flatMap((name) => [`--${name}-port`, '0'])
    // A group of its own: npm alone is told, not all of them as by a key press.
    const npm = spawn('npm', ['start', '--', ...ports], { cwd: folder, detached: true, env: cleanEnvironment() })
    let output = ''
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (text.includes('svc is ready:')) npm.kill(signal)
      })
    }
    let hasClosed = false
    onTestFinished(() => {
      if (!hasClosed && npm.pid !== undefined) process.kill(-npm.pid, 'SIGKILL')
    })
    // The streams close when the last process that holds them has ended.
    const code = await new Promise((resolve) => npm.once('close', resolve))
    hasClosed = true
    expect(output).toContain(`The server is stopping (event=server.stopping, signal=${signal})`)
    expect(code).toBe(0)
  })
})

fullOnly(describe)('npm test', () => {
  const GOOD = `test('good', () => { expect(1).toBe(1) })`
  const SKIPPED = `test.skip('left out', () => { expect(1).toBe(1) })`
  const BAD = `test('bad', () => { expect(1).toBe(2) })`
  const LEAK = `test('leaks', () => { setInterval(() => {}, 1000); expect(1).toBe(1) })`

  let folder = ''

  beforeAll(() => {
    folder = makeCopy({ installed: true })
  })

  test.for<[name: string, body: string, env: Record<string, string>, code: number, lastLine: string]>([
    ['passing', GOOD, { CI: 'true' }, 0, '1 passed, 0 failed'],
    ['failing', `${GOOD}\n${BAD}`, {}, 1, '1 passed, 1 failed'],
    ['skipping', `${GOOD}\n${SKIPPED}`, {}, 0, '1 passed, 0 failed, 1 skipped'],
    ['skipping with CI=true', `${GOOD}\n${SKIPPED}`, { CI: 'true' }, 1, '1 passed, 0 failed, 1 skipped'],
    ['leaving a timer behind', LEAK, {}, 1, '1 passed, 1 failed'],
    ['not loading', 'nonsense(', {}, 1, '0 passed, 1 failed'],
  ])('%s', async ([, body, env, code, lastLine]) => {
    writeFileSync(join(folder, 'tests/trial.test.ts'), `import { expect, test } from 'vitest'\n${body}\n`)
    const result = await runScript(folder, 'test.mjs', ['tests/trial.test.ts'], { NO_COLOR: '1', ...env })
    expect({ code: result.code, lastLine: result.stdout.trimEnd().split('\n').at(-1) }).toEqual({ code, lastLine })
  })
})
