/** Contract 03, 3.6 to 3.9 and 02, 2.10: scripts of packs, the mail action of the core pack. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { runToEnd, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'

const files: Record<string, string> = {
  'pack.yaml':
    'name: mine\nref: mine\ndescription: For tests.\nversion: 1.0.0\nauthor: tests\nemail: tests@example.test\n',
  'actions/show.yaml': `
name: show
runner_type: local-shell-script
entry_point: show.sh
parameters:
  first: {type: string, position: 0}
  second: {type: array, position: 1}
  third: {type: boolean, position: 2}
  name: {type: string}
  flag: {type: boolean}
  numbers: {type: array}
  key: {type: string, secret: true}
`,
  'actions/show.sh': `#!/bin/sh
printf '%s|' "$@"
echo "$SVC_ACTION_PACK_NAME $SVC_ACTION_DEBUG [$SVC_ACTION_PARAM_key]"
echo problem >&2
`,
  'actions/quiet.yaml': `
name: quiet
runner_type: local-shell-script
entry_point: show.sh
parameters:
  key: {type: string, secret: true}
  secret_arguments: {default: false, immutable: true}
`,
  'actions/slow.yaml': 'name: slow\nrunner_type: local-shell-script\nentry_point: slow.sh\n',
  'actions/slow.sh': '#!/bin/sh\necho before\nsleep 1000\n',
  'actions/fails.yaml': 'name: fails\nrunner_type: local-shell-script\nentry_point: fails.sh\n',
  'actions/fails.sh': 'exit 7\n',
  'actions/nothing.yaml': 'name: nothing\nrunner_type: local-shell-script\n',
  'actions/gone.yaml': 'name: gone\nrunner_type: local-shell-script\nentry_point: gone.sh\n',
  'actions/gone.sh': '',
}

let base: TemporaryFolder
let server: TestApp
beforeAll(async () => {
  base = makeFolder()
  for (const [name, text] of Object.entries(files)) {
    const path = join(base.path, 'packs/mine', name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
  }
  server = await createTestApp({ basePath: base.path })
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs: ['mine'] })
  if (status !== 200) throw new Error(text)
})
afterAll(async () => {
  await server.stop()
  base.remove()
})

const end = (action: string, parameters: Record<string, unknown> = {}): Promise<ExecutionAnswer> =>
  runToEnd(server, parameters, { action })

describe('03.7 scripts', () => {
  it('03.7, 03.9 arguments: named first, then by position; the result of a local runner', async () => {
    const parameters = { first: 'a b', second: [1, 'x'], third: true, name: `it's $HOME`, flag: true, numbers: [1, 2] }
    const { status, result } = await end('mine.show', { ...parameters, debug: true })
    expect(status).toBe('succeeded')
    expect(result).toEqual({
      failed: false,
      succeeded: true,
      return_code: 0,
      stdout: `--name=it's $HOME|--flag|--numbers=[1,2]|a b|1,x|1|mine True []`,
      stderr: 'problem',
    })
  })

  it('03.7 what is not given: no named argument, an empty positional one', async () => {
    const { result } = await end('mine.show', { flag: false, name: '', kwarg_op: '-' })
    expect(result).toMatchObject({ stdout: '|||mine False []' })
  })

  it('03.7 secrets are arguments, and in the environment; there alone when the action says so', async () => {
    const shown = (await server.call('GET', '/v1/runnertypes/local-shell-script')).body['runner_parameters']
    expect(shown).toMatchObject({ secret_arguments: { type: 'boolean', default: true }, debug: { default: false } })
    const stdout = async (action: string): Promise<string> => {
      const { id } = await end(action, { key: 'geheim' })
      return (await server.call('GET', `/v1/executions/${id}?show_secrets=true`)).text
    }
    expect(await stdout('mine.show')).toContain('--key=********|')
    const quiet = await stdout('mine.quiet')
    expect(quiet).not.toContain('--key')
    expect(quiet).toContain('[********]')
  })

  it('03.8 the time limit ends the script', async () => {
    const { status, result } = await end('mine.slow', { timeout: 2 })
    expect([status, result]).toMatchObject(['timeout', { return_code: -9, stdout: 'before', failed: true }])
  })

  it('03.9 another exit code fails; a script without an interpreter is run by sh', async () => {
    const { status, result } = await end('mine.fails')
    expect([status, result]).toMatchObject(['failed', { return_code: 7 }])
  })

  it('03.7 a missing entry point or revision fails with error and traceback', async () => {
    const cases = [await end('mine.nothing'), await end('mine.show', { content_version: 'v1' })]
    for (const { status, result } of cases) {
      expect([status, result]).toEqual(['failed', { error: expect.any(String), traceback: expect.any(String) }])
    }
    expect(cases.map(({ result }) => result)).toMatchObject([
      { error: expect.stringContaining('entry_point') },
      { error: expect.stringContaining('content_version') },
    ])
  })
})

describe('02.10 the core pack', () => {
  it('02.10 core.error succeeds with its text in stderr', async () => {
    const { status, result } = await end('core.error', { message: 'something' })
    expect([status, result]).toMatchObject(['succeeded', { stdout: '', stderr: 'something', return_code: 0 }])
  })

  it('02.10 core.sendmail hands a mail to the sendmail program', async () => {
    const program = join(base.path, 'sendmail')
    writeFileSync(
      program,
      `#!/bin/sh
      # It would say on its standard error that the debugger listens.
      kill -USR1 $PPID
      printf '%s ' "$@" > ${base.path}/arguments
      cat > ${base.path}/mail
      cat /proc/$PPID/comm > ${base.path}/parent\n`,
      { mode: 0o755 },
    )
    const attachment = join(base.path, 'attached.txt')
    writeFileSync(attachment, 'attached text')
    const parameters = { from: 'me@example.test', to: 'you@example.test', subject: 'Hi', body: '<b>x</b>' }
    const { status, result } = await end('core.sendmail', {
      ...parameters,
      sendmail_binary: program,
      attachments: attachment,
    })
    expect([status, result]).toMatchObject(['succeeded', { stderr: '', return_code: 0 }])
    expect(readFileSync(join(base.path, 'arguments'), 'utf8')).toBe('-i -f me@example.test you@example.test ')
    const mail = readFileSync(join(base.path, 'mail'), 'utf8')
    expect(mail).toMatch(/^Subject: Hi$/m)
    expect(mail).toContain('<b>x</b>')
    expect(mail).toContain('filename=attached.txt')
    expect(readFileSync(join(base.path, 'parent'), 'utf8')).toMatch(/node|MainThread/i)
    expect((await end('core.sendmail', { ...parameters, sendmail_binary: '/bin/sh' })).result).toMatchObject({
      return_code: 2,
    })
  })
})
