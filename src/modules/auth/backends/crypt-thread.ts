/** The thread of `crypt-worker.ts`: checks one password at a time. */
import { answerQuestions } from '../../../core/thread.ts'
import { verifyCrypt } from './crypt.ts'

export interface CryptQuestion {
  hash: string
  password: string
}

answerQuestions(({ hash, password }: CryptQuestion) => verifyCrypt(hash, password))
