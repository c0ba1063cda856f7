/** The pack `linux` (contract 02, 2.8), on real SSH servers. */
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { makeSshSite, type ClientKey, type Sshd, type SshSite } from '../helpers/sshd.ts'
import { fullOnly } from '../helpers/tiers.ts'

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
  ['check_processes', (text) => ({ search: 'name', criteria: text, args: text })],
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

/** Listens on a free port of loopback, as this process. */
async function listen(): Promise<{ port: number; readonly close: () => Promise<unknown> }> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (typeof address !== 'object' || address === null) throw new Error('It listens on no port.')
  return { port: address.port, close: () => once(listener.close(), 'close') }
}

test('netstat_grep shows the connections of the processes, and of no others', async () => {
  await ensureDebianPackage('net-tools', '/usr/bin/netstat')
  const { port, close } = await listen()
  const own = expect.stringContaining(`127.0.0.1:${port} `) as unknown
  try {
    for (const pids of [[1, process.pid], `1  ${process.pid}`, process.pid]) {
      expect(await onHost('netstat_grep', { pids })).toMatchObject({ status: 'succeeded', stdout: own })
    }
    // The port is a number in the same lines, and the pid begins with this.
    for (const pids of [[port, Math.floor(process.pid / 10)], [], '']) {
      const { status, stdout } = await onHost('netstat_grep', { pids })
      expect([status, stdout.includes(`127.0.0.1:${port} `)]).toEqual(['succeeded', false])
    }
  } finally {
    await close()
  }
}, 120_000)

fullOnly(test)(
  'lsof_pids lists the open files of the processes',
  async () => {
    await ensureDebianPackage('lsof', '/usr/bin/lsof')
    const files = [listFile(), listFile()] as const
    try {
      const pids = files.map(({ pid }) => pid)
      for (const given of [pids, pids.join(' ')]) {
        const { status, stdout } = await onHost('lsof_pids', { pids: given, sudo: false })
        expect([status, ...files.map(({ path: name }) => stdout.includes(name))]).toEqual(['succeeded', true, true])
      }
      expect(await onHost('lsof_pids', { pids: [], sudo: false })).toMatchObject({ status: 'succeeded', stdout: '' })
      expect(await onHost('lsof', { args: `-a -d 0 -p ${pids[0]}` })).toMatchObject({
        stdout: expect.stringContaining(files[0].path) as unknown,
      })
    } finally {
      for (const { end } of files) end()
    }
  },
  180_000,
)

/** A process that reads a file of its own. */
function listFile(): { path: string; pid: number; readonly end: () => void } {
  const name = put(`open-${randomUUID()}`)
  const input = openSync(name, 'r')
  const child = spawn('sleep', ['600'], { stdio: [input, 'ignore', 'ignore'] })
  closeSync(input)
  if (child.pid === undefined) throw new Error('It did not start.')
  return { path: name, pid: child.pid, end: () => void child.kill() }
}

fullOnly(test)(
  'scp and rsync copy to another host',
  async () => {
    await ensureDebianPackage('openssh-client', '/usr/bin/scp')
    await ensureDebianPackage('rsync', '/usr/bin/rsync')
    const other = await site.start()
    put('from/one.txt', '1')
    put('from/in/two.txt', '2')
    put('there/keep', '')
    const options = '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'
    const given = { source: `${at('from')}/*.txt ${at('from/in')}`, keyfile: key.path, recursive: true }
    const args = `-r -P ${other.port} ${options}`
    const copied = [
      await onHost('scp', { ...given, args, destination: `${other.host}:${at('there')}` }),
      await onHost('scp', { ...given, args, dest_server: other.host, destination: at('there') }),
    ]
    expect(copied.map(({ status, stderr }) => (status === 'succeeded' ? status : stderr))).toEqual([
      'succeeded',
      'succeeded',
    ])
    expect([readFileSync(at('there/one.txt'), 'utf8'), readFileSync(at('there/in/two.txt'), 'utf8')]).toEqual([
      '1',
      '2',
    ])

    const shell = put('shell', `#!/bin/sh\nexec ssh -p ${other.port} -i ${key.path} ${options} "$@"\n`)
    execFileSync('sudo', ['-u', site.user, 'chmod', '755', shell])
    const synced = await onHost('rsync', {
      source: `${at('from')}/`,
      dest_server: other.host,
      destination: at('synced'),
      args: `-a --rsh=${shell}`,
    })
    expect(synced).toMatchObject({ status: 'succeeded' })
    expect(readFileSync(at('synced/in/two.txt'), 'utf8')).toBe('2')
    expect(other.logins()).toBe(3)
    await other.stop()
  },
  180_000,
)

fullOnly(test)(
  'traceroute shows the way to a host',
  async () => {
    await ensureDebianPackage('traceroute', '/usr/sbin/traceroute')
    const given = { host: '127.0.0.1', hops: 2, queries_to_hop: 1 }
    const { status, stdout } = await onHost('traceroute', given)
    expect([status, stdout]).toEqual(['succeeded', expect.stringContaining('2 hops max')])
    expect(stdout.split('\n').at(-1)).toMatch(/^ *1 .*127\.0\.0\.1/)
    expect(await onHost('traceroute', { ...given, host: '--version' })).toMatchObject({ status: 'failed' })
  },
  120_000,
)

/** Answers each question with three addresses, on an address of loopback where nothing else does. */
async function startNameServer(host: string): Promise<{ stop(): void }> {
  const socket = createSocket('udp4')
  socket.on('message', (question, { address, port }) => {
    // The name begins at byte 12; its last part is empty. Type and class follow it.
    const end = question.indexOf(0, 12) + 5
    const answers = [1, 2, 3].map((last) => [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last])
    const head = [...question.subarray(0, 2), 0x81, 0x80, 0, 1, 0, answers.length, 0, 0, 0, 0]
    socket.send(Buffer.from([...head, ...question.subarray(12, end), ...answers.flat()]), port, address)
  })
  socket.bind(53, host)
  await once(socket, 'listening')
  return { stop: () => void socket.close() }
}

fullOnly(test)(
  'dig asks a name server',
  async () => {
    await ensureDebianPackage('bind9-dnsutils', '/usr/bin/dig')
    const names = await startNameServer('127.0.0.122')
    try {
      const given = { hostname: 'example.org', nameserver: '127.0.0.122' }
      const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
      expect((await run('dig', given)).result).toMatchObject({ result: addresses })
      expect((await run('dig', { ...given, count: 1 })).result).toMatchObject({ result: addresses.slice(0, 1) })
      const { result } = await run('dig', { ...given, queryopts: 'noall, answer' })
      expect((result['result'] as string[]).map((line) => line.split(/\s+/))).toEqual(
        addresses.map((address) => ['example.org.', '60', 'IN', 'A', address]),
      )
    } finally {
      names.stop()
    }
  },
  120_000,
)

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
  // The real one is for others.
  rmSync(program)
})

test('check_loadavg gives the load of a processor', async () => {
  const { status, stdout } = await onHost('check_loadavg', {})
  const number = expect.stringMatching(/^\d+(\.\d+)?$/) as unknown
  expect([status, JSON.parse(stdout)]).toEqual(['succeeded', { '1': number, '5': number, '15': number }])
  for (const period of ['1', '5', '15']) {
    expect(await onHost('check_loadavg', { period })).toMatchObject({ status: 'succeeded', stdout: number })
  }
})

fullOnly(test)('check_processes finds processes by command line, state or id', async () => {
  const name = `svc-check ${randomUUID()}`
  const child = spawn('sh', ['-c', 'read line', name], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  try {
    await once(child, 'spawn')
    const command = `sh -c read line ${name}`
    const found = { status: 'succeeded', stdout: `{"${child.pid}": "${command}"}`, stderr: '' }
    const criteria = `${name.slice(0, -5)}\\S{5}$`
    expect(await onHost('check_processes', { criteria })).toMatchObject(found)
    const pidlist = { criteria: String(child.pid), search: 'pid', args: 'pidlist' }
    expect(await onHost('check_processes', pidlist)).toMatchObject({ ...found, stderr: String(child.pid) })
    const { stdout } = await onHost('check_processes', { search: 'state', criteria: 'S' })
    expect(JSON.parse(stdout)).toMatchObject({ [String(child.pid)]: command })
    expect(await onHost('check_processes', { criteria: `${name}x` })).toMatchObject({ stdout: '{}' })
    const wrong = {
      status: 'failed',
      return_code: 1,
      stderr: expect.stringContaining('no regular expression') as unknown,
    }
    expect(await onHost('check_processes', { criteria: '(' })).toMatchObject(wrong)
    expect(await onHost('check_processes', { search: 'pid' })).toMatchObject({ status: 'failed', return_code: 1 })
  } finally {
    child.kill('SIGKILL')
  }
})

test('diag_loadavg gives what keeps a host busy', async () => {
  const busy = spawn('sh', ['-c', 'while :; do :; done', 'svc-busy'], { stdio: 'ignore' })
  try {
    await once(busy, 'spawn')
    const { status, result } = await run('diag_loadavg', { hostname: host.address })
    const names = (result['tasks'] as { name: string }[]).map(({ name }) => name).filter((name) => name !== 'end')
    expect([status, names]).toEqual([
      'succeeded',
      ['check_load', 'd_state_processes', 'r_state_processes', 'netstat', 'lsof'],
    ])
    expect(result['published']).toMatchObject({
      load: expect.stringContaining('"15"') as unknown,
      blocked: expect.stringMatching(/^\{.*\}$/) as unknown,
      running: expect.stringContaining('svc-busy') as unknown,
      pids: expect.stringMatching(new RegExp(`\\b${busy.pid}\\b`)) as unknown,
    })
  } finally {
    busy.kill('SIGKILL')
  }
})

test.each([
  ['is_valid_ip', '192.168.0.1', { version: 4, is_private: true, reverse_pointer: '1.0.168.192.in-addr.arpa' }],
  ['is_valid_ip', '::1', { version: 6, is_loopback: true, is_multicast: false, is_link_local: false }],
  ['is_valid_ipv4', '0.0.0.0', { version: 4, is_unspecified: true, is_reserved: false }],
  ['is_valid_ipv6', 'ff02::1', { version: 6, is_multicast: true }],
])('%s tells what %s is', async (action, address, facts) => {
  const { status, result } = await run(action, { ip_address: address })
  expect([status, result['result']]).toEqual(['succeeded', expect.objectContaining(facts)])
  expect(Object.keys(result['result'] as object)).toHaveLength(8)
})

test.each([
  ['is_valid_ip', { ip_address: '192.168.0.256' }, '192.168.0.256'],
  ['is_valid_ip', { ip_address: '127.0.0.1', no_loopback: true }, 'loopback'],
  ['is_valid_ipv4', { ip_address: '::1' }, 'an IPv6 address, not one of IPv4'],
  ['is_valid_ipv6', { ip_address: '127.0.0.1' }, 'an IPv4 address, not one of IPv6'],
  ['get_open_ports', { ip_address: '127.0.0.0/8' }, '127.0.0.0/8'],
  ['get_open_ports', { ip_address: '-iL/etc/passwd' }, '-iL'],
])('%s fails with %j', async (action, given, message) => {
  const { status, result } = await run(action, given)
  expect([status, result['stderr']]).toEqual(['failed', expect.stringContaining(message)])
})

test('get_open_ports gives the ports that nmap finds', async () => {
  const program = at('bin', 'nmap')
  const ports =
    '<port protocol="tcp" portid="22"><state state="open" reason="x"/><service name="ssh"/></port>' +
    '<port protocol="tcp" portid="4000"><state state="open"/></port>'
  const xml = `<?xml version="1.0"?><nmaprun><host><ports><extraports state="closed"/>${ports}</ports></host></nmaprun>`
  writeFileSync(
    program,
    `#!/bin/sh\nif [ "$*" != "-sT --min-parallelism 100 -oX - -6 -- ::1" ]; then echo "$*" >&2; exit 9; fi\necho '${xml}'\n`,
  )
  chmodSync(program, 0o755)
  expect((await run('get_open_ports', { ip_address: '::1' })).result['result']).toEqual([
    { '22': { state: 'open', service: 'ssh', protocol: 'tcp' } },
    { '4000': { state: 'open', service: '', protocol: 'tcp' } },
  ])
  const { status, result } = await run('get_open_ports', { ip_address: '127.0.0.1' })
  expect([status, result['stderr']]).toEqual(['failed', expect.stringContaining('nmap failed with exit code 9')])
  rmSync(program)
})

fullOnly(test)(
  'get_open_ports asks nmap',
  async () => {
    await ensureDebianPackage('nmap', '/usr/bin/nmap')
    // nmap resets its connections.
    const listener = createServer((socket) => socket.on('error', () => undefined)).listen(8081, '127.0.0.123')
    await once(listener, 'listening')
    const { status, result } = await run('get_open_ports', { ip_address: '127.0.0.123' })
    await once(listener.close(), 'close')
    expect([status, result['result']]).toEqual([
      'succeeded',
      expect.arrayContaining([{ '8081': { state: 'open', service: expect.any(String), protocol: 'tcp' } }]),
    ])
  },
  180_000,
)

fullOnly(test)(
  'wait_for_ssh ends with the first login, or after the last attempt',
  async () => {
    const given = { hostname: host.host, port: host.port, username: site.user, ssh_timeout: 0 }
    expect((await run('wait_for_ssh', { ...given, keyfile: key.path })).result).toMatchObject({ result: true })
    const { status, result } = await run('wait_for_ssh', { ...given, keyfile: '/nowhere', retries: 2 })
    expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('after 2 attempts')])
    expect(await run('wait_for_ssh', { ...given, hostname: '-oProxyCommand=x', retries: 1 })).toMatchObject({
      status: 'failed',
    })
  },
  60_000,
)
