/** Copies a script to other hosts and runs it there (contract 03, 3.6 to 3.9). */
import { basename, join } from 'node:path'
import { passArgumentsByEnvironment } from './arguments-by-environment.ts'
import { contentVersionParameter } from './content-version.ts'
import { findPackFolderProblem } from './pack-folder.ts'
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { HEAD_BYTES } from './script-file.ts'
import { scriptArguments, secretArgumentsParameter } from './script-arguments.ts'
import { remoteParameters, runOnHosts, stopOnHosts, type RemoteDeps } from './ssh/run-on-hosts.ts'
import { copyFiles, removeFolder, type LocalFile } from './ssh/copy.ts'
import { readScript } from './ssh/read-script.ts'

export function createRemoteShellScript(deps: RemoteDeps): Runner {
  return {
    definition: {
      name: 'remote-shell-script',
      description: 'Copies a script to other hosts over SSH and runs it there.',
      enabled: true,
      runner_package: 'remote_runner',
      runner_module: 'remote_script_runner',
      runner_parameters: {
        ...remoteParameters(deps.settings.remoteDir),
        ...secretArgumentsParameter,
        ...contentVersionParameter,
      },
    },
    stopBackground: (run) => stopOnHosts(deps, run, false),
    run: async (context) => {
      if (context.entryPoint === '') {
        return programStartFailure('Missing entry_point action metadata attribute: there is no script to run.')
      }
      const given = context.runnerParameters['dir']
      const dir = typeof given === 'string' && given !== '' ? given : deps.settings.remoteDir
      if (!dir.startsWith('/') || dir.includes('\0')) {
        return programStartFailure('The parameter "dir" must be an absolute path on the hosts.')
      }
      let files: LocalFile[]
      try {
        files = await readScript(context.entryPoint, context.packFolder)
      } catch (error) {
        const why = (await findPackFolderProblem(context)) ?? (error instanceof Error ? error.message : '')
        return programStartFailure(`Failed copying content to remote boxes. ${why}`)
      }
      const folder = join(dir, context.liveactionId)
      const { arguments: words, environment, isSecret } = scriptArguments(context)
      const path = join(folder, basename(context.entryPoint))
      const head = files[0]?.bytes.toString('latin1', 0, HEAD_BYTES) ?? ''
      const startup = isSecret ? passArgumentsByEnvironment(head, path, words) : undefined
      return await runOnHosts(deps, context, {
        command: () => ({ argv: startup?.argv ?? [path, ...words] }),
        env: { ...environment, ...startup?.env },
        mayNameKeyFile: false,
        prepare: (host) => copyFiles(deps, host, folder, files, context.signal),
        cleanUp: (host, sudo) => removeFolder(deps, context, host, folder, sudo),
      })
    },
  }
}
