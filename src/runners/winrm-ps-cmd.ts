/** Runs a PowerShell command on a Windows host (contract 03, 3.6 to 3.9). */
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { winrmParameters } from './winrm/parameters.ts'
import type { WinrmDeps } from './winrm/run.ts'

export function createWinrmPsCmd(deps: WinrmDeps): Runner {
  return {
    definition: {
      name: 'winrm-ps-cmd',
      description: 'Runs a PowerShell command on a Windows host over WinRM.',
      enabled: true,
      runner_package: 'winrm_runner',
      runner_module: 'winrm_ps_command_runner',
      runner_parameters: winrmParameters('Command for PowerShell; it may have several lines.'),
    },
    run: async (context) => {
      if (context.entryPoint !== '') {
        return programStartFailure(
          'The winrm-ps-cmd runner does not support an entry point; remove "entry_point" from the action.',
        )
      }
      const cmd = context.runnerParameters['cmd']
      if (typeof cmd !== 'string' || cmd === '') {
        return programStartFailure('The parameter "cmd" is missing: there is no command to run.')
      }
      const [{ runOnWindows }, { powershellCommand }] = await Promise.all([
        import('./winrm/run.ts'),
        import('./winrm/powershell.ts'),
      ])
      return await runOnWindows(deps, context, powershellCommand(cmd, context.containsSecret(cmd)))
    },
  }
}
