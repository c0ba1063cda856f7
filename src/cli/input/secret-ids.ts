/** Objects identified by a secret or an id, such as API keys and tokens. */
import { isId } from '../../core/ids.ts'
import { withSecretInput } from './prompt.ts'
import { forEachId, subjectOf, type CliRecordKind, type Subject } from '../records.ts'
import type { Session } from '../session.ts'

/** The subject of a request. A word that is not an id is the secret itself, and is never printed. */
export function subjectOfSecret(kind: CliRecordKind, word: string): Subject {
  return { ...subjectOf(kind, word), isSecret: !isId(word) }
}

/** As `forEachId`; every `-` stands for the next line of standard input. @param question what is asked for at a terminal */
export function forEachSecret(
  session: Session,
  words: readonly string[],
  question: string,
  work: (word: string) => Promise<number>,
): Promise<number> {
  return withSecretInput(session, (input) =>
    forEachId(session, words, async (word) => work(word === '-' ? await input.ask(question) : word)),
  )
}
