/** What the server shows at the terminal that it was started at, and what it does when keys are pressed there. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { startAtTerminal, type TerminalRun } from '../helpers/pty.ts'
import { call, executable, type Answer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const CTRL_C = '\u0003'
const CTRL_S = '\u0013'
const CTRL_Q = '\u0011'

const folder = makeFolder()
let terminal: TerminalRun | undefined
let api = ''
afterEach(async () => {
  terminal?.close()
  await terminal?.exit
  folder.remove()
})

/** @param redirection for a shell, such as `2>file` */
async function serve(flags: string[], env: Record<string, string> = {}, redirection = ''): Promise<TerminalRun> {
  const ports = ['--auth-port', '0', '--api-port', '0', '--stream-port', '0', '--content-watch', 'False']
  const words = [process.execPath, executable, 'serve', '--system-base-path', folder.path, ...ports, ...flags]
  mkdirSync(folder.path, { recursive: true })
  const command = redirection === '' ? words : ['/bin/sh', '-c', `exec "$@" ${redirection}`, 'sh', ...words]
  const started = await startAtTerminal(command, { LANG: 'C.UTF-8', TERM: 'xterm', HOME: folder.path, ...env })
  terminal = started
  const ready = await waitFor(
    'the server to be ready',
    () => /API (\S+) +auth/.exec(started.screen()) ?? undefined,
    60_000,
  )
  api = ready[1] ?? ''
  return started
}

const run = (parameters: object): Promise<Answer<{ id: string }>> =>
  call(`${api}/v1/executions`, 'POST', { action: 'core.local', parameters })

const waitForScreen = (pattern: RegExp): Promise<RegExpExecArray> =>
  waitFor(`${String(pattern)} on the screen`, () => pattern.exec(terminal?.screen() ?? '') ?? undefined)

describe('10.3 the terminal of the server', () => {
  it('shows executions, no AUDIT lines, and what a stop waits for; a second Ctrl-C ends it', async () => {
    const { screen, typeAt, exit } = await serve(['--actionrunner-shutdown-grace-seconds', '600'])
    const failed = await run({ cmd: 'echo canary-output; exit 3', env: { TOKEN: 'canary-secret' } })
    await waitForScreen(/✖/)
    const { id } = failed.body
    expect(screen()).toContain(`\u001b[36m▶\u001b[39m core.local  \u001b[2m${id}\u001b[22m  svc\r\n`)
    expect(screen()).toContain('\u001b[31m✖\u001b[39m \u001b[31mexit 3\u001b[39m  ')
    expect(screen()).not.toMatch(/canary|AUDIT|INFO/)
    expect(readFileSync(join(folder.path, 'logs', 'svc.audit.log'), 'utf8')).toContain(id)

    const longer = await run({ cmd: 'exec sleep 1000', timeout: 0 })
    await typeAt(longer.body.id, CTRL_C)
    await waitForScreen(/Stopping: 1 running action may take up to 600 s more\. Ctrl-C again ends it now\./)
    // A key press is taken for the same as the one before when it follows at once.
    await waitFor('the second Ctrl-C to count', async () => {
      await typeAt('Stopping: ', CTRL_C)
      return screen().includes('Stopping 1 running action now.')
    })
    expect(await exit).toBe(0)
    expect(screen()).toMatch(/abandoned.*\r\nStopped\.\r\n$/)
  })

  fullOnly(it)('shows AUDIT lines with --log-audit, and all of the log at a given level', async () => {
    await serve(['--log-audit', '--no-color', '--log-level', 'INFO'])
    await run({ cmd: 'echo hello' })
    await waitForScreen(/✔ .* m?s\r\n/)
    expect(terminal?.screen()).toMatch(/ AUDIT .*event=execution\.requested/)
    expect(terminal?.screen()).toMatch(/ INFO .*event=request\.received/)
    // The terminal puts `^C` on its screen itself.
    expect(terminal?.screen()).not.toContain('\u001b')
  })

  fullOnly(it.for([{ NO_COLOR: '1' }, { TERM: 'dumb' }, { LANG: 'C' }] as Record<string, string>[]))(
    'keeps to what the terminal can show: %j',
    async (env) => {
      const { screen } = await serve(['--log-level', 'AUDIT'], env)
      await run({ cmd: 'exit 3' })
      await waitForScreen(/exit 3/)
      expect(screen()).toMatch(env['NO_COLOR'] === undefined ? /> .*core\.local/ : /▶ core\.local/)
      if (env['LANG'] === undefined) expect(screen()).not.toContain('\u001b')
      expect(screen()).toContain(' AUDIT ')
    },
  )

  fullOnly(it)('shows AUDIT lines that no file takes', async () => {
    await serve(['--log-audit-file', ''])
    await run({ cmd: 'echo hello' })
    await waitForScreen(/ AUDIT .*event=execution\.completed/)
  })

  fullOnly(it)('gets no log that goes elsewhere, which has all that a service logs', async () => {
    const log = join(folder.path, 'stderr')
    const { screen } = await serve([], {}, `2>${log}`)
    const { body } = await run({ cmd: 'echo hello' })
    await waitForScreen(/✔/)
    expect(screen()).toContain(body.id)
    expect(screen()).not.toMatch(/WARNING|AUDIT/)
    await waitFor('the log', () => /AUDIT .*event=execution\.completed/.test(readFileSync(log, 'utf8')))
    expect(readFileSync(log, 'utf8')).toMatch(/ INFO .*event=request\.received/)
  })

  fullOnly(it)('does not hold up the server while it is stopped', async () => {
    const { screen, typeAt } = await serve(['--log-level', 'INFO'])
    await typeAt('svc is ready', CTRL_S)
    // Much more than a terminal takes without a reader.
    for (let n = 0; n < 200; n += 1) await call(`${api}/v1/actions/${'x'.repeat(500)}`, 'GET')
    const { body } = await run({ cmd: 'echo hello' })
    await waitFor('the execution to end', async () => {
      const answer = await call<{ status: string }>(`${api}/v1/executions/${body.id}`, 'GET')
      return answer.body.status === 'succeeded'
    })
    expect(screen()).not.toContain(body.id)
    await typeAt('svc is ready', CTRL_Q)
    await waitForScreen(new RegExp(body.id))
  })
})
