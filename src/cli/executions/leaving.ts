/** What is told about an execution that is not waited for any longer. */
import { CliFailure, Interrupted, NotFound } from '../failures.ts'
import type { Session } from '../session.ts'
import { shownId } from './calls.ts'

/** How to see what comes of it. */
export function whereToLook(id: string): string {
  return `To get the results, execute:
 svc execution get ${shownId(id)}

To view output in real-time, execute:
 svc execution tail ${shownId(id)}
`
}

/** Notes how to find it again, when waiting for it has ended early. @param error what ended that */
export function noteLeft(session: Session, id: string, error: unknown): void {
  if (error instanceof Interrupted) {
    session.note(
      `\nThe execution goes on.\n${whereToLook(id)}\nTo cancel it, execute:\n svc execution cancel ${shownId(id)}\n`,
    )
  } else if (error instanceof CliFailure && !(error instanceof NotFound)) {
    session.note(`The execution ${shownId(id)} has been created.\n${whereToLook(id)}`)
  }
}
