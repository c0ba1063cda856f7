/** Notes about an execution that svc no longer waits for. */
import { CliFailure, Interrupted, NotFound } from '../failures.ts'
import type { Session } from '../session.ts'
import { shownId } from './calls.ts'
import { clientName } from '../program-names.ts'

/** The commands that show its result and output. */
export function followUpCommands(id: string): string {
  return `To get the results, execute:
 ${clientName()} execution get ${shownId(id)}

To view output in real-time, execute:
 ${clientName()} execution tail ${shownId(id)}
`
}

/** Prints how to check on the execution when waiting ended early. @param error why it ended */
export function noteStillRunning(session: Session, id: string, error: unknown): void {
  if (error instanceof Interrupted) {
    session.note(
      `\nThe execution is still running.\n${followUpCommands(id)}\nTo cancel it, execute:\n ${clientName()} execution cancel ${shownId(id)}\n`,
    )
  } else if (error instanceof CliFailure && !(error instanceof NotFound)) {
    session.note(`Execution ${shownId(id)} was created.\n${followUpCommands(id)}`)
  }
}
