/**
 * Every command: how it is called and where its code is. Code is loaded only when its command is used, so that the client
 * starts at once. To add a command: write `commands/<noun>.ts` and a line here.
 */
import type { Command } from 'commander'
import type { CommandContext } from '../session.ts'

export interface CommandEntry {
  name: string
  /** For `svc --help`. */
  summary: string
  /** Heading it stands under in `svc --help`. */
  group: string
  load(context: CommandContext): Promise<Command>
}

export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Run the server in the foreground.',
    group: 'Server:',
    load: async ({ setExitCode }) => (await import('./serve.ts')).createServeCommand(setExitCode),
  },
  {
    name: 'run',
    summary: 'Run an action and wait for its result.',
    group: 'Actions:',
    load: async (context) => (await import('./run.ts')).createRunCommand(context),
  },
  {
    name: 'action',
    summary: 'List, show and run actions.',
    group: 'Actions:',
    load: async (context) => (await import('./action.ts')).createActionCommand(context),
  },
  {
    name: 'execution',
    summary: 'List, show, follow, repeat and stop executions.',
    group: 'Executions:',
    load: async (context) => (await import('./execution.ts')).createExecutionCommand(context),
  },
]
