/** Runs a PowerShell command on a Windows host (contract 03, 3.6 to 3.9). */
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { readCommand, winrmParameters } from './winrm/parameters.ts'
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
      const command = readCommand(context, 'winrm-ps-cmd')
      if ('problem' in command) return programStartFailure(command.problem)
      const [{ runOnWindows }, { powershellCommand }] = await Promise.all([
        import('./winrm/run.ts'),
        import('./winrm/powershell.ts'),
      ])
      return await runOnWindows(deps, context, powershellCommand(command.cmd, context.containsSecret(command.cmd)))
    },
  }
}
