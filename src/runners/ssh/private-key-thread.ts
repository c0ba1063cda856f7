/**
 * The thread behind `private-key.ts`: removes the passphrase from a private key. With default settings the key
 * derivation takes 0.2 s; the author of the key chooses its cost.
 */
import ssh2 from 'ssh2'
import { answerQuestions } from '../../core/thread.ts'
import { fromPkcs8, isPkcs8, toUnlockedText } from './private-key-text.ts'

export interface PrivateKeyQuestion {
  key: string
  passphrase: string
}

export type PrivateKeyAnswer = { key: string } | { problem: string }

answerQuestions(({ key, passphrase }: PrivateKeyQuestion): PrivateKeyAnswer => {
  if (isPkcs8(key)) {
    try {
      return { key: fromPkcs8(key, passphrase) }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      // A wrong passphrase may decrypt to something that no decoder knows.
      return { problem: /unsupported/.test(why) && !why.includes('DECODER') ? 'unsupported' : 'bad decrypt' }
    }
  }
  const parsed = ssh2.utils.parseKey(key, passphrase)
  // The format allows several keys per file; no tool writes such files.
  const first = Array.isArray(parsed) ? parsed[0] : parsed
  if (first === undefined || first instanceof Error) return { problem: first?.message ?? 'it contains no key' }
  return { key: toUnlockedText(first) }
})
