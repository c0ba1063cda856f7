/** Contract 09: TAB in real shells, at a terminal, against a real server that has names no shell likes. */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront } from '../helpers/front.ts'
import { startAtTerminal, type TerminalRun } from '../helpers/pty.ts'
import { createTestApp } from '../helpers/app.ts'
import { executable, type TestApp } from '../helpers/server.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const run = promisify(execFile)
const home = makeFolder()
const work = join(home.path, 'work')
const programs = join(home.path, 'bin')
let server: TestApp

interface Status {
  status: string
}

/** Each begins differently, so that one TAB is enough; the part behind is what a shell could trip over. */
const hostile = [
  'h1 two words',
  `h2'single"double`,
  'h3$(touch pwned)`touch pwned`',
  'h4:colon=equals',
  'h5\\back\\slash',
  'h6!bang*?[x]{a,b}~#^',
  'h7;touch pwned&|<touch>(',
  'h8 ümlaut € %s %n',
]
/** What a line cannot hold, or a terminal would obey. */
const unfit = ['h9\nnewline', 'h9\u001b[2J', 'h9\ttab', 'h9\u202eoverride']

beforeAll(async () => {
  for (const folder of [work, programs]) mkdirSync(folder)
  writeFileSync(join(programs, 'svc'), `#!/bin/sh\nexec ${process.execPath} ${executable} "$@"\n`)
  chmodSync(join(programs, 'svc'), 0o755)
  writeFileSync(join(work, 'some file.yaml'), '{}')
  server = await createTestApp()
  for (const [index, name] of hostile.entries()) await setKey(name, `value-${index + 1}`)
  for (const name of unfit) await setKey(name, 'unfit')
  await setKey('web.url', 'value-of-web-url')
  await server.call('POST', '/v1/actions', {
    name: 'greet',
    pack: 'default',
    runner_type: 'local-shell-cmd',
    description: 'Says hello.\nAnd\tmore: of \u001b[31mit.',
    parameters: {
      who: { type: 'string', required: true, description: 'to whom' },
      mood: { type: 'string', enum: ['glad', 'so so', 'it$(touch pwned)'] },
      loud: { type: 'boolean' },
      hidden: { type: 'string', default: 'x', immutable: true },
    },
  })
})
afterAll(async () => {
  await server.stop()
  home.remove()
})

async function setKey(name: string, value: string): Promise<void> {
  const { status } = await server.call('PUT', `/v1/keys/${encodeURIComponent(name)}`, { name, value })
  if (status !== 200) throw new Error(`key ${JSON.stringify(name)}: ${status}`)
}

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  HOME: home.path,
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
  SVC_API_URL: `${server.urls.api}/v1`,
  PATH: `${programs}:${process.env['PATH'] ?? ''}`,
  ...more,
})

interface Answer {
  head: string
  words: string[]
  /** Word → its description. */
  about: Record<string, string>
}

/** What is offered for the last word. */
async function ask(words: readonly string[], more: Record<string, string> = {}): Promise<Answer> {
  const { code, stdout, stderr } = await runCli(['__complete', 'zsh', 'svc', ...words], env(more))
  expect([code, stderr]).toEqual([0, ''])
  const [head = '', ...lines] = stdout.replace(/\n$/, '').split('\n')
  const pairs = lines.map((line): [string, string] => {
    const [word = '', about = '', ...rest] = line.split('\t')
    expect(rest).toEqual([])
    return [word, about]
  })
  return { head, words: pairs.map(([word]) => word), about: Object.fromEntries(pairs) }
}

describe('what the server has', () => {
  it('09 actions, and their parameters: those that are needed first, none twice, then their values', async () => {
    expect((await ask(['run', 'default.'])).about).toEqual({ 'default.greet': 'Says hello.' })
    expect((await ask(['run', 'core.loc'])).words).toEqual(['core.local', 'core.local_sudo'])
    const parameters = await ask(['run', 'default.greet', ''])
    expect(parameters.head).toBe('words part')
    expect(parameters.words[0]).toBe('who=')
    expect(parameters.about['who=']).toBe('to whom (required)')
    expect(parameters.words).not.toContain('hidden=')
    expect((await ask(['run', '--tail', 'default.greet', 'who=x', 'm'])).words).toEqual(['mood='])
    expect((await ask(['run', 'default.greet', 'who=x', 'who'])).words).toEqual([])
    expect((await ask(['run', 'default.greet', 'mood='])).words).toEqual([
      'mood=glad',
      'mood=so so',
      'mood=it$(touch pwned)',
    ])
    expect((await ask(['action', 'execute', 'default.greet', 'loud=t'])).words).toEqual(['loud=true'])
    expect((await ask(['run', 'default.greet', '@wh'])).words).toEqual(['@who='])
    expect(await ask(['run', 'default.greet', '@who=/et'])).toMatchObject({ head: 'words files', words: [] })
    expect(await ask(['run', 'core.local', 'ls', '-'])).toMatchObject({ head: 'words files', words: [] })
    expect(await ask(['run', 'core.local', '--', ''])).toMatchObject({ head: 'words files', words: [] })
  })

  it('09 executions by id with what they are, the newest first, and those of a re-run', async () => {
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'core.noop',
      parameters: {},
    })
    const { words, about } = await ask(['execution', 'get', ''])
    expect(words.slice(0, 2)).toEqual(['last', body.id])
    expect(about[body.id]).toMatch(/^core\.noop, [a-z]+$/)
    expect((await ask(['execution', 'get', 'last', ''])).words).not.toContain('last')
    expect((await ask(['execution', 're-run', 'last', ''])).head).toBe('words part')
  })

  it('09 for stopping executions only those that can be stopped, and no "last", which is not taken there', async () => {
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'core.local',
      parameters: { cmd: 'sleep 60' },
    })
    const path = `/v1/executions/${body.id}`
    await waitFor('it runs', async () => (await server.call<Status>('GET', path)).body.status === 'running')
    const later = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'core.noop',
      delay: 3_600_000,
    })
    const laterPath = `/v1/executions/${later.body.id}`
    await waitFor('it waits', async () => (await server.call<Status>('GET', laterPath)).body.status === 'delayed')
    expect((await ask(['execution', 'cancel', ''])).words).toEqual([body.id, later.body.id])
    expect((await ask(['execution', 'pause', ''])).words).toEqual([body.id])
    expect((await ask(['execution', 'resume', ''])).words).toEqual([])
    for (const { id } of [body, later.body]) await server.call('DELETE', `/v1/executions/${id}`)
  })

  it('09 names by what a word stands for: packs, rules, triggers, keys, runners', async () => {
    expect((await ask(['action', 'list', '-p', ''])).words).toEqual(expect.arrayContaining(['core', 'packs']))
    expect((await ask(['rule', 'list', '--trigger', 'core.svc.w'])).words).toEqual(['core.svc.webhook'])
    expect((await ask(['trigger', 'get', 'core.svc.w'])).words).toEqual(['core.svc.webhook'])
    expect((await ask(['policy-type', 'get', 'action.r'])).words).toEqual(['action.retry'])
    expect((await ask(['key', 'get', 'web'])).words).toEqual(['web.url'])
    expect((await ask(['key', 'get', 'h'])).words.toSorted()).toEqual(hostile.toSorted())
  })

  fullOnly(it)(
    '09 nothing, and nothing said, where there is no server, one that is silent, or one that lies',
    async () => {
      expect((await ask(['run', 'core'], { SVC_API_URL: 'http://127.0.0.1:1' })).words).toEqual([])
      expect((await ask(['run', 'core'], { SVC_API_URL: 'nonsense' })).words).toEqual([])
      expect((await ask(['--config-file', '/nowhere', 'run', 'core'])).words).toEqual([])
      const requests: string[] = []
      const lies: Record<string, string> = {
        '/silent': '',
        '/huge': `[${'{"ref":"x"},'.repeat(1_000_000)}{}]`,
        '/odd': '[null, 1, {"ref": {"a": 1}}, {"ref": ["core"]}, {"ref": "core.ok", "description": [1]}]',
        '/text': 'core',
      }
      const liar = await startFront((request, response) => {
        requests.push(`${request.method} ${request.url}`)
        const path = /^\/\w+/.exec(request.url ?? '')?.[0] ?? ''
        response.setHeader('X-Total-Count', '1000000000')
        if (path !== '/silent') response.end(lies[path])
      })
      try {
        // One by one: each has a second, which the reading of a huge answer in this process would take from the others.
        const words: [string, string[]][] = []
        for (const path of Object.keys(lies)) {
          const url = `${liar.url}${path}`
          words.push([path, (await ask(['run', 'core'], { SVC_API_URL: url })).words])
        }
        expect(Object.fromEntries(words)).toEqual({
          '/silent': [],
          '/huge': [],
          '/odd': Array.from({ length: 10 }, () => 'core.ok'),
          '/text': [],
        })
        expect(requests.length).toBeLessThan(20)
      } finally {
        await liar.close()
      }
    },
  )

  it('09 nobody is logged in by it: a password stays unused, and nothing is written', async () => {
    const folder = makeFolder()
    const asked: string[] = []
    const auth = await startFront((request, response) => {
      asked.push(request.url ?? '')
      response.end()
    })
    mkdirSync(join(folder.path, '.svc'), { mode: 0o700 })
    const config = `[credentials]\nusername = alice\npassword = secret\n[auth]\nurl = ${auth.url}\n`
    writeFileSync(join(folder.path, '.svc', 'config'), config, { mode: 0o600 })
    try {
      expect((await ask(['run', 'default.'], { HOME: folder.path })).words).toEqual(['default.greet'])
      expect(asked).toEqual([])
      expect(readdirSync(join(folder.path, '.svc'))).toEqual(['config'])
    } finally {
      await auth.close()
      folder.remove()
    }
  })
})

type Shell = 'bash' | 'zsh' | 'fish'

/** As `svc completion --help` says how it is installed. */
const setups: Readonly<Record<Shell, { command: readonly string[]; script: string; setup: string; text: string }>> = {
  bash: {
    command: ['/bin/bash', '--noprofile', '-i'],
    script: 'svc.bash',
    setup: '.bashrc',
    text: 'PS1="[ready] "; source ~/svc.bash',
  },
  zsh: {
    command: ['/usr/bin/zsh', '-d', '-i'],
    script: '_svc',
    setup: '.zshrc',
    text: 'PS1="[ready] "; unsetopt beep; fpath=(~ $fpath); autoload -Uz compinit; compinit -u -D',
  },
  fish: {
    command: ['/usr/bin/fish', '-i'],
    script: '.config/fish/completions/svc.fish',
    setup: '.config/fish/config.fish',
    text: 'set fish_greeting; function fish_prompt; echo "[ready] "; end',
  },
}

/** A shell at a terminal, in the folder `work`. */
async function startShell(shell: Shell): Promise<TerminalRun> {
  if (shell !== 'bash') await ensureDebianPackage(shell, `/usr/bin/${shell}`)
  const { command, script, setup, text } = setups[shell]
  mkdirSync(join(home.path, '.config', 'fish', 'completions'), { recursive: true })
  const printed = await runCli(['completion', shell], env())
  expect(printed).toMatchObject({ code: 0, stderr: '' })
  writeFileSync(join(home.path, script), printed.stdout)
  writeFileSync(join(home.path, setup), `${text}\n`)
  await run(shell, ['-n', join(home.path, script)])
  return startAtTerminal(['env', '-C', work, ...command], env({ TERM: 'xterm' }), 150)
}

const shells = tier === 'full' ? (['bash', 'zsh', 'fish'] as const) : (['bash'] as const)
describe.each<Shell>(shells)('%s', (shell) => {
  it('09 completes commands, options, values, files and names that have to be quoted', async () => {
    const terminal = await startShell(shell)
    // The shells put the blanks between them.
    const line = hostile.map((_, index) => `h${index + 1}\t`).join('')
    await terminal.typeAt('[ready] ', `svc ke\tget ${line}--js\t\r`)
    for (const index of hostile.keys()) await terminal.typeAt(`"value": "value-${index + 1}"`, '')
    await terminal.typeAt('[ready] ', 'svc run default.gr\twh\tme moo\tgl\t--asy\t\r', 2)
    await terminal.typeAt('To get the results, execute:', 'svc action create som\t\r')
    await terminal.typeAt('MESSAGE', 'exit\r')
    await terminal.exit
    expect(existsSync(join(work, 'pwned'))).toBe(false)
    expect(terminal.screen()).toContain('some\\ file.yaml')
  })
})

fullOnly(describe)('bash', () => {
  it('09 completes inside quotes, after breaks, and in the middle of a line', async () => {
    const terminal = await startShell('bash')
    // In bash alone quotes and breaks change what a completion has to be.
    const lines = [
      { typed: `svc key get "h1\t 'h2\t -j\r`, found: [1, 2] },
      { typed: `svc key get "h6\t 'h4\t -j\r`, found: [6, 4] },
      { typed: `svc key get h4:co\t'h5\\\t 'h8 üm\t -j\r`, found: [4, 5, 8] },
      { typed: `svc key get 'h7;\t -j\r`, found: [7] },
      { typed: `svc key get "h3\t -j\r`, found: [3] },
    ]
    const seen = new Map<number, number>()
    for (const [index, { typed, found }] of lines.entries()) {
      await terminal.typeAt('[ready] ', typed, index + 1)
      for (const each of found) {
        seen.set(each, (seen.get(each) ?? 0) + 1)
        await terminal.typeAt(`"value": "value-${each}"`, '', seen.get(each))
      }
    }
    // Names behind the cursor are left alone.
    await terminal.typeAt('[ready] ', 'svc key get web --json\u0001\u001bf\u001bf\u001bf\u001bf\t\r', lines.length + 1)
    await terminal.typeAt('value-of-web-url', '')
    await terminal.typeAt('[ready] ', 'exit\r', lines.length + 2)
    await terminal.exit
    expect(existsSync(join(work, 'pwned'))).toBe(false)
  })

  it('09 shows what the candidates are when it lists them', async () => {
    const terminal = await startShell('bash')
    await terminal.typeAt('[ready] ', 'svc execution \t\t')
    await terminal.typeAt('(List executions, newest last.)', '\u0015exit\r')
    expect(await terminal.exit).toBe(0)
  })
})
