/**
 * Verifies host keys against a file in OpenSSH format (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT), as
 * `ssh_runner.host_key_checking` says (decision 14).
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { readBoundedFile, createSecretFile, makeFolder } from '../../lib/files/index.ts'
import { createKeyedLock } from '../../lib/concurrency/index.ts'
import { matchesPatternList } from './pattern-list.ts'

export type HostKeyChecking = 'accept-new' | 'strict' | 'off'

/** Accepts or refuses the key of a host. */
export interface HostKeyCheck {
  /** Signature algorithms to request, preferred first; those of the known keys if there are any. */
  algorithms: string[]
  /** @returns the reason for a refusal, or undefined */
  verify(key: Buffer): string | undefined
  /** Call after the host has proved that it owns the key. @throws Error when svc cannot store it, or refuses it now */
  accept(key: Buffer): Promise<void>
}

export interface KnownHosts {
  /** @throws Error when the file cannot be read */
  checkFor(host: string, port: number): Promise<HostKeyCheck>
}

const MAX_FILE_BYTES = 4 * 1024 * 1024
/** Comparing with a hashed name takes some microseconds. */
const LINES_PER_TURN = 1000

/** Preferred first; without SHA-1 signatures. */
const ALGORITHMS = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
]

interface KnownKeys {
  keys: Buffer[]
  revoked: Buffer[]
  /** The file delegates the decision to a certificate authority. */
  hasAuthority: boolean
}

export function createKnownHosts(path: string, checking: HostKeyChecking): KnownHosts {
  const withLock = createKeyedLock()

  function problemOf(known: KnownKeys, key: Buffer, name: string): string | undefined {
    const shown = `${keyTypeOf(key)} ${fingerprint(key)}`
    if (known.revoked.some((one) => one.equals(key))) return `the key of ${name} (${shown}) is revoked in ${place}`
    if (known.keys.some((one) => one.equals(key))) return undefined
    if (known.keys.length > 0) {
      const expected = known.keys.map((one) => `${keyTypeOf(one)} ${fingerprint(one)}`).join(', ')
      return (
        `the key of ${name} has changed: the host shows ${shown}, known is ${expected}. ` +
        `A third party may intercept the connection. If ` +
        `the change is legitimate, remove the lines of ${name} from ${place}`
      )
    }
    if (known.hasAuthority) {
      return (
        `the keys of ${name} are delegated to an authority (@cert-authority), and host certificates are unsupported; ` +
        `add its key (${shown}) to ${place}`
      )
    }
    if (checking === 'strict') {
      return (
        `the key of ${name} (${shown}) is unknown, and ssh_runner.host_key_checking is strict; compare it with the ` +
        `key of the host, then add it to ${place}`
      )
    }
    return undefined
  }

  async function append(known: KnownKeys, key: Buffer, name: string): Promise<void> {
    if (known.keys.length > 0) return
    const line = `${name} ${keyTypeOf(key)} ${key.toString('base64')}\n`
    await makeFolder(dirname(path))
    if (await createSecretFile(path, line)) return
    const file = await open(path, 'a+')
    try {
      const { size } = await file.stat()
      const last = Buffer.alloc(1)
      if (size > 0) await file.read(last, 0, 1, size - 1)
      // In one write, so that lines appended by other programs cannot split it.
      await file.write(size > 0 && last.toString() !== '\n' ? `\n${line}` : line)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  return {
    async checkFor(host, port) {
      if (checking === 'off') {
        return { algorithms: ALGORITHMS, verify: () => undefined, accept: () => Promise.resolve() }
      }
      const name = nameOf(host, port)
      const known = await findKeys(path, name)
      return {
        algorithms: preferred(known.keys),
        verify: (key) => problemOf(known, key, name),
        accept: async (key) => {
          if (known.keys.some((one) => one.equals(key))) return
          await withLock('append', async () => {
            // Another connection to the same host may have stored the key first.
            const current = await findKeys(path, name)
            const problem = problemOf(current, key, name)
            if (problem !== undefined) throw new Error(problem)
            await append(current, key, name)
          })
        },
      }
    },
  }
}

/** The path stays on the server; messages name the option instead. */
const place = 'the file of known hosts (ssh_runner.known_hosts_file)'

/** The host name as the file writes it: lower case, with its port unless that is 22. */
function nameOf(host: string, port: number): string {
  const name = host.toLowerCase()
  return port === 22 ? name : `[${name}]:${port}`
}

async function findKeys(path: string, name: string): Promise<KnownKeys> {
  const known: KnownKeys = { keys: [], revoked: [], hasAuthority: false }
  const file = await readBoundedFile(path, MAX_FILE_BYTES)
  if ('problem' in file) {
    if (file.isMissing) return known
    throw new Error(`${place} ${file.problem}`)
  }
  let n = 0
  for (const line of file.bytes.toString('utf8').split('\n')) {
    if (++n % LINES_PER_TURN === 0) await setImmediate()
    addLine(known, line.trim(), name)
  }
  return known
}

function addLine(known: KnownKeys, line: string, name: string): void {
  if (line === '' || line.startsWith('#')) return
  const words = line.split(/[ \t]+/)
  const marker = words[0]?.startsWith('@') === true ? words.shift() : undefined
  const [names = '', type = '', encoded = ''] = words
  if (!matchesName(names, name)) return
  if (marker === '@cert-authority') {
    known.hasAuthority = true
    return
  }
  const key = Buffer.from(encoded, 'base64')
  // A damaged line says nothing about a host; no key can match it.
  if (type === '' || keyTypeOf(key) !== type) return
  if (marker === '@revoked') known.revoked.push(key)
  else if (marker === undefined) known.keys.push(key)
}

function matchesName(names: string, name: string): boolean {
  if (!names.startsWith('|')) return matchesPatternList(names.toLowerCase().split(','), name)
  const [, version, salt = '', hash = ''] = names.split('|')
  if (version !== '1') return false
  const expected = Buffer.from(hash, 'base64')
  const actual = createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest()
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}

/** Algorithms of known keys first: a host may have several keys, and another one would look unknown. */
function preferred(keys: readonly Buffer[]): string[] {
  const types = new Set(keys.map(keyTypeOf))
  const isKnown = (algorithm: string): boolean => types.has(algorithm.startsWith('rsa-') ? 'ssh-rsa' : algorithm)
  return [...ALGORITHMS.filter(isKnown), ...ALGORITHMS.filter((algorithm) => !isKnown(algorithm))]
}

/** The first field of a public key; empty when the text is not a key. */
function keyTypeOf(key: Buffer): string {
  if (key.length < 4) return ''
  const length = key.readUInt32BE(0)
  return length > 64 ? '' : key.toString('latin1', 4, 4 + length)
}

/** As `ssh-keygen -l` prints it. */
export function fingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
}
