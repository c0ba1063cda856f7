/** Ctrl-C at a terminal while svc waits for an execution. */
import { cliProcess } from '../cli-process.ts'
import { cancelExecution, shownId } from './calls.ts'
import { CliFailure, Interrupted } from '../failures.ts'
import { printable } from '../output/print.ts'
import { isInForeground } from '../output/progress.ts'
import type { Session } from '../session.ts'

export interface InterruptibleResult<T> {
  value: T
  /** The user chose to cancel the execution, and the server accepted it. */
  isCanceled: boolean
}

/**
 * Runs work that waits for an execution. Ctrl-C at a terminal asks what to do with the execution: leave it
 * running (also a second Ctrl-C), cancel it and wait until it has ended, or keep waiting.
 *
 * @throws Interrupted when it is left, and what the work fails with
 */
export async function askAtInterrupt<T>(
  session: Session,
  id: string,
  work: () => Promise<T>,
): Promise<InterruptibleResult<T>> {
  const { isTerminal } = cliProcess()
  if (!isTerminal(0) || !isTerminal(2)) return { value: await work(), isCanceled: false }
  const over = new AbortController()
  let question: Promise<void> | undefined
  let isCanceled = false

  async function ask(): Promise<void> {
    const release = session.holdOutput()
    try {
      const key = await readAnswer(session, id, over.signal)
      if (key === 'c') isCanceled = await cancel(session, id)
      else if (key !== 'w') session.interrupt()
    } catch (error) {
      if (over.signal.aborted) session.note('the execution has ended.\n')
      else {
        // The terminal may be gone.
        if (!(error instanceof Interrupted)) session.note(`${error instanceof Error ? error.message : String(error)}\n`)
        session.interrupt()
      }
    } finally {
      question = undefined
      release()
    }
  }

  const letGo = session.takeInterrupts(() => {
    if (question !== undefined || isCanceled || !isInForeground()) session.interrupt()
    else question = ask()
  })
  try {
    return { value: await work(), isCanceled }
  } finally {
    letGo()
    over.abort()
    await question
  }
}

const answers: Readonly<Record<string, string>> = { c: 'cancel', w: 'wait', '': 'leave' }

async function readAnswer(session: Session, id: string, over: AbortSignal): Promise<string> {
  const { withSecretInput } = await import('../input/prompt.ts')
  const { note } = session
  const interrupted = AbortSignal.any([session.interrupted, over])
  const question = `\nExecution ${shownId(id)} is still running. Leave it running (Enter), cancel it (c), or keep waiting (w)?`
  const key = await withSecretInput({ interrupted, note }, (input) => input.askKey(question, 'cwl'))
  note(`${answers[key] ?? 'leave'}\n`)
  return key
}

/** Cancels the execution; a refusal is only noted. @returns whether the server cancels it */
async function cancel(session: Session, id: string): Promise<boolean> {
  try {
    const { refusal } = await cancelExecution(session, id)
    if (refusal !== undefined) session.note(`${printable(refusal)}\n`)
    return refusal === undefined
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error
    session.note(`ERROR: ${error.message}\n`)
    return false
  }
}
