import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeAuthority } from '../../tests/helpers/certificates.ts'
import { fault, startFakeWinrm, type FakeOptions, type FakeWinrm } from '../../tests/helpers/fake-winrm.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { recordRun, type RecordedRun } from '../../tests/helpers/run-context.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import type { RunContext, RunResult } from './runner.ts'
import { createWinrmCmd } from './winrm-cmd.ts'

let fake: FakeWinrm
let warnings: string[]

async function use(options: FakeOptions): Promise<void> {
  await fake.stop()
  fake = await startFakeWinrm(options)
}

beforeEach(async () => {
  fake = await startFakeWinrm()
  warnings = []
})
afterEach(async () => {
  await fake.stop()
})

function begin(
  parameters: Record<string, unknown>,
  more: Partial<RunContext> = {},
  maxResultBytes = 10_000,
): RecordedRun & { ended: Promise<RunResult> } {
  const given = { host: '127.0.0.1', port: fake.port, scheme: 'http', username: 'admin', password: 'Pa$$wörd' }
  const run = recordRun({ ...given, ...parameters }, more)
  const runner = createWinrmCmd({ maxResultBytes, warn: (message) => warnings.push(message) })
  return { ...run, ended: runner.run(run.context) }
}

const succeeded = (stdout: string): RunResult => ({
  status: 'succeeded',
  result: { failed: false, succeeded: true, return_code: 0, stdout, stderr: '' },
})

it('runs a command, streams its output and removes its shell', async () => {
  const run = begin({ cmd: 'echo "grüße & <x>"; echo wrong >&2; exit 3' })
  expect(await run.ended).toEqual({
    status: 'failed',
    result: { failed: true, succeeded: false, return_code: 3, stdout: 'grüße & <x>', stderr: 'wrong' },
  })
  expect(run.output).toEqual({ stdout: 'grüße & <x>\n', stderr: 'wrong\n', other: '' })
  expect(fake.shells.size).toBe(0)
  expect(warnings).toEqual([])
})

it('logs in once per connection, with NTLM', async () => {
  expect(await begin({ cmd: 'echo 1; sleep 0.3; echo 2' }).ended).toEqual(succeeded('1\n2'))
  expect(fake.logins).toBe(1)
  expect(fake.actions.filter((action) => action === '')).toEqual([])
})

it.each([
  ['DOMAIN\\admin', 'DOMAIN', 'admin'],
  ['admin@example.test', '', 'admin@example.test'],
])('logs in as %s', async (username, domain, name) => {
  await use({ domain, username: name })
  expect(await begin({ cmd: 'echo hi', username }).ended).toEqual(succeeded('hi'))
})

it.each(['basic', 'plaintext'])('logs in with the transport %s', async (transport) => {
  await use({ offers: ['Basic realm="WSMAN"'] })
  expect(await begin({ cmd: 'echo hi', transport }).ended).toEqual(succeeded('hi'))
})

it('uses the scheme NTLM where the host does not offer Negotiate', async () => {
  await use({ offers: ['NTLM'] })
  expect(await begin({ cmd: 'echo hi' }).ended).toEqual(succeeded('hi'))
})

it('trusts only certificates that it can verify, unless told otherwise', async () => {
  const folder = makeFolder()
  try {
    const authority = await makeAuthority(folder.path, 'winrm')
    const { certFile, keyFile } = authority.issue('host', 'IP:127.0.0.1')
    await use({ tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) } })
    const { status, result } = await begin({ cmd: 'echo hi', scheme: 'https' }).ended
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining('authority that is not trusted')])
    for (const transport of ['ntlm', 'ssl']) {
      const run = begin({ cmd: 'echo hi', scheme: 'https', transport, verify_ssl_cert: false })
      expect(await run.ended).toEqual(succeeded('hi'))
    }
  } finally {
    folder.remove()
  }
})

it('gives the shell a folder, variables and UTF-8', async () => {
  await begin({ cmd: 'true', cwd: 'C:\\a & b', env: { A: '<1>', B: true, C: 2 } }).ended
  const [message = ''] = fake.created
  expect(message).toContain('<rsp:WorkingDirectory>C:\\a &amp; b</rsp:WorkingDirectory>')
  for (const variable of ['Name="A">&lt;1&gt;<', 'Name="B">True<', 'Name="C">2<']) expect(message).toContain(variable)
  expect(message).toContain('<w:Option Name="WINRS_CODEPAGE">65001</w:Option>')
})

it.each([undefined, { MINE: '1' }])('sends the variables of the parameter env alone: %j', async (env) => {
  const run = begin({ cmd: 'true', ...(env === undefined ? {} : { env }) })
  expect(await run.ended).toEqual(succeeded(''))
  const sent = fake.created.join('')
  expect(Object.keys(run.context.env)).toContain('SVC_ACTION_EXECUTION_ID')
  for (const name of Object.keys(run.context.env)) expect(sent).not.toContain(name)
  expect(sent.includes('Name="MINE">1<')).toBe(env !== undefined)
})

it('keeps characters whole that arrive in two pieces', async () => {
  const run = begin({ cmd: String.raw`printf '\303'; sleep 0.4; printf '\274'` })
  expect(await run.ended).toEqual(succeeded('ü'))
  expect(run.output.stdout).toBe('ü')
})

it('keeps at most the size of a result, and streams everything', async () => {
  const run = begin({ cmd: 'head -c 300000 /dev/zero | tr "\\0" x' }, {}, 1000)
  const { status, result } = await run.ended
  expect([status, result['stdout'], result['stdout_truncated']]).toEqual(['succeeded', 'x'.repeat(1000), true])
  expect(run.output.stdout).toHaveLength(300_000)
})

describe('a command that is stopped', () => {
  it('at its time limit keeps what it wrote', async () => {
    const { status, result } = await begin({ cmd: 'echo before; sleep 600', timeout: 1 }).ended
    expect([status, result]).toEqual([
      'timeout',
      {
        failed: true,
        succeeded: false,
        return_code: -9,
        stdout: 'before',
        stderr: '',
        error: 'Action failed to complete in 1 seconds',
      },
    ])
    expect(fake.actions.slice(-2)).toEqual(['Signal', 'Delete'])
    expect(fake.shells.size).toBe(0)
  })

  it('when it is canceled, on a new connection', async () => {
    const stop = new AbortController()
    const run = begin({ cmd: 'echo before; sleep 600', timeout: 0 }, { signal: stop.signal })
    await waitFor('output', () => run.output.stdout === 'before\n')
    stop.abort('cancel')
    expect((await run.ended).status).toBe('abandoned')
    expect(fake.actions.slice(-2)).toEqual(['Signal', 'Delete'])
    expect([fake.logins, fake.shells.size, warnings]).toEqual([2, 0, []])
  })

  it('says when it could not be stopped', async () => {
    const stop = new AbortController()
    const run = begin({ cmd: 'echo before; sleep 600' }, { signal: stop.signal })
    await waitFor('output', () => run.output.stdout === 'before\n')
    fake.intercept = ({ action, reply }) => {
      if (action === 'Delete') reply(fault('5', 'Access is denied.'), 500)
      return action === 'Delete'
    }
    stop.abort('cancel')
    await run.ended
    expect(warnings).toEqual(['Could not stop a command on a Windows host.'])
  })
})

describe('a host that refuses', () => {
  const errorOf = async (parameters: Record<string, unknown>): Promise<unknown> => {
    const { status, result } = await begin({ cmd: 'echo hi', ...parameters }).ended
    expect(status).toBe('failed')
    expect(JSON.stringify(result)).not.toContain('wörd')
    return result['error']
  }

  it('a wrong password', async () => {
    for (const transport of ['ntlm', 'basic']) {
      expect(await errorOf({ password: 'other', transport })).toContain('refused the user name or the password')
    }
  })

  it('another login than that of the action', async () => {
    await use({ offers: ['Basic realm="WSMAN"'] })
    expect(await errorOf({})).toContain('offers basic instead of NTLM; set "transport" to basic')
    await use({ offers: ['Negotiate'] })
    expect(await errorOf({ transport: 'basic' })).toContain('set "transport" to ntlm')
  })

  it('with a fault', async () => {
    fake.intercept = ({ action, reply }) => {
      if (action === 'Command') reply(fault('5', 'Access is denied.'), 500)
      return action === 'Command'
    }
    expect(await errorOf({})).toContain('refused: Access is denied. (code 5).')
    expect(fake.shells.size).toBe(0)
  })

  it('without being WinRM', async () => {
    fake.intercept = ({ response }) => {
      response.writeHead(404).end('<html>')
      return true
    }
    expect(await errorOf({})).toContain('HTTP status 404')
    await fake.stop()
    expect(await errorOf({})).toContain('the host refused the connection')
  })
})

describe('a hostile host', () => {
  const DOCTYPE = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
  it.each([
    ['a document type', `${DOCTYPE}<x>&b;</x>`, 'document type'],
    ['an entity of its own', '<x>&secret;</x>', 'cannot read'],
    ['an external entity', '<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', 'document type'],
    ['deep nesting', '<x>'.repeat(100_000), 'nests more than'],
    ['many elements', `<x>${'<y/>'.repeat(30_000)}</x>`, 'more than 20000 elements'],
    ['something else than an envelope', '<x/>', 'not a SOAP envelope'],
    ['bytes that are not UTF-8', Buffer.from([0x3c, 0xff, 0xfe]), 'cannot read'],
    ['nothing', '', 'cannot read'],
    ['half a document', '<x><y>', 'cannot read'],
    ['too much', Buffer.alloc(3_000_000, ' '), 'longer than the limit'],
  ])('that sends %s', async (_, body, message) => {
    fake.intercept = ({ response }) => {
      response.end(body)
      return true
    }
    const { status, result } = await begin({ cmd: 'echo hi' }).ended
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining(message)])
  })

  const answer = (action: string, body: string): void => {
    fake.intercept = (request) => {
      if (request.action === action) request.reply(body)
      return request.action === action
    }
  }

  it.each([
    ['no shell id', 'Create', '<rsp:Shell/>', 'no valid id of the shell'],
    ['an endless shell id', 'Create', `<rsp:ShellId>${'x'.repeat(5000)}</rsp:ShellId>`, 'no valid id of the shell'],
    ['a shell id of another', 'Create', '<rsp:ShellId>A" x="&lt;</rsp:ShellId>', 'shell was not found'],
    ['no command id', 'Command', '', 'no valid id of the command'],
    [
      'output of another command',
      'Receive',
      '<rsp:Stream Name="stdout" CommandId="X">aGk=</rsp:Stream>',
      'another command',
    ],
    [
      'an exit code that is none',
      'Receive',
      '<rsp:CommandState State="x/Done"><rsp:ExitCode>1e9</rsp:ExitCode></rsp:CommandState>',
      'exit code',
    ],
  ])('that sends %s', async (_, action, body, message) => {
    answer(action, body)
    const { status, result } = await begin({ cmd: 'echo hi' }).ended
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining(message)])
  })

  it('that answers another message', async () => {
    fake.intercept = ({ response }) => {
      response.end('<s:Envelope xmlns:s="x" xmlns:a="y"><a:RelatesTo>uuid:0</a:RelatesTo></s:Envelope>')
      return true
    }
    expect((await begin({ cmd: 'echo hi' }).ended).result['error']).toContain('another message')
  })

  it('that cuts the connection while the command runs', async () => {
    const run = begin({ cmd: 'echo before; sleep 600' })
    await waitFor('output', () => run.output.stdout === 'before\n')
    await waitFor('a request for output', () => fake.actions.at(-1) === 'Receive')
    fake.cut()
    const { status, result } = await run.ended
    expect([status, result['return_code'], result['stdout']]).toEqual(['failed', 255, 'before'])
    expect(result['error']).toContain('No response from')
    expect(fake.actions.slice(-2)).toEqual(['Signal', 'Delete'])
  })

  it('that never answers', async () => {
    fake.intercept = ({ action }) => action === 'Create'
    expect((await begin({ cmd: 'echo hi', timeout: 1 }).ended).status).toBe('timeout')
  })

  it('that answers without output at once, until the time limit', async () => {
    answer('Receive', '<rsp:ReceiveResponse/>')
    expect((await begin({ cmd: 'echo hi', timeout: 1 }).ended).status).toBe('timeout')
    expect(fake.actions.filter((action) => action === 'Receive').length).toBeLessThan(15)
  })

  it('that cuts the connection between two messages: the login is repeated', async () => {
    let cuts = 0
    fake.intercept = ({ action, response, reply }) => {
      if (action !== 'Receive' || cuts > 0) return false
      cuts += 1
      response.setHeader('connection', 'close')
      reply('<rsp:ReceiveResponse/>')
      return true
    }
    expect(await begin({ cmd: 'echo hi' }).ended).toEqual(succeeded('hi'))
    expect([cuts, fake.logins]).toEqual([1, 2])
  })
})

it.each([
  [{ host: 'http://x' }, '"host"'],
  [{ host: 'a/../b' }, '"host"'],
  [{ host: 'name@other' }, '"host"'],
  [{ host: '' }, '"host"'],
  [{ username: '' }, '"username"'],
  [{ password: null }, '"password"'],
  [{ port: 0 }, '"port"'],
  [{ scheme: 'file' }, '"scheme"'],
  [{ transport: 'kerberos' }, 'The transport "kerberos" is not supported. Set "transport" to ntlm'],
  [{ transport: 'credssp' }, 'The transport "credssp" is not supported'],
  [{ transport: 'ssl' }, 'needs the scheme https'],
  [{ transport: 'basic', username: 'a:b' }, 'colon'],
  [{ timeout: -1 }, '"timeout"'],
  [{ cwd: 1 }, '"cwd"'],
  [{ env: [] }, '"env"'],
  [{ env: { 'A=B': 1 } }, '"env"'],
  [{ cmd: 'a\u0000b' }, 'control character'],
  [{ env: { A: '\ud800' } }, 'control character'],
  [{ cmd: '' }, '"cmd"'],
  [{ cmd: 'x'.repeat(9000) }, '9000 characters; Windows runs at most 8191'],
])('refuses %j before it connects', async (parameters, message) => {
  const { status, result } = await begin({ cmd: 'echo hi', ...parameters }).ended
  expect([status, result['error']]).toEqual(['failed', expect.stringContaining(message)])
  expect([fake.logins, fake.actions]).toEqual([0, []])
})
