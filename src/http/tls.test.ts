import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeAuthority, type Authority, type Certificate } from '../../tests/helpers/certificates.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { TextSink } from '../../tests/helpers/text-sink.ts'
import { createLog } from '../lib/log/log.ts'
import { createHandshakeReport, readTlsIdentity } from './tls.ts'

const folder = makeFolder()
let authority: Authority
let own: Certificate
let other: Certificate

beforeAll(async () => {
  authority = await makeAuthority(folder.path, 'test')
  own = authority.issue('own', 'IP:127.0.0.1')
  other = authority.issue('other', 'IP:127.0.0.1')
}, 240_000)

afterAll(() => folder.remove())

function file(name: string, content: string | Buffer): string {
  const path = join(folder.path, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

const read = (path: string): Buffer => readFileSync(path)

async function problemsOf(cert: string, key: string): Promise<string[]> {
  const reading = await readTlsIdentity('stream', { cert, key })
  return 'problems' in reading ? reading.problems : []
}

async function warningsOf(cert: string, key: string, now?: Date): Promise<string[]> {
  const reading = await readTlsIdentity('stream', { cert, key }, now)
  if ('problems' in reading) throw new Error(reading.problems.join())
  return reading.identity.warnings
}

describe('files that can be used', () => {
  test('a certificate and its key', async () => {
    expect(await warningsOf(own.certFile, own.keyFile)).toEqual([])
  })

  test('a chain, with words between the blocks, and all in one file', async () => {
    const chain = file('chain.pem', Buffer.concat([Buffer.from('mine\n'), read(own.certFile), read(authority.caFile)]))
    expect(await warningsOf(chain, own.keyFile)).toEqual([])
    const all = file('all.pem', Buffer.concat([read(own.keyFile), read(own.certFile), read(authority.caFile)]))
    expect(await warningsOf(all, all)).toEqual([])
  })

  test('a key of each form', async () => {
    for (const [name, parameters] of [
      ['rsa', ['-newkey', 'rsa:2048']],
      ['ed25519', ['-newkey', 'ed25519']],
    ] as const) {
      const [key, cert] = [join(folder.path, `${name}.key`), join(folder.path, `${name}.pem`)]
      execFileSync(
        'openssl',
        ['req', '-x509', ...parameters, '-nodes', '-subj', '/CN=x', '-keyout', key, '-out', cert],
        {
          stdio: 'ignore',
        },
      )
      expect(await problemsOf(cert, key)).toEqual([])
    }
    const traditional = join(folder.path, 'traditional.key')
    execFileSync('openssl', ['ec', '-in', own.keyFile, '-out', traditional], { stdio: 'ignore' })
    expect(read(traditional).toString()).toContain('BEGIN EC PRIVATE KEY')
    expect(await problemsOf(own.certFile, traditional)).toEqual([])
  })

  test('with a warning: a key that others can read, a certificate out of its time', async () => {
    const open = file('open.key', read(own.keyFile))
    chmodSync(open, 0o644)
    expect(await warningsOf(own.certFile, open)).toEqual([expect.stringMatching(/^stream\.key: .*all accounts/)])
    chmodSync(open, 0o640)
    expect(await warningsOf(own.certFile, open)).toEqual([])
    expect(await warningsOf(own.certFile, own.keyFile, new Date('2125-01-01'))).toEqual([
      expect.stringMatching(/^stream\.cert: .*expired on 20/),
    ])
    expect(await warningsOf(own.certFile, own.keyFile, new Date('2020-01-01'))).toEqual([
      expect.stringMatching(/^stream\.cert: .*not valid before 20/),
    ])
  })
})

describe('files that cannot be used', () => {
  test.each<[string, () => [cert: string, key: string], problem: RegExp]>([
    ['no certificate', () => [join(folder.path, 'none'), own.keyFile], /^stream\.cert: .*none does not exist$/],
    ['no key', () => [own.certFile, join(folder.path, 'none')], /^stream\.key: .*none does not exist$/],
    ['below a file', () => [join(own.certFile, 'x'), own.keyFile], /^stream\.cert: .*does not exist$/],
    ['a folder', () => [folder.path, own.keyFile], /^stream\.cert: .*is not a file$/],
    ['a device', () => [own.certFile, '/dev/zero'], /^stream\.key: .*is not a file$/],
    ['an empty file', () => [file('empty', ''), own.keyFile], /^stream\.cert: .*holds no certificate/],
    ['a large file', () => [file('large', Buffer.alloc(1_048_577)), own.keyFile], /^stream\.cert: .*is larger than/],
    ['the files swapped', () => [own.keyFile, own.keyFile], /^stream\.cert: .*holds no certificate/],
    ['a certificate as the key', () => [own.certFile, own.certFile], /^stream\.key: .*holds no private key/],
    [
      'a damaged certificate',
      () => [file('damaged.pem', read(own.certFile).toString().replace('\nM', '\nA')), own.keyFile],
      /^stream\.cert: .*cannot be read: /,
    ],
    [
      'a damaged key',
      () => [own.certFile, file('damaged.key', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n')],
      /^stream\.key: .*cannot be read: /,
    ],
    ["another's key", () => [own.certFile, other.keyFile], /^stream\.key: .*not the key of.*\(stream\.cert\)$/],
    [
      'a chain in the wrong order',
      () => [file('order.pem', Buffer.concat([read(other.certFile), read(own.certFile)])), own.keyFile],
      /^stream\.key: .*must be the first$/,
    ],
  ])('%s', async (_what, files, problem) => {
    expect(await problemsOf(...files())).toEqual([expect.stringMatching(problem)])
  })

  test('both at once', async () => {
    expect(await problemsOf('/none', '/neither')).toEqual([
      'stream.cert: /none does not exist',
      'stream.key: /neither does not exist',
    ])
  })

  test('a key with a passphrase', async () => {
    const locked = join(folder.path, 'locked.key')
    execFileSync('openssl', ['pkey', '-in', own.keyFile, '-aes256', '-passout', 'pass:x', '-out', locked])
    const old = join(folder.path, 'locked-old.key')
    execFileSync('openssl', ['ec', '-in', own.keyFile, '-aes256', '-passout', 'pass:x', '-out', old], {
      stdio: 'ignore',
    })
    for (const key of [locked, old]) {
      expect(await problemsOf(own.certFile, key)).toEqual([expect.stringMatching(/^stream\.key: .*passphrase/)])
    }
  })

  test('a key that is too weak to be used', async () => {
    const [key, cert] = [join(folder.path, 'weak.key'), join(folder.path, 'weak.pem')]
    const parameters = ['-newkey', 'rsa:512', '-nodes', '-subj', '/CN=x', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...parameters], { stdio: 'ignore' })
    expect(await problemsOf(cert, key)).toEqual([expect.stringMatching(/^stream\.cert: .*too small/)])
  })

  test('a pipe that nobody writes to does not hold the start up', async () => {
    const pipe = join(folder.path, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(await problemsOf(pipe, own.keyFile)).toEqual([expect.stringMatching(/^stream\.cert: .*is not a file$/)])
  })

  test('one that this account may not read', () => {
    const closed = file('closed.key', read(own.keyFile))
    // Root may read everything, so the question is asked by a process that has given root up.
    const script = `
      const { readTlsIdentity } = await import(${JSON.stringify(new URL('./tls.ts', import.meta.url).href)})
      if (process.getuid() === 0) process.seteuid(65534)
      const found = await readTlsIdentity('auth', { cert: ${JSON.stringify(own.certFile)}, key: ${JSON.stringify(closed)} })
      console.log(JSON.stringify(found.problems))`
    chmodSync(folder.path, 0o755)
    chmodSync(closed, process.getuid?.() === 0 ? 0o600 : 0)
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect(JSON.parse(stdout)).toEqual([`auth.key: ${closed} cannot be read: permission denied`])
  })
})

describe('handshakes that fail', () => {
  const plain = Object.assign(new Error('error:0A00009C:SSL routines::http request'), { code: 'ERR_SSL_HTTP_REQUEST' })

  test('are told once, not each', async () => {
    const logged = new TextSink()
    const log = createLog({ level: 'INFO', format: 'text', stream: logged })
    const report = createHandshakeReport(log, 'auth')
    for (let count = 0; count < 1000; count += 1) report(plain, '192.0.2.1')
    await log.close()
    expect(logged.text.trim().split('\n')).toEqual([
      expect.stringMatching(
        /event=tls\.handshake_failed, listener=auth, remote_address=192\.0\.2\.1, reason="the client/,
      ),
    ])
  })

  test('are no news when the client just left', async () => {
    const logged = new TextSink()
    const log = createLog({ level: 'INFO', format: 'text', stream: logged })
    createHandshakeReport(log, 'auth')(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), '192.0.2.1')
    await log.close()
    expect(logged.text).toBe('')
  })
})
