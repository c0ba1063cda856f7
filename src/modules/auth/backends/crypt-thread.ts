/** The thread behind `crypt-worker.ts`: checks one password after another. */
import { parentPort } from 'node:worker_threads'
import { verifyCrypt } from './crypt.ts'

export interface CryptRequest {
  n: number
  hash: string
  password: string
}

export type CryptAnswer = { n: number; matches: boolean } | { n: number; error: string }

const port = parentPort
if (port !== null) {
  port.on('message', ({ n, hash, password }: CryptRequest) => {
    let answer: CryptAnswer
    try {
      answer = { n, matches: verifyCrypt(hash, password) }
    } catch (error) {
      answer = { n, error: error instanceof Error ? error.message : String(error) }
    }
    port.postMessage(answer)
  })
}
