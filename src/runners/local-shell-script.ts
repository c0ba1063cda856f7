/** Runs a script of a pack on the host of the server (contract 03, 3.6 to 3.9). */
import { constants } from 'node:fs'
import { access, chmod } from 'node:fs/promises'
import { passArgumentsByEnvironment } from './arguments-by-environment.ts'
import { contentVersionParameter } from './content-version.ts'
import { localShellParameters, type LocalProgram, type LocalShell } from './local-shell.ts'
import type { SpawnError } from './process/launcher.ts'
import { programStartFailure } from './process/run-command.ts'
import type { RunContext, Runner, RunResult } from './runner.ts'
import { scriptArguments, secretArgumentsParameter } from './script-arguments.ts'
import { findScript, type ScriptFile } from './script-file.ts'
import { quote } from '../lib/process/index.ts'

type InterpreterAt = (path: string) => readonly string[]

/**
 * @param ownPack the pack shipped with svc: variables for its scripts
 * @param interpreterAt the words that start the interpreter that a script names by a path; default: the path
 */
export function createLocalShellScript(
  shell: LocalShell,
  ownPack: { name: string; env: Record<string, string> },
  interpreterAt: InterpreterAt = (path) => [path],
): Runner {
  return {
    definition: {
      name: 'local-shell-script',
      description: 'Runs a script of a pack on the host of the server.',
      enabled: true,
      runner_package: 'local_runner',
      runner_module: 'local_shell_script_runner',
      runner_parameters: {
        ...localShellParameters,
        ...secretArgumentsParameter,
        debug: { type: 'boolean', default: false, description: 'Sets SVC_ACTION_DEBUG to True for the script.' },
        ...contentVersionParameter,
      },
    },
    notesStart: true,
    run: (context) =>
      runLocalShellScript(shell, context, context.pack === ownPack.name ? ownPack.env : {}, interpreterAt),
  }
}

async function runLocalShellScript(
  shell: LocalShell,
  context: RunContext,
  env: Record<string, string>,
  interpreterAt: InterpreterAt,
): Promise<RunResult> {
  const script = await findScript(context, shell.directoryCheck)
  if ('problem' in script) return programStartFailure(script.problem)
  const isOtherAccount = shell.isOtherAccount(context)
  const isExecutable = await makeExecutable(script)
  if (!isExecutable && !isOtherAccount) return programStartFailure(notExecutable(script))

  const given = scriptArguments(context)
  const startup = given.isSecret ? passArgumentsByEnvironment(script.head, script.path, given.arguments) : undefined
  // The file may belong to the other account.
  const first = isExecutable ? '' : 'chmod +x "$0"; '
  const elsewhere = movedInterpreter(script, interpreterAt)
  const openly = (): Pick<LocalProgram, 'file' | 'args' | 'bash'> => {
    const words = elsewhere?.map((word) => `${quote(word)} `).join('') ?? ''
    return {
      ...directly(script, given.arguments, elsewhere),
      bash: ['-c', `${first}exec ${words}"$0" "$@"`, script.path, ...given.arguments],
    }
  }
  return await shell.run(context, {
    ...(startup === undefined || elsewhere !== undefined ? openly() : hiddenly(startup.argv, first)),
    env: { ...env, ...given.environment, ...startup?.env },
    explain: (error) => explain(script, error),
  })
}

/** The words of a `#!` line whose interpreter is not where the line says; undefined: it is there. */
function movedInterpreter({ head }: ScriptFile, interpreterAt: InterpreterAt): string[] | undefined {
  const [, path = '', argument = ''] = /^#![ \t]*(\/\S+)[ \t]*([^\n]*)/.exec(head) ?? []
  const words = path === '' ? [path] : interpreterAt(path)
  if (words.length === 1 && words[0] === path) return undefined
  return [...words, ...(argument.trim() === '' ? [] : [argument.trim()])]
}

/** sh runs a script without `#!` line, as shells do. */
function directly(
  { path, head }: ScriptFile,
  args: string[],
  [interpreter, ...words]: readonly string[] = [],
): Pick<LocalProgram, 'file' | 'args'> {
  if (interpreter !== undefined) return { file: interpreter, args: [...words, path, ...args] }
  const isProgram = head.startsWith('#!') || head.startsWith('\x7fELF')
  return isProgram ? { file: path, args } : { file: '/bin/sh', args: [path, ...args] }
}

function hiddenly([file, ...args]: [string, ...string[]], first: string): Pick<LocalProgram, 'file' | 'args' | 'bash'> {
  const words = [file, ...args.slice(0, -1)].map(quote)
  return { file, args, bash: ['-c', `${first}exec ${words.join(' ')} "$0"`, ...args.slice(-1)] }
}

/** Makes the file executable for all who can read it. @returns whether the account of the server can execute it */
async function makeExecutable({ realPath, mode }: ScriptFile): Promise<boolean> {
  const wanted = mode | ((mode & 0o444) >> 2)
  // It may be executable all the same, or the other account may be able to change it.
  if (wanted !== mode) await chmod(realPath, wanted).catch(() => undefined)
  return await access(realPath, constants.X_OK).then(
    () => true,
    () => false,
  )
}

function notExecutable({ name }: ScriptFile): string {
  return (
    `The script "${name}" is not executable, and the server cannot change that: another account owns the file, or ` +
    'its file system is read-only or mounted noexec. Run chmod +x on it at the source of the pack.'
  )
}

function explain({ path, name, head }: ScriptFile, { errno, message }: SpawnError): string {
  const [line = ''] = head.split('\n')
  const interpreter = line.startsWith('#!') ? line.slice(2).trim().split(/\s/)[0] : undefined
  if (interpreter !== undefined && (errno === 'ENOENT' || errno === 'ENOTDIR')) {
    return line.endsWith('\r')
      ? `The script "${name}" has Windows line ends, which break its "#!" line: save it with Unix line ends.`
      : `The script "${name}" needs the interpreter "${interpreter}", which does not exist on this host.`
  }
  if (interpreter !== undefined && errno === 'EACCES') {
    return `The script "${name}" cannot run: its interpreter "${interpreter}" is not executable.`
  }
  return message.replaceAll(path, name)
}
