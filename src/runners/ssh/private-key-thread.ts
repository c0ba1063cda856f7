/**
 * The thread behind `private-key.ts`: removes the passphrase from a private key. With default settings the key
 * derivation takes 0.2 s; the author of the key chooses its cost.
 */
import ssh2 from 'ssh2'
import { answerQuestions } from '../../core/thread.ts'
import { toUnlockedText } from './private-key-text.ts'

export interface PrivateKeyQuestion {
  key: string
  passphrase: string
}

export type PrivateKeyAnswer = { key: string } | { problem: string }

answerQuestions(({ key, passphrase }: PrivateKeyQuestion): PrivateKeyAnswer => {
  const parsed = ssh2.utils.parseKey(key, passphrase)
  // The format allows several keys per file; no tool writes such files.
  const first = Array.isArray(parsed) ? parsed[0] : parsed
  if (first === undefined || first instanceof Error) return { problem: first?.message ?? 'it contains no key' }
  return { key: toUnlockedText(first) }
})
