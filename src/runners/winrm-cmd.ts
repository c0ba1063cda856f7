/** Runs a command line on a Windows host (contract 03, 3.6 to 3.9). */
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { readCommand, winrmParameters } from './winrm/parameters.ts'
import type { WinrmDeps } from './winrm/run.ts'

export function createWinrmCmd(deps: WinrmDeps): Runner {
  return {
    definition: {
      name: 'winrm-cmd',
      description: 'Runs a command line on a Windows host over WinRM.',
      enabled: true,
      runner_package: 'winrm_runner',
      runner_module: 'winrm_command_runner',
      runner_parameters: winrmParameters('Command line for cmd.exe.'),
    },
    run: async (context) => {
      const command = readCommand(context, 'winrm-cmd')
      if ('problem' in command) return programStartFailure(command.problem)
      const { runOnWindows } = await import('./winrm/run.ts')
      return await runOnWindows(deps, context, { line: command.cmd })
    },
  }
}
