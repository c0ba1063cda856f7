/**
 * Every command: how it is called and where its code is. Code is loaded only when its command is used, so that the client
 * starts at once. To add a command: write `commands/<noun>.ts` and a line here.
 */
import type { Command } from 'commander'

export interface CommandEntry {
  name: string
  /** For `svc --help`. */
  summary: string
  load(setExitCode: (code: number) => void): Promise<Command>
}

export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Run the server in the foreground.',
    load: async (setExitCode) => (await import('./serve.ts')).createServeCommand(setExitCode),
  },
]
