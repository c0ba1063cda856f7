/** The runners `winrm-ps-cmd` and `winrm-ps-script`; what they share with `winrm-cmd` is in its test. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fault, startFakeWinrm, type FakeWinrm } from '../../tests/helpers/fake-winrm.ts'
import { runPowershell } from '../../tests/helpers/fake-powershell.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { recordRun, type RecordedRun } from '../../tests/helpers/run-context.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { createDirectoryCheck } from './process/directory-check.ts'
import type { RunContext, RunResult } from './runner.ts'
import { createWinrmPsCmd } from './winrm-ps-cmd.ts'
import { createWinrmPsScript } from './winrm-ps-script.ts'

let fake: FakeWinrm
let texts: string[]
let warnings: string[]
let folder: ReturnType<typeof makeFolder>

beforeEach(async () => {
  fake = await startFakeWinrm()
  texts = runPowershell(fake)
  warnings = []
  folder = makeFolder()
  mkdirSync(join(folder.path, 'actions'))
})
afterEach(async () => {
  await fake.stop()
  folder.remove()
})

type Begun = RecordedRun & { ended: Promise<RunResult> }

function begin(kind: 'cmd' | 'script', parameters: Record<string, unknown>, more: Partial<RunContext> = {}): Begun {
  const given = { host: '127.0.0.1', port: fake.port, scheme: 'http', username: 'admin', password: 'Pa$$wörd' }
  const run = recordRun({ ...given, ...parameters }, more)
  const deps = { maxResultBytes: 200_000, warn: (message: string) => warnings.push(message) }
  const runner =
    kind === 'cmd' ? createWinrmPsCmd(deps) : createWinrmPsScript({ ...deps, directoryCheck: createDirectoryCheck() })
  return { ...run, ended: runner.run(run.context) }
}

const beginCmd = (cmd: unknown, more: Partial<RunContext> = {}): Begun => begin('cmd', { cmd }, more)

function beginScript(
  content: string | Buffer,
  actionParameters: Record<string, unknown> = {},
  more: Partial<RunContext> = {},
): Begun {
  const entryPoint = join(folder.path, 'actions', 'job.ps1')
  writeFileSync(entryPoint, content)
  return begin('script', {}, { packFolder: folder.path, entryPoint, actionParameters, ...more })
}

const succeeded = (stdout: string): RunResult => ({
  status: 'succeeded',
  result: { failed: false, succeeded: true, return_code: 0, stdout, stderr: '' },
})

describe('a command', () => {
  it('gets to PowerShell as it is', async () => {
    const cmd = 'echo "grüße ‘😀’"\r\n\n# `"$%^&|<>\necho 2'
    expect(await beginCmd(cmd).ended).toMatchObject({ status: 'succeeded' })
    expect(texts).toEqual([cmd])
    expect(fake.lines[0]).toMatch(/^powershell\.exe [\w +/=-]+$/)
    expect(fake.actions).not.toContain('Send')
    expect(fake.shells.size).toBe(0)
  })

  it('gets there by the input when it is long', async () => {
    const cmd = `echo "${'ü'.repeat(60_000)}"`
    const { status, result } = await beginCmd(cmd).ended
    expect([status, result['stdout']]).toEqual(['succeeded', 'ü'.repeat(60_000)])
    expect(texts).toEqual([cmd])
    expect(fake.lines[0]?.length).toBeLessThan(1500)
    expect(fake.actions.filter((action) => action === 'Send')).toHaveLength(3)
  })

  it('with a secret is on no command line', async () => {
    const cmd = 'echo hunter22'
    expect(await beginCmd(cmd, { containsSecret: (text) => text.includes('hunter22') }).ended).toEqual(
      succeeded('hunter22'),
    )
    expect(texts).toEqual([cmd])
    expect(fake.lines.map((line) => Buffer.from(line.split(' ').at(-1) ?? '', 'base64').toString('utf16le'))).toEqual([
      expect.not.stringContaining('hunter22'),
    ])
  })

  it('fails with its exit code, and its errors are text', async () => {
    const xml = '<Objs xmlns="x"><S S="Error">Get-Item : no &lt;such&gt; item_x000D__x000A_</S></Objs>'
    const run = beginCmd(`cat >&2 <<'E'\n#< CLIXML\n${xml}\nE\nexit 7`)
    expect(await run.ended).toEqual({
      status: 'failed',
      result: { failed: true, succeeded: false, return_code: 7, stdout: '', stderr: 'Get-Item : no <such> item\n' },
    })
    expect(run.output.stderr).toBe('Get-Item : no <such> item\n\n')
  })

  it('that does not take its input is described by its own output', async () => {
    const long = 'x'.repeat(10_000)
    fake.intercept = ({ action, reply }) => {
      if (action === 'Send') reply(fault('109', 'The pipe has been ended.'), 500)
      return action === 'Send'
    }
    fake.program = () => ({ file: '/bin/sh', args: ['-c', 'echo "not found" >&2; exit 1'] })
    expect((await beginCmd(long).ended).result).toMatchObject({ return_code: 1, stderr: 'not found' })
    fake.program = () => ({ file: '/bin/sh', args: ['-c', 'exit 0'] })
    const { status, result } = await beginCmd(long).ended
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining('The pipe has been ended.')])
    expect(fake.shells.size).toBe(0)
  })

  it('leaves no shell when it is stopped, also while its input is sent', async () => {
    expect((await begin('cmd', { cmd: 'echo before; sleep 600', timeout: 1 }).ended).status).toBe('timeout')
    for (const held of ['Receive', 'Send']) {
      const stop = new AbortController()
      fake.intercept = ({ action }) => action === held
      const run = beginCmd('x'.repeat(10_000), { signal: stop.signal })
      await waitFor('the request', () => fake.actions.at(-1) === held)
      stop.abort('cancel')
      expect((await run.ended).status).toBe('abandoned')
      expect(fake.actions.slice(-2)).toEqual(['Signal', 'Delete'])
    }
    expect([fake.shells.size, warnings]).toEqual([0, []])
  })

  it.each([
    ['', '"cmd"'],
    [null, '"cmd"'],
  ])('%j is refused', async (cmd, message) => {
    expect((await beginCmd(cmd).ended).result['error']).toContain(message)
    expect((await beginCmd('x', { entryPoint: '/a' }).ended).result['error']).toContain('entry point')
    expect(fake.actions).toEqual([])
  })
})

describe('a script', () => {
  const show = 'for word in "$@"; do echo "$word"; done # no new line at the end'

  it('gets named and positional parameters', async () => {
    const run = beginScript(
      show,
      { second: 'b c', Name: '"$(x)" ’; rm', Force: true, list: ['a', 1], map: { k: false }, first: -1 },
      { parameterSchemas: { first: { position: 0 }, second: { position: 1 } } },
    )
    expect((await run.ended).result['stdout']).toBe(
      ['-Name', '"$(x)" ’; rm', '-Force:', 'true', '-list', '["a",1]', '-map', '{"k":false}', '-1', 'b c'].join('\n'),
    )
    expect(fake.actions).not.toContain('Send')
    expect(fake.shells.size).toBe(0)
  })

  it('without parameters is run as it is', async () => {
    expect(await beginScript('echo "$#"; exit 3').ended).toMatchObject({ result: { return_code: 3, stdout: '0' } })
    expect(texts).toEqual(['echo "$#"; exit 3'])
  })

  it('of 100 KB, and one with a secret, gets there by the input', async () => {
    const script = `# ${'ü'.repeat(50_000)}\n${show}`
    expect((await beginScript(script, { Name: 'x' }).ended).result['stdout']).toBe('-Name\nx')
    const schemas = { parameterSchemas: { pin: { type: 'string', secret: true } } } as const
    expect((await beginScript(show, { pin: '12' }, schemas).ended).result['stdout']).toBe('-pin\n12')
    expect(fake.actions.filter((action) => action === 'Send').length).toBe(4)
    expect(fake.lines.every((line) => line.length < 1500)).toBe(true)
  })

  it.each([
    ['UTF-8 with a mark', Buffer.from('\ufeffecho ü')],
    ['UTF-16', Buffer.from('\ufeffecho ü', 'utf16le')],
    ['UTF-16, big-endian', Buffer.from('\ufeffecho ü', 'utf16le').swap16()],
  ])('is read as %s', async (_, content) => {
    expect(await beginScript(content).ended).toEqual(succeeded('ü'))
  })

  it('is refused when it cannot be read or its parameters cannot be passed', async () => {
    const errorOf = async (run: Begun): Promise<unknown> => {
      const { status, result } = await run.ended
      expect(status).toBe('failed')
      return result['error']
    }
    const { packFolder, entryPoint } = beginScript(show).context
    expect(await errorOf(begin('script', {}))).toContain('"entry_point"')
    expect(await errorOf(begin('script', {}, { packFolder, entryPoint: `${entryPoint}x` }))).toContain('does not exist')
    expect(await errorOf(begin('script', {}, { packFolder, entryPoint: '/etc/passwd' }))).toContain(
      'outside the folder',
    )
    expect(await errorOf(beginScript(Buffer.from([0x65, 0xfc])))).toContain('UTF-8 or UTF-16')
    expect(await errorOf(beginScript(Buffer.alloc(1_048_577, ' ')))).toContain('larger than 1048576 bytes')
    expect(await errorOf(beginScript(show, { 'a;b': 1 }))).toContain('"a;b"')
  })
})
