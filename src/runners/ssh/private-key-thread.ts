/**
 * The thread behind `private-key.ts`: takes the passphrase off a private key. The usual derivation takes a fifth of a
 * second, and whoever made the key chose how long.
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
  // Newer files could hold several keys; nobody has ever made one.
  const first = Array.isArray(parsed) ? parsed[0] : parsed
  if (first === undefined || first instanceof Error) return { problem: first?.message ?? 'there is no key in it' }
  return { key: toUnlockedText(first) }
})
