/** Runs a command line on other machines (contract 03, 3.6 to 3.9). */
import { startFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { MAX_ARGUMENT_BYTES, remoteParameters, runOnHosts, type RemoteDeps } from './ssh/run-on-hosts.ts'

export function createRemoteShellCmd(deps: RemoteDeps): Runner {
  const { hosts, dir, ...others } = remoteParameters(deps.settings.remoteDir, true)
  return {
    definition: {
      name: 'remote-shell-cmd',
      description: 'Runs a command line on other machines, by SSH.',
      enabled: true,
      runner_package: 'remote_runner',
      runner_module: 'remote_command_runner',
      runner_parameters: {
        ...(hosts === undefined ? {} : { hosts }),
        cmd: { type: 'string', description: 'Command line to run.' },
        ...others,
        ...(dir === undefined ? {} : { dir: { ...dir, immutable: true } }),
      },
    },
    run: async (context) => {
      if (context.entryPoint !== '') {
        return startFailure(
          'An entry point is not supported by the remote-shell-cmd runner; remove "entry_point" of the action.',
        )
      }
      const cmd = context.runnerParameters['cmd']
      if (typeof cmd !== 'string') return startFailure('The parameter "cmd" is missing: there is no command to run.')
      const isHidden = context.hides(cmd) || Buffer.byteLength(cmd) > MAX_ARGUMENT_BYTES
      // A command that begins with a dash is no option of the shell.
      const words = cmd.startsWith('-') ? ['-c', '--', cmd] : ['-c', cmd]
      return await runOnHosts(deps, context, {
        command: (sudo) => (isHidden ? { text: cmd } : { argv: [sudo ? 'bash' : '/bin/sh', ...words] }),
        mayNameKeyFile: true,
      })
    },
  }
}
