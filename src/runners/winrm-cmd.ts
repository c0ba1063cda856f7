/** Runs a command line on a Windows host (contract 03, 3.6 to 3.9). */
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { winrmParameters } from './winrm/parameters.ts'
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
      if (context.entryPoint !== '') {
        return programStartFailure(
          'The winrm-cmd runner does not support an entry point; remove "entry_point" from the action.',
        )
      }
      const cmd = context.runnerParameters['cmd']
      if (typeof cmd !== 'string' || cmd === '') {
        return programStartFailure('The parameter "cmd" is missing: there is no command to run.')
      }
      const { runOnWindows } = await import('./winrm/run.ts')
      return await runOnWindows(deps, context, { line: cmd })
    },
  }
}
