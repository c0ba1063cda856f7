/** Loads private keys: from the text or file that an action names, or from the system user's file. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { readBoundedFile } from '../../lib/files/index.ts'
import { locateCode } from '../../core/bundle.ts'
import { createThread } from '../../core/thread.ts'
import {
  fromPkcs8,
  isKeyText,
  isPkcs8,
  iterationsOf,
  normalizeKey,
  problemOfKey,
  roundsOf,
} from './private-key-text.ts'
import type { PrivateKeyAnswer, PrivateKeyQuestion } from './private-key-thread.ts'

export interface PrivateKeys {
  /** Returns the key as unencrypted text. @throws Error whose message is a sentence for the user */
  unlock(text: string, passphrase: string | undefined): Promise<string>
  stop(): Promise<void>
}

const MAX_KEY_BYTES = 64 * 1024
/** The default of `ssh-keygen` is 16; each round takes 12 ms. */
const MAX_ROUNDS = 512
/** Of a key in PKCS #8; OpenSSL writes 2,048, and 10 million take some seconds. */
const MAX_ITERATIONS = 10_000_000
const MAX_WAITING = 100

export function createPrivateKeys(): PrivateKeys {
  const thread = createThread<PrivateKeyQuestion, PrivateKeyAnswer>({
    name: 'the thread for private keys',
    file: locateCode('./private-key-thread', import.meta.url),
  })
  return {
    async unlock(given, passphrase) {
      if (given.length > MAX_KEY_BYTES) throw new Error(`The private key is larger than ${MAX_KEY_BYTES} bytes.`)
      const text = normalizeKey(given)
      const problem = problemOfKey(text)
      if (problem !== undefined) throw new Error(problem)
      const rounds = roundsOf(text)
      if (passphrase === undefined || passphrase === '') return await readUnlocked(text)
      if (iterationsOf(text) > MAX_ITERATIONS) {
        throw new Error(
          `The private key needs more than ${MAX_ITERATIONS} iterations to decrypt; set its passphrase again with ` +
            'fewer (openssl pkcs8 -topk8 -iter 100000).',
        )
      }
      if (rounds > MAX_ROUNDS) {
        throw new Error(
          `The private key needs ${rounds} rounds, more than the limit of ${MAX_ROUNDS}; set its passphrase ` +
            'again with fewer rounds (ssh-keygen -p -a 100).',
        )
      }
      if (thread.waitingCount >= MAX_WAITING)
        throw new Error('Too many private keys with passphrases are waiting to be decrypted.')
      const answer = await thread.ask({ key: text, passphrase })
      if ('problem' in answer) throw keyProblem(answer.problem)
      return answer.key
    },
    stop: () => thread.stop(),
  }
}

async function readUnlocked(text: string): Promise<string> {
  if (isPkcs8(text)) {
    if (text.startsWith('-----BEGIN ENCRYPTED')) throw keyProblem('no passphrase')
    try {
      return fromPkcs8(text)
    } catch (error) {
      throw keyProblem(error instanceof Error ? error.message : String(error))
    }
  }
  const { utils } = (await import('ssh2')).default
  const parsed = utils.parseKey(text)
  if (parsed instanceof Error) throw keyProblem(parsed.message)
  return text
}

/** Our own messages: those of the parser may quote parts of the key. */
function keyProblem(why: string): Error {
  if (/no passphrase/i.test(why)) return new Error('The private key has a passphrase; give it as "passphrase".')
  if (/passphrase|integrity|bad decrypt|wrong final block|BAD_DECRYPT/i.test(why)) {
    return new Error('The passphrase does not match the private key.')
  }
  return new Error(
    'The private key has an unsupported format or kind, or is damaged; use RSA, ECDSA or Ed25519 in the format of ' +
      'OpenSSH, PEM or PKCS #8.',
  )
}

/** @param what for messages: `The parameter "private_key"` */
export async function readPrivateKeyFile(path: string, what: string): Promise<string> {
  const file = await readBoundedFile(expandHome(path), MAX_KEY_BYTES)
  if ('problem' in file) throw new Error(`${what} names a file that ${file.problem} on the server.`)
  const text = file.bytes.toString('latin1')
  if (!isKeyText(text)) throw new Error(`${what} names a file without a private key.`)
  return text
}

/** Reads `system_user.ssh_key_file`, or the first default that exists; undefined without one. */
export async function readSystemKey(configured: string, systemUser: string): Promise<string | undefined> {
  if (configured !== '') return await readPrivateKeyFile(configured, 'system_user.ssh_key_file')
  for (const name of [`${systemUser}_rsa`, 'id_ed25519', 'id_rsa']) {
    const file = await readBoundedFile(join(homedir(), '.ssh', name), MAX_KEY_BYTES)
    if ('bytes' in file) return file.bytes.toString('latin1')
  }
  return undefined
}

/** A path that begins with `~/` is in the home folder of the server's account. */
export function expandHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : resolve(path)
}
