/** Where a run notes that it begins. What is not noted has not begun, and is queued again after a crash. */
import { writeSync } from 'node:fs'

export interface StartNote {
  fd: number
  position: number
  text: string
}

/** Call before the first effect of a run. @throws errors of the file system: a run that is not noted must not begin */
export function writeStartNote(note: StartNote | undefined): void {
  if (note !== undefined) writeSync(note.fd, note.text, note.position, 'latin1')
}
