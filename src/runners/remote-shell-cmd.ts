/** Runs a command line on other hosts (contract 03, 3.6 to 3.9). */
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { MAX_ARGUMENT_BYTES, remoteParameters, runOnHosts, stopOnHosts, type RemoteDeps } from './ssh/run-on-hosts.ts'

export function createRemoteShellCmd(deps: RemoteDeps): Runner {
  const { hosts, dir, ...others } = remoteParameters(deps.settings.remoteDir, true)
  return {
    definition: {
      name: 'remote-shell-cmd',
      description: 'Runs a command line on other hosts over SSH.',
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
    stopBackground: (run) => stopOnHosts(deps, run, true),
    run: async (context) => {
      if (context.entryPoint !== '') {
        return programStartFailure(
          'The remote-shell-cmd runner does not support an entry point; remove "entry_point" from the action.',
        )
      }
      const cmd = context.runnerParameters['cmd']
      if (typeof cmd !== 'string')
        return programStartFailure('The parameter "cmd" is missing: there is no command to run.')
      const isOffCommandLine = context.containsSecret(cmd) || Buffer.byteLength(cmd) > MAX_ARGUMENT_BYTES
      // The leading space keeps a command that begins with a dash from being an option.
      const words = cmd.startsWith('-') ? ['-c', '--', cmd] : ['-c', cmd]
      return await runOnHosts(deps, context, {
        command: (sudo) => (isOffCommandLine ? { text: cmd } : { argv: [sudo ? 'bash' : '/bin/sh', ...words] }),
        mayNameKeyFile: true,
      })
    },
  }
}
