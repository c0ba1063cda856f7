/** Runs a command line on the host of the server (contract 03, 3.6 to 3.9). */
import { localShellParameters, type LocalShell } from './local-shell.ts'
import { programStartFailure } from './process/run-command.ts'
import type { RunContext, Runner, RunResult } from './runner.ts'

/**
 * Other accounts can see the arguments of a shell, but not its environment. Arguments that the command passes to
 * programs stay visible. The command does not inherit the variable.
 */
const SECRET_COMMAND = 'SVC_ACTION_COMMAND'
const runSecretCommand = `eval "unset ${SECRET_COMMAND};$${SECRET_COMMAND}"`

export function createLocalShellCmd(shell: LocalShell): Runner {
  return {
    definition: {
      name: 'local-shell-cmd',
      description: 'Runs a command line on the host of the server.',
      enabled: true,
      runner_package: 'local_runner',
      runner_module: 'local_shell_command_runner',
      runner_parameters: {
        cmd: { type: 'string', description: 'Command line to run.' },
        stdin: {
          type: 'string',
          description:
            'Text that the command reads from its standard input: a safe place for any value, of any size. Empty by default.',
        },
        ...localShellParameters,
      },
    },
    notesStart: true,
    run: (context) => runLocalShellCmd(shell, context),
  }
}

async function runLocalShellCmd(shell: LocalShell, context: RunContext): Promise<RunResult> {
  if (context.entryPoint !== '') {
    return programStartFailure(
      'The local-shell-cmd runner does not support an entry point; remove "entry_point" from the action.',
    )
  }
  const cmd = context.runnerParameters['cmd']
  if (typeof cmd !== 'string') return programStartFailure('The parameter "cmd" is missing: there is no command to run.')
  const input = context.runnerParameters['stdin'] ?? ''
  if (typeof input !== 'string') return programStartFailure('The parameter "stdin" must be text.')
  if (input.includes('\0')) {
    return programStartFailure(
      'The text for the standard input of the command contains a NUL character. Remove it, or encode the text.',
    )
  }
  const isSecret = context.containsSecret(cmd)
  const args = shellArguments(isSecret ? runSecretCommand : cmd)
  const env = isSecret ? { [SECRET_COMMAND]: cmd } : {}
  const stdin = input === '' ? {} : { stdin: input }
  return await shell.run(context, { file: '/bin/sh', args, bash: args, env, ...stdin })
}

/** The leading space keeps a command that begins with a dash from being an option. */
function shellArguments(cmd: string): string[] {
  return cmd.startsWith('-') ? ['-c', '--', cmd] : ['-c', cmd]
}
