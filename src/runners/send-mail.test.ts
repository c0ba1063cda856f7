import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { load } from 'js-yaml'
import { ensureDebianPackage } from '../../tests/helpers/apt.ts'
import { makeFolder, type TemporaryFolder } from '../../tests/helpers/folders.ts'
import { recordRun } from '../../tests/helpers/run-context.ts'
import type { ParameterSchema } from '../lib/schema/index.ts'

import { createRunners, type Runners } from './index.ts'
import { createLauncher } from './process/create-launcher.ts'
import type { Launcher } from './process/launcher.ts'
import type { RunContext, RunResult } from './runner.ts'
import { variants } from '../../tests/helpers/tiers.ts'

const packFolder = fileURLToPath(new URL('../modules/packs/core', import.meta.url))

let launcher: Launcher
let runners: Runners
let folder: TemporaryFolder
let sendmail: string

beforeAll(async () => {
  await ensureDebianPackage('python3', '/usr/bin/python3')
  ;({ launcher } = await createLauncher())
  runners = await createRunners({ launcher, maxResultBytes: 100_000, systemUser: 'svc-no-such-account' })
  folder = makeFolder()
  sendmail = join(folder.path, 'sendmail')
  writeFileSync(
    sendmail,
    `#!/bin/sh\nprintf '%s\\n' "$@" > "$FOLDER/arguments"\ncat > "$FOLDER/mail"\ncat /proc/[0-9]*/cmdline > "$FOLDER/processes"\nexit "\${CODE:-0}"\n`,
  )
  chmodSync(sendmail, 0o755)
})
afterAll(async () => {
  await runners.stop()
  await launcher.stop()
  folder.remove()
})
beforeEach(() => {
  for (const name of ['mail', 'arguments']) rmSync(join(folder.path, name), { force: true })
})

const { parameters } = load(readFileSync(join(packFolder, 'actions/sendmail.yaml'), 'utf8')) as {
  parameters: Record<string, ParameterSchema>
}
const defaults = Object.fromEntries(
  Object.entries(parameters)
    .filter(([name]) => name !== 'sudo')
    .map(([name, schema]) => [name, schema.default ?? null]),
)

async function send(
  own: Record<string, unknown>,
  env: Record<string, string> = {},
  more: Partial<RunContext> = {},
): Promise<RunResult> {
  const runner = runners.list.find(({ definition }) => definition.name === 'local-shell-script')
  if (runner === undefined) throw new Error('local-shell-script is missing')
  const { context } = recordRun(
    { env: { FOLDER: folder.path, ...env } },
    {
      entryPoint: join(packFolder, 'actions/sendmail.sh'),
      packFolder,
      pack: 'core',
      parameterSchemas: parameters,
      actionParameters: {
        ...defaults,
        sendmail_binary: sendmail,
        to: 'a@example.test',
        subject: 'Hello',
        body: 'x',
        ...own,
      },
      ...more,
    },
  )
  return await runner.run(context)
}

interface Mail {
  headers: Record<string, string>
  parts: { type: string; name: string | null; content: string }[]
}

/** As another implementation reads it. */
function received(): Mail {
  const program = `
import email, email.policy, json, sys
mail = email.message_from_binary_file(open(sys.argv[1], 'rb'), policy=email.policy.default)
parts = [p for p in mail.walk() if not p.is_multipart()]
print(json.dumps({'headers': {k.lower(): str(v) for k, v in mail.items()}, 'parts': [
  {'type': p.get_content_type(), 'name': p.get_filename(), 'content': p.get_payload(decode=True).decode('utf-8', 'replace')} for p in parts]}))`
  return JSON.parse(
    execFileSync('/usr/bin/python3', ['-c', program, join(folder.path, 'mail')], { encoding: 'utf8' }),
  ) as Mail
}
const programArguments = (): string[] => readFileSync(join(folder.path, 'arguments'), 'utf8').trimEnd().split('\n')

it('hands over a mail', async () => {
  const { status, result } = await send({
    from: 'Gräfin <from@example.test>',
    to: 'a@example.test, b@example.test',
    subject: 'Grüße – ' + 'x'.repeat(100),
    body: '<p>Ünïcode\n.\n.end</p>',
  })
  expect([status, result['stderr']]).toEqual(['succeeded', ''])
  expect(result['stdout']).toMatch(/a@example\.test, b@example\.test/)
  expect(programArguments()).toEqual(['-i', '-f', 'from@example.test', 'a@example.test', 'b@example.test'])
  const { headers, parts } = received()
  expect(headers).toMatchObject({
    from: 'Gräfin <from@example.test>',
    to: 'a@example.test, b@example.test',
    subject: 'Grüße – ' + 'x'.repeat(100),
    'mime-version': '1.0',
    date: expect.any(String),
    'message-id': expect.any(String),
  })
  expect(parts).toEqual([
    { type: 'text/html', name: null, content: expect.stringContaining('<p>Ünïcode\n.\n.end</p>') },
  ])
})

it.each(variants(['text/markdown', 'text/plain', 'text/html', 'text/plain; charset=utf-8']))(
  'has a body of %s',
  async (type) => {
    expect((await send({ content_type: type, body: '# ä' })).status).toBe('succeeded')
    const [part, ...others] = received().parts
    expect([part?.type, part?.content.trimEnd(), others]).toEqual([type.split(';')[0], '# ä', []])
  },
)

it('shows no secret of its mail to other accounts', async () => {
  const containsSecret = (text: string): boolean => text.includes('geheim')
  expect(await send({ body: 'geheim', subject: 'geheimes' }, {}, { containsSecret })).toMatchObject({
    status: 'succeeded',
  })
  expect(received()).toMatchObject({ headers: { subject: 'geheimes' } })
  const processes = readFileSync(join(folder.path, 'processes'), 'latin1')
  expect(processes).toContain('sendmail.sh')
  expect(processes).not.toContain('geheim')
})

it('attaches files', async () => {
  const files = ['one.txt', 'zwei ü.bin'].map((name) => join(folder.path, name))
  for (const file of files) writeFileSync(file, `content of ${file}`)
  expect((await send({ attachments: ` ${files.join(' , ')},` })).result['stderr']).toBe('')
  expect(received().parts.slice(1)).toMatchObject([
    { name: 'one.txt', content: `content of ${files[0]}` },
    { name: 'zwei ü.bin', content: `content of ${files[1]}` },
  ])
})

it('names this host for local accounts', async () => {
  await send({ to: 'root' })
  expect(programArguments()).toEqual(['-i', '-f', `svc@${hostname()}`, `root@${hostname()}`])
})

describe('an empty body', () => {
  it.each(
    variants<[boolean, string, boolean]>(
      [
        [true, ' \n', true],
        [false, ' \n', false],
        [true, '', true],
        [false, 'x', true],
      ],
      2,
    ),
  )('with send_empty_body %j and %j: sent %j', async (sendEmptyBody, body, isSent) => {
    const { status } = await send({ send_empty_body: sendEmptyBody, body })
    expect([status, existsSync(join(folder.path, 'mail'))]).toEqual(['succeeded', isSent])
  })
})

it.each<[string, Record<string, unknown>, RegExp]>([
  ['a subject with a line end', { subject: 'a\nBcc: all@example.test' }, /"subject"/],
  ['a sender with a line end', { from: 'a@example.test\r\nBcc: b@example.test' }, /"from"/],
  ['a recipient with a line end', { to: 'a@example.test\nb' }, /"to"/],
  ['a content type with a line end', { content_type: 'text/plain\nX: y' }, /"content_type"/],
  ['no content type', { content_type: 'plain' }, /"content_type"/],
  ['no recipient', { to: ' , ' }, /"to"/],
  ['an option for a recipient', { to: '-oQ/tmp@example.test' }, /[Ii]nvalid/],
  ['another program', { sendmail_binary: '/bin/sh' }, /"sendmail_binary" must be one of sendmail/],
  ['a program that is not there', { sendmail_binary: '/no/such/sendmail' }, /program sendmail is not installed/],
  ['a file that is not there', { attachments: '/no/such/file' }, /"\/no\/such\/file".*does not exist/],
  ['a folder', { attachments: '/etc' }, /not a file/],
])('is not sent with %s', async (_, own, problem) => {
  const { status, result } = await send(own)
  expect([status, result['stderr']]).toEqual(['failed', expect.stringMatching(problem)])
  expect(existsSync(join(folder.path, 'mail'))).toBe(false)
})

it('never takes what it is given for a file or URL to read', async () => {
  await send({ content_type: 'text/plain', body: '{"path":"/etc/passwd"}' })
  expect(received().parts[0]?.content.trimEnd()).toBe('{"path":"/etc/passwd"}')
})

it('fails when the program does', async () => {
  const { status, result } = await send({}, { CODE: '75' })
  expect([status, result['return_code'], result['stderr']]).toEqual(['failed', 1, expect.stringContaining('75')])
})

it('finds the program by its name', async () => {
  mkdirSync(join(folder.path, 'bin'), { recursive: true })
  writeFileSync(join(folder.path, 'bin/msmtp'), `#!/bin/sh\nexec ${sendmail} "$@"\n`, { mode: 0o755 })
  const env = { PATH: `${join(folder.path, 'bin')}:${process.env['PATH']}` }
  expect((await send({ sendmail_binary: 'msmtp' }, env)).result['stderr']).toBe('')
  expect(received().headers['subject']).toBe('Hello')
})
