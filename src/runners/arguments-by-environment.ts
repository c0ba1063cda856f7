/**
 * Starts a script without arguments on its command line, which other accounts of the machine can read.
 *
 * The arguments travel in an environment variable, from which a shell sets its positional parameters. This works only
 * for scripts of `sh`, `dash` and `bash`.
 */
import { quote } from '../lib/process/index.ts'

const ARGUMENTS = 'SVC_ACTION_ARGUMENTS'
/** Largest variable on Linux, with its name and the terminating NUL. */
const MAX_VARIABLE_BYTES = 131_072

/**
 * Flags without a value that change neither the startup files nor the output: `-x` would print the arguments. A single
 * `-` or `--` ends the options.
 */
const SHEBANG =
  /^#![ \t]*(\/(?:[!-~]*\/)?)(sh|dash|bash|env)(?:[ \t]+(sh|dash|bash))?(?:[ \t]+(-[befmuBCEHT]+|-|--))?[ \t]*\n/

/** Stops the script if the variable got lost; it must not run without its arguments. */
const CHECK = `: "\${${ARGUMENTS}?}"`
/** Sets the positional parameters of the current shell and removes the variable. */
const SET = `eval "set -- $${ARGUMENTS}"; unset ${ARGUMENTS}`

/** @param after commands that the startup file of bash runs last */
function withStartupFile(start: string, after = ''): string {
  return [
    "{ exec 9<<'.' && : </dev/fd/9; } 2>/dev/null && BASH_ENV=/dev/fd/9 exec " + start,
    `${SET} BASH_ENV; exec 9<&-${after}`,
    '.',
  ].join('\n')
}

/**
 * The system starts the script as usual, but without arguments: bash sets them in its startup file. Sourcing the script
 * instead would be visible to it: many scripts use `return` at top level to detect that. If bash would skip the startup
 * file, or `BASH_ENV` is already set, the arguments go on the command line.
 */
const BASH_PROGRAM = [
  CHECK,
  'if [[ ! -o posix && $UID = "$EUID" && -z ${BASH_ENV+x} ]]; then',
  withStartupFile('"$0"'),
  'exec 9<&-',
  'fi',
  `${SET}; exec "$0" "$@"`,
].join('\n')

/** In other shells scripts cannot detect sourcing. A bash called sh reads no startup file: it gets that name later. */
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
 * @param head the beginning of the script, at least its first line
 * @returns command and environment that replace `[path, ...words]`; undefined when that is impossible
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
  // The system passes everything after the interpreter as one argument.
  if (program === 'env' && flags !== '') return undefined
  const start: [string, ...string[]] = [folder + program, ...(named === undefined ? [] : [named])]
  // bash may assume that sshd started it, and source ~/.bashrc.
  if ((named ?? program) === 'bash') return { argv: [...start, '--norc', '-c', BASH_PROGRAM, path], env }
  const switches = /\w/.test(flags) ? [flags] : []
  return { argv: [...start, ...switches, '-c', shProgram(switches.join(' ')), path], env }
}
