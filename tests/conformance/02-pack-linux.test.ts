/** The pack `linux` (contract 02, 2.8), on real SSH servers. */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync, chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { makeSshSite, type ClientKey, type Sshd, type SshSite } from '../helpers/sshd.ts'

let site: SshSite
let key: ClientKey
let host: Sshd
let server: TestApp
const folder = makeFolder()
const path = process.env['PATH'] ?? ''
const at = (...names: string[]): string => join(folder.path, ...names)

beforeAll(async () => {
  site = await makeSshSite()
  key = site.makeKey('id_linux')
  host = await site.start()
  chmodSync(folder.path, 0o777)
  mkdirSync(at('bin'))
  // Read when the server is made.
  process.env['PATH'] = `${at('bin')}:${path}`
  server = await createTestApp({
    settings: { 'system_user.user': site.user, 'system_user.ssh_key_file': key.path },
  })
  const { body } = await server.call<{ execution_id: string }>('POST', '/v1/packs/install', { packs: ['linux'] })
  const { status, result } = await waitForStatus(server, body.execution_id)
  if (status !== 'succeeded') throw new Error(JSON.stringify(result))
}, 180_000)
afterAll(async () => {
  process.env['PATH'] = path
  await server.stop()
  await site.stop()
  folder.remove()
})

interface HostResult {
  succeeded: boolean
  stdout: string
  stderr: string
  return_code: number
}

async function run(action: string, parameters: Record<string, unknown>): Promise<ExecutionAnswer> {
  const { body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
    action: `linux.${action}`,
    parameters,
  })
  if (body.id === undefined) throw new Error(text)
  return waitForStatus(server, body.id, ['succeeded', 'failed', 'timeout'])
}

async function onHost(action: string, parameters: Record<string, unknown>): Promise<HostResult & { status: string }> {
  const { status, result } = await run(action, { hosts: host.address, ...parameters })
  const results = Object.values(result) as HostResult[]
  if (results[0]?.stdout === undefined) throw new Error(JSON.stringify(result))
  return { ...results[0], status }
}

const put = (name: string, text = 'x'): string => {
  execFileSync('sudo', [
    '-u',
    site.user,
    'sh',
    '-c',
    'mkdir -p "$(dirname "$1")"; printf %s "$2" > "$1"',
    'sh',
    at(name),
    text,
  ])
  return at(name)
}

test('cp, mv and rm take lists and wildcards', async () => {
  put('a/one.txt', '1')
  put('a/two.txt', '2')
  put('b/three.txt', '3')
  put('to/keep', '')
  const copied = await onHost('cp', { source: `${at('a')}/*.txt ${at('b')}`, destination: at('to'), recursive: true })
  expect(copied).toMatchObject({ status: 'succeeded', stdout: expect.stringContaining('one.txt') as unknown })
  for (const name of ['one.txt', 'two.txt', 'b/three.txt']) expect(existsSync(at('to', name))).toBe(true)
  expect(
    await onHost('mv', { source: at('to/one.txt'), destination: at('to/new name.txt'), force: true }),
  ).toMatchObject({
    status: 'succeeded',
  })
  expect(readFileSync(at('to/new name.txt'), 'utf8')).toBe('1')
  expect(await onHost('rm', { target: `${at('to')}/two.txt ${at('to')}/b`, recursive: true })).toMatchObject({
    status: 'succeeded',
  })
  expect([existsSync(at('to/two.txt')), existsSync(at('to/b')), existsSync(at('to/keep'))]).toEqual([
    false,
    false,
    true,
  ])
  expect(await onHost('rm', { target: at('nothing') })).toMatchObject({ status: 'failed', return_code: 1 })
})

test('file_touch writes the time', async () => {
  put('times/keep', '')
  expect(await onHost('file_touch', { file: at('times/now') })).toMatchObject({ status: 'succeeded' })
  expect(readFileSync(at('times/now'), 'utf8')).toMatch(/^\d{10,}\n$/)
})

const hostile = (marker: string): string[] => [
  `x; touch ${marker}`,
  `$(touch ${marker})`,
  `\`touch ${marker}\``,
  `x\ntouch ${marker}`,
  `x' ; touch ${marker} ; '`,
  `x" ; touch ${marker} ; "`,
  `x && touch ${marker} #`,
  `\${IFS}touch\${IFS}${marker}`,
  `{{ "a" }}; touch ${marker}`,
]

test.each<[string, (text: string) => Record<string, unknown>]>([
  ['cp', (text) => ({ source: text, destination: text, args: text })],
  ['mv', (text) => ({ source: text, destination: text, args: text })],
  ['rm', (text) => ({ target: text, args: text })],
  ['file_touch', (text) => ({ file: `/nowhere/${text}` })],
  ['lsof', (text) => ({ args: text })],
  ['netstat', (text) => ({ args: text })],
  ['vmstat', (text) => ({ args: text })],
  ['lsof_pids', (text) => ({ pids: text, sudo: false })],
  ['netstat_grep', (text) => ({ pids: [text] })],
  ['pkill', (text) => ({ process: text })],
  ['rsync', (text) => ({ source: text, dest_server: text, destination: text, args: text })],
  ['scp', (text) => ({ source: text, destination: text, args: text, keyfile: text, dest_server: text })],
  ['service', (text) => ({ act: text, service: text })],
])(
  'no parameter of %s is read as a command',
  async (action, parameters) => {
    put('hostile/keep', '')
    const marker = at('hostile', action)
    const texts = hostile(marker)
    await Promise.all(texts.map((text) => onHost(action, parameters(text))))
    expect(existsSync(marker)).toBe(false)
  },
  120_000,
)

test('options do not get in by what is a name', async () => {
  expect(await onHost('rm', { target: '--version' })).toMatchObject({ status: 'failed' })
  expect(await onHost('cp', { source: '--version', destination: at('x') })).toMatchObject({ status: 'failed' })
  expect(await onHost('service', { act: '--version', service: 'x' })).toMatchObject({ return_code: 2 })
  expect(await onHost('rsync', { source: 'x', dest_server: '-oProxyCommand=x', destination: 'x' })).toMatchObject({
    return_code: 2,
  })
})

test('pkill stops processes by their name', async () => {
  const name = `svcpk${process.pid % 10_000}`
  execFileSync('cp', ['/bin/sleep', at('bin', name)])
  const child = spawn('sudo', ['-u', site.user, at('bin', name), '600'])
  const ended = new Promise((resolve) => child.once('close', resolve))
  await new Promise((resolve) => child.once('spawn', resolve))
  for (;;) {
    const { status, stdout } = await onHost('pkill', { process: name })
    if (status !== 'succeeded') continue
    expect(stdout).toContain(name)
    break
  }
  await ended
}, 60_000)

test('pids are a list or a text', async () => {
  for (const pids of [[1, 2], '1 2', 1]) {
    expect(await onHost('netstat_grep', { pids })).toMatchObject({ status: 'succeeded' })
  }
})

test('dig gives the lines, some or in random order', async () => {
  const program = at('bin', 'dig')
  writeFileSync(
    program,
    '#!/bin/sh\nif [ "$*" != "@192.0.2.1 -q example.org -t MX +short" ]; then echo "$*" >&2; exit 9; fi\nprintf "one\\n\\ntwo\\nthree\\n"\n',
  )
  chmodSync(program, 0o755)
  const given = { hostname: 'example.org', nameserver: '192.0.2.1', querytype: 'MX' }
  expect((await run('dig', given)).result).toMatchObject({ result: ['one', 'two', 'three'] })
  expect((await run('dig', { ...given, count: 2 })).result).toMatchObject({ result: ['one', 'two'] })
  const { result } = await run('dig', { ...given, rand: true })
  expect((result['result'] as string[]).toSorted()).toEqual(['one', 'three', 'two'])
  expect(await run('dig', { hostname: '-f/etc/passwd' })).toMatchObject({ status: 'failed' })
  expect(await run('dig', { ...given, querytype: 'A' })).toMatchObject({ status: 'failed' })
})

test('wait_for_ssh ends with the first login, or after the last attempt', async () => {
  const given = { hostname: host.host, port: host.port, username: site.user, ssh_timeout: 0 }
  expect((await run('wait_for_ssh', { ...given, keyfile: key.path })).result).toMatchObject({ result: true })
  const { status, result } = await run('wait_for_ssh', { ...given, keyfile: '/nowhere', retries: 2 })
  expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('after 2 attempts')])
  expect(await run('wait_for_ssh', { ...given, hostname: '-oProxyCommand=x', retries: 1 })).toMatchObject({
    status: 'failed',
  })
}, 60_000)
