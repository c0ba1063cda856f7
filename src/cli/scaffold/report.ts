/** How a command says which files it wrote, and what comes next. */
import type { Json } from '../output/print.ts'
import type { Session } from '../session.ts'
import { shownPath, type PlannedFile } from './write-files.ts'

export interface NextStep {
  command: string
  /** What it does, without a full stop. */
  about: string
}

/** @param more for machine output, before the files */
export async function reportFiles(
  session: Session,
  files: readonly Pick<PlannedFile, 'path'>[],
  next: readonly NextStep[],
  more: Json = {},
): Promise<void> {
  if (session.form !== 'human') {
    await session.printMachine({
      ...more,
      files: files.map(({ path }) => path),
      next: next.map(({ command }) => command),
    })
    return
  }
  const created = files.map(({ path }) => `Created ${shownPath(path)}\n`).join('')
  await session.print(`${created}\n${nextText(next)}`)
}

export function nextText(next: readonly NextStep[]): string {
  const width = Math.max(...next.map(({ command }) => command.length))
  return `Next:\n${next.map(({ command, about }) => `  ${command.padEnd(width)}  # ${about}\n`).join('')}`
}
