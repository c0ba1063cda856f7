/** Runs a PowerShell script of a pack on a Windows host (contract 03, 3.6 to 3.9). */
import { readBoundedFile } from '../lib/files/index.ts'
import { contentVersionParameter } from './content-version.ts'
import type { DirectoryCheck } from './process/directory-check.ts'
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'
import { findScript, type ScriptFile } from './script-file.ts'
import { winrmParameters } from './winrm/parameters.ts'
import type { WinrmDeps } from './winrm/run.ts'

/** A host gets it in messages of 64 KiB. */
const MAX_SCRIPT_BYTES = 1_048_576

export function createWinrmPsScript(deps: WinrmDeps & { directoryCheck: DirectoryCheck }): Runner {
  return {
    definition: {
      name: 'winrm-ps-script',
      description: 'Runs a PowerShell script of a pack on a Windows host over WinRM.',
      enabled: true,
      runner_package: 'winrm_runner',
      runner_module: 'winrm_ps_script_runner',
      runner_parameters: { ...winrmParameters(), ...contentVersionParameter },
    },
    run: async (context) => {
      const script = await findScript(context, deps.directoryCheck)
      if ('problem' in script) return programStartFailure(script.problem)
      const read = await readText(script)
      if ('problem' in read) return programStartFailure(read.problem)
      const [{ runOnWindows }, { powershellArguments, powershellCommand, scriptCall }] = await Promise.all([
        import('./winrm/run.ts'),
        import('./winrm/powershell.ts'),
      ])
      const given = powershellArguments(context)
      if ('problem' in given) return programStartFailure(given.problem)
      const text = scriptCall(read.text, given.words)
      return await runOnWindows(deps, context, powershellCommand(text, given.isSecret || context.containsSecret(text)))
    },
  }
}

/** Editors of Windows write UTF-16 too, with a mark at the beginning. */
async function readText({ realPath, name }: ScriptFile): Promise<{ text: string } | { problem: string }> {
  const file = await readBoundedFile(realPath, MAX_SCRIPT_BYTES)
  if ('problem' in file) return { problem: `The script "${name}" ${file.problem}.` }
  const mark = file.bytes.toString('latin1', 0, 2)
  const encoding = mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : 'utf-8'
  try {
    return { text: new TextDecoder(encoding, { fatal: true }).decode(file.bytes) }
  } catch {
    return { problem: `The script "${name}" is not text in UTF-8 or UTF-16: save it in one of them.` }
  }
}
