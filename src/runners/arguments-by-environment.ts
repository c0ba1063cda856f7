/**
 * Starts a script without arguments on its command line, which other accounts of the machine can read.
 *
 * The arguments are in an environment variable, and a shell makes its positional parameters of them. Therefore this works
 * only for scripts of `sh`, `dash` and `bash`.
 */
import { quote } from '../lib/process/index.ts'

const ARGUMENTS = 'SVC_ACTION_ARGUMENTS'
/** What Linux takes as one variable, its name and its end included. */
const MAX_VARIABLE_BYTES = 131_072

/**
 * Flags without a value that change neither what is read at the start nor what is printed: `-x` would show the arguments.
 * A dash or two alone end the options.
 */
const SHEBANG =
  /^#![ \t]*(\/(?:[!-~]*\/)?)(sh|dash|bash|env)(?:[ \t]+(sh|dash|bash))?(?:[ \t]+(-[befmuBCEHT]+|-|--))?[ \t]*\n/

/** A script is not run without its arguments because the variable did not come through. */
const CHECK = `: "\${${ARGUMENTS}?}"`
/** Gives them to the shell that runs it, and leaves no trace. */
const SET = `eval "set -- $${ARGUMENTS}"; unset ${ARGUMENTS}`

/** @param after what the startup file of a bash does at last */
function withStartupFile(start: string, after = ''): string {
  return [
    "{ exec 9<<'.' && : </dev/fd/9; } 2>/dev/null && BASH_ENV=/dev/fd/9 exec " + start,
    `${SET} BASH_ENV; exec 9<&-${after}`,
    '.',
  ].join('\n')
}

/**
 * The script is started by the system as ever, but without arguments: bash has them from the file that it reads first. To
 * source the script instead would show: `return` at its top level is how many find out whether they are sourced. Where bash
 * would not read that file, or somebody else has one to be read, the arguments are arguments.
 */
const BASH_PROGRAM = [
  CHECK,
  'if [[ ! -o posix && $UID = "$EUID" && -z ${BASH_ENV+x} ]]; then',
  withStartupFile('"$0"'),
  'exec 9<&-',
  'fi',
  `${SET}; exec "$0" "$@"`,
].join('\n')

/** Other shells do not tell a script that is sourced. A bash by the name of sh reads no file, so it gets the name later. */
function shProgram(flags: string): string {
  return [
    CHECK,
    'case ${BASH_VERSINFO-} in ?*)',
    'case $(export -p) in *" BASH_ENV="*|*" POSIXLY_CORRECT="*|*" SHELLOPTS="*) ;; *)',
    withStartupFile('-a bash "$BASH" "$0"', `; set -o posix ${flags}`),
    'exec 9<&-',
    'esac',
    `${SET}; exec "$0" "$@"`,
    'esac',
    `${SET}; . "$0"`,
  ].join('\n')
}

/**
 * @param head the beginning of the script, its first line at least
 * @returns the command and environment in place of `[path, ...words]`; undefined when the script cannot get them this way
 */
export function passArgumentsByEnvironment(
  head: string,
  path: string,
  words: readonly string[],
): { argv: [string, ...string[]]; env: Record<string, string> } | undefined {
  const value = words.map(quote).join(' ')
  if (value.includes('\0') || ARGUMENTS.length + 1 + Buffer.byteLength(value) + 1 > MAX_VARIABLE_BYTES) return undefined
  const env = { [ARGUMENTS]: value }
  if (!head.startsWith('#!')) {
    return head.startsWith('\x7fELF') ? undefined : { argv: ['/bin/sh', '-c', shProgram(''), path], env }
  }
  const [, folder = '', program = '', named, flags = ''] = SHEBANG.exec(head) ?? []
  if (program === '' || (program === 'env') !== (named !== undefined)) return undefined
  // The system hands over all that stands behind the interpreter as one argument.
  if (program === 'env' && flags !== '') return undefined
  const start: [string, ...string[]] = [folder + program, ...(named === undefined ? [] : [named])]
  // It may believe that sshd started it, and source ~/.bashrc.
  if ((named ?? program) === 'bash') return { argv: [...start, '--norc', '-c', BASH_PROGRAM, path], env }
  const switches = /\w/.test(flags) ? [flags] : []
  return { argv: [...start, ...switches, '-c', shProgram(switches.join(' ')), path], env }
}
