/** Checks a password against any supported hash of a password file. */
import argon2 from 'argon2'
import { isCryptHash } from './crypt.ts'
import { createCryptWorker } from './crypt-worker.ts'

/** The reference program writes m, t, p; the package writes m, p, t, and reads both. */
const argon2Pattern =
  /^\$argon2id\$v=19\$([mtp]=\d{1,7},[mtp]=\d{1,7},[mtp]=\d{1,7})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{16,86}$/
const MAX_MEMORY_KIB = 262_144
const MAX_PASSES = 64
const MAX_LANES = 16

function isArgon2Hash(hash: string): boolean {
  const settings = argon2Pattern.exec(hash)?.[1]
  if (settings === undefined) return false
  const numbers = new Map(settings.split(',').map((setting) => [setting.charAt(0), Number(setting.slice(2))]))
  const [memory = 0, passes = 0, lanes = 0] = ['m', 't', 'p'].map((name) => numbers.get(name))
  if (passes < 1 || passes > MAX_PASSES || lanes < 1 || lanes > MAX_LANES) return false
  return memory >= 8 * lanes && memory <= MAX_MEMORY_KIB
}

/** Whether the form of the hash is supported and its cost is within the limits. */
export function isUsableHash(hash: string): boolean {
  return isArgon2Hash(hash) || isCryptHash(hash)
}

export interface PasswordVerifier {
  /** False also for a hash that is not usable. */
  verify(hash: string, password: string): Promise<boolean>
  stop(): Promise<void>
}

/** Does not block the event loop: argon2 runs in the thread pool, the others on a thread of their own. */
export function createPasswordVerifier(): PasswordVerifier {
  const worker = createCryptWorker()
  return {
    async verify(hash, password) {
      if (isArgon2Hash(hash)) return argon2.verify(hash, password)
      return isCryptHash(hash) && worker.verify(hash, password)
    },
    stop: () => worker.stop(),
  }
}
