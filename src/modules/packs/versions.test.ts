import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { createPackVersions, MAX_VERSIONS, type PackVersions, type VersionWork } from './versions.ts'
import { MAX_PACK_FILES } from './tree.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

let base: TemporaryFolder
let pack: string
let versions: PackVersions
const neverAborted = new AbortController().signal
let count = 0

beforeEach(() => {
  base = makeFolder()
  pack = join(base.path, 'packs/mine')
  mkdirSync(pack, { recursive: true })
  git('init', '-q', '-b', 'main')
  versions = make()
})
afterEach(() => base.remove())

const make = (): PackVersions =>
  createPackVersions({ folder: join(base.path, 'versions'), packsFolder: join(base.path, 'packs') })

function git(...args: string[]): string {
  const identity = ['-c', 'user.name=tests', '-c', 'user.email=tests@example.test']
  return execFileSync('git', ['-C', pack, ...identity, ...args], { encoding: 'utf8' }).trim()
}

/** @returns the commit */
function commit(text: string): string {
  writeFileSync(join(pack, 'file'), text)
  git('add', '-A')
  git('commit', '-qm', text)
  return git('rev-parse', 'HEAD')
}

/** Commits files that all have the same content. */
function commitMany(names: readonly string[], content: Buffer): void {
  const lines = names.map((name) => `M 100644 :1 ${name}\n`).join('')
  const head = `blob\nmark :1\ndata ${content.length}\n`
  const tail = `\ncommit refs/heads/many\ncommitter tests <tests@example.test> 0 +0000\ndata 1\nx\n${lines}\n`
  execFileSync('git', ['-C', pack, 'fast-import', '--quiet', '--force'], {
    input: Buffer.concat([Buffer.from(head), content, Buffer.from(tail)]),
  })
}

function work(signal = neverAborted): VersionWork & { runs: string[][] } {
  const runs: string[][] = []
  return {
    runs,
    signal,
    executionId: String(++count),
    run: (program, args, { cwd, env } = {}) =>
      new Promise((resolve) => {
        runs.push([...args])
        const child = execFile(
          program,
          args,
          { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 },
          (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
        )
      }),
  }
}

async function hold(revision: string, using = work()): Promise<{ text: string; folder: string; release(): void }> {
  const held = await versions.hold({ pack: 'mine', packFolder: pack, revision }, using)
  if ('problem' in held) throw new Error(held.problem)
  return { ...held, text: readFileSync(join(held.folder, 'file'), 'utf8') }
}

const commitsKept = (): string[] =>
  readdirSync(join(base.path, 'versions/mine')).filter((name) => /^[0-9a-f]{40}$/.test(name))

test('a branch, a tag, a commit and HEAD are what they are now', async () => {
  const first = commit('1')
  git('tag', 'v1.0')
  expect((await hold('main')).text).toBe('1')
  commit('2')
  git('tag', '-a', '-m', 'x', 'second')
  git('branch', 'feature/x-1')
  commit('3')
  expect((await hold('main')).text).toBe('3')
  git('checkout', '-q', '--detach')
  commit('4')
  git('branch', '-f', 'main', first)
  for (const [revision, text] of [
    ['v1.0', '1'],
    ['1.0', '1'],
    ['main', '1'],
    ['second', '2'],
    ['feature/x-1', '2'],
    [first, '1'],
    [first.slice(0, 9), '1'],
    ['HEAD', '4'],
  ] as const) {
    expect([revision, (await hold(revision)).text]).toEqual([revision, text])
  }
  expect(commitsKept()).toHaveLength(4)
})

test('a commit that no branch and no tag contains does not run, however git serves it', async () => {
  const first = commit('1')
  git('checkout', '-q', '--detach')
  const pulled = commit('of a copy')
  // As public hosts keep what copies of the repository propose.
  git('update-ref', 'refs/pull/1/head', pulled)
  git('config', 'uploadpack.allowAnySHA1InWant', 'true')
  const dangling = commit('of nobody')
  git('checkout', '-q', 'main')
  const tagged = commit('2')
  git('tag', '-am', 'x', 'v2')
  const tag = git('rev-parse', 'v2')
  const left = commit('3')
  await hold('main')
  git('reset', '-q', '--hard', first)
  rmSync(join(base.path, 'versions/mine', left), { recursive: true })
  for (const [revision, text] of [
    [first, '1'],
    [tagged, '2'],
    [tag, '2'],
  ] as const) {
    expect([revision, (await hold(revision)).text]).toEqual([revision, text])
  }
  // The last one is an object that an earlier fetch has brought.
  for (const lost of [pulled, dangling, left, pulled.slice(0, 10), left.slice(0, 10)]) {
    await expect(hold(lost)).rejects.toThrow(/no branch and no tag contains that commit/)
  }
})

test('commits of the repository that a pack was installed from before do not run', async () => {
  const first = commit('1')
  const cloneTo = (name: string): string => {
    execFileSync('git', ['clone', '-q', '--bare', '--single-branch', pack, join(base.path, name)])
    return `file://${join(base.path, name)}`
  }
  const old = cloneTo('old')
  git('checkout', '-q', '--orphan', 'fresh')
  const second = commit('2')
  const other = cloneTo('other')
  rmSync(join(pack, '.git'), { recursive: true })
  await versions.installed('mine', old)
  ;(await hold(first)).release()
  await versions.installed('mine', old)
  expect(commitsKept()).toEqual([first])
  await versions.installed('mine', other)
  expect((await hold(second)).text).toBe('2')
  await expect(hold(first)).rejects.toThrow(/no branch and no tag contains that commit/)
})

test('what is on the disk is used again, after a restart too, and without git for a commit', async () => {
  const first = commit('1')
  await hold('main')
  versions = make()
  const again = work()
  expect((await hold(first, again)).text).toBe('1')
  expect(again.runs).toEqual([])
  rmSync(join(base.path, 'versions/mine', first), { recursive: true })
  expect((await hold(first)).text).toBe('1')
})

test('runs at the same time share one', async () => {
  commit('1')
  const works = Array.from({ length: 6 }, () => work())
  const held = await Promise.all(works.map((each) => hold('main', each)))
  expect(new Set(held.map(({ folder }) => folder)).size).toBe(1)
  expect(works.flatMap(({ runs }) => runs).filter((args) => args.includes('checkout-index'))).toHaveLength(1)
})

fullOnly(test)(
  'the least recently used go, and never one that is in use',
  async () => {
    const commits = Array.from({ length: MAX_VERSIONS + 1 }, (_, index) => commit(String(index)))
    const [first = '', second = ''] = commits
    const used = await hold(first)
    for (const each of commits.slice(1, -1)) (await hold(each)).release()
    expect(commitsKept()).toHaveLength(MAX_VERSIONS)
    const last = await hold(commits.at(-1) ?? '')
    expect([commitsKept().length, commitsKept().includes(first), commitsKept().includes(second)]).toEqual([
      MAX_VERSIONS,
      true,
      false,
    ])
    used.release()
    used.release()
    const held = [last]
    for (const each of commits.slice(2, -1)) held.push(await hold(each))
    held.push(await hold(first))
    await expect(hold(second)).rejects.toThrow(/executions use all of them/)
    for (const each of held) each.release()
    expect((await hold(second)).text).toBe('1')
  },
  60_000,
)

fullOnly(test)('what no pack may have is refused before it is written', async () => {
  commit('1')
  commitMany(
    Array.from({ length: MAX_PACK_FILES + 1 }, (_, index) => `f/${index}`),
    Buffer.from('x'),
  )
  await expect(hold('many')).rejects.toThrow(/more than 20000 files/)
  commitMany(
    Array.from({ length: 30 }, (_, index) => `f/${index}`),
    Buffer.alloc(10_000_000),
  )
  await expect(hold('many')).rejects.toThrow(/more than 20000 files or 268435456 bytes/)
  expect(readdirSync(join(base.path, 'versions/mine'))).toEqual(['repository'])
})

test.for(['', '-x', '--upload-pack=x', 'a..b', 'main~1', 'main^{tree}', '@{-1}', 'a b', 'a;b', '../x', 'x\ny', 'r:f'])(
  '%j is no revision',
  async (revision) => {
    commit('1')
    await expect(hold(revision)).rejects.toThrow(/must be a branch, tag or commit/)
  },
)

test.for(['nothing', 'main/', 'FETCH_HEAD', 'svc/head', '0123456', 'f'.repeat(40)])(
  '%j is unknown',
  async (revision) => {
    commit('1')
    await hold('HEAD')
    await expect(hold(revision)).rejects.toThrow(/"mine" has no branch, tag or commit/)
  },
)

test('nothing of the repository runs, and nothing leads out of it', async () => {
  const marker = join(base.path, 'ran')
  const program = join(base.path, 'program')
  writeFileSync(program, `#!/bin/sh\ntouch ${marker}\ncat\n`, { mode: 0o755 })
  writeFileSync(join(pack, '.gitattributes'), '* filter=mine diff=mine\n')
  execFileSync('ln', ['-s', '/etc/passwd', join(pack, 'out')])
  execFileSync('ln', ['-s', 'file', join(pack, 'in')])
  commit('1')
  for (const hook of ['post-checkout', 'post-index-change', 'reference-transaction', 'pre-auto-gc']) {
    mkdirSync(join(pack, '.git/hooks'), { recursive: true })
    writeFileSync(join(pack, '.git/hooks', hook), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
  }
  for (const [name, value] of [
    ['filter.mine.smudge', program],
    ['filter.mine.clean', program],
    ['filter.mine.required', 'true'],
    ['core.fsmonitor', program],
    ['core.sshCommand', program],
    ['uploadpack.packObjectsHook', program],
    ['core.hooksPath', join(pack, '.git/hooks')],
    ['url.ext::sh.insteadOf', 'file://'],
  ] as const) {
    git('config', name, value)
  }
  const { folder } = await hold('main')
  expect(readdirSync(folder).toSorted()).toEqual(['.gitattributes', 'file', 'in'])
  expect(existsSync(marker)).toBe(false)
})

test('a repository that cannot be read is named', async () => {
  rmSync(join(pack, '.git'), { recursive: true })
  await expect(hold('main')).rejects.toThrow(/no git repository of the pack "mine"/)
  await versions.installed('mine', `file://${base.path}/nowhere`)
  await expect(hold('main')).rejects.toThrow(/cannot read the repository of the pack "mine"/)
  await versions.installed('mine', undefined)
  await expect(hold('main')).rejects.toThrow(/no git repository of the pack "mine"/)
})

test('who has given up waits for nobody', async () => {
  commit('1')
  const first = hold('main')
  await expect(
    versions.hold({ pack: 'mine', packFolder: pack, revision: 'main' }, work(AbortSignal.abort())),
  ).rejects.toThrow('aborted')
  await first
})

test('removing a pack removes what is kept of it', async () => {
  commit('1')
  await versions.installed('mine', `file://${pack}`)
  ;(await hold('main')).release()
  await versions.removed('mine')
  expect([readdirSync(join(base.path, 'versions/mine')), readdirSync(join(base.path, 'packs/.origins'))]).toEqual([
    [],
    [],
  ])
})
