/**
 * The programs that svc runs on other hosts, written for `/bin/sh`.
 *
 * The program is not an argument but standard input of a shell: other accounts of that machine can read the arguments
 * of a process, and environment and passwords must not be among them. svc sends it when that shell reports that it is
 * ready: the login shell and its startup files come first, and would read what they find. The command itself has an
 * empty standard input. Its arguments are visible there as they are for a local command.
 */
import { randomUUID } from 'node:crypto'
import { quote } from '../../lib/process/index.ts'
import type { FoundProcess } from '../process/kill-tree.ts'

export interface ReadyShell {
  /** A single line without `\`, `!` and inner quotes, so that every login shell takes it as it is: sh, csh, fish. */
  command: string
  /**
   * Prefix of the line, on stdout and on stderr, in which the shell reports that it is ready; `readProcess` reads the
   * rest. Startup files may have redirected one of the two.
   */
  readyMark: string
}

/** A shell that reports that it is ready, then runs its standard input. */
export function readyShell(): ReadyShell {
  const readyMark = `[ready ${randomUUID()}]`
  const steps = [
    // The start time is field 22 of the file, or 0 where that is missing. Word splitting is intended.
    's=',
    '[ -r "/proc/$$/stat" ] && read -r s <"/proc/$$/stat"',
    'set -f',
    'set -- ${s##*) }',
    `m="${readyMark} $$ \${20:-0}"`,
    'echo "$m"',
    'echo "$m" >&2',
    'exec /bin/sh',
  ]
  return { command: `exec /bin/sh -c '${steps.join('; ')}'`, readyMark }
}

/** @param rest the line after `readyMark` */
export function readProcess(rest: string): RemoteProcess | undefined {
  const [, pid, startTime = '0'] = /^(\d{1,10}) (\d{1,20})$/.exec(rest) ?? []
  return pid === undefined ? undefined : { pid: Number(pid), startTime }
}

export interface RemoteCommand {
  /** Program and arguments, or shell text that must not appear among the arguments of a process. */
  run: { argv: readonly string[] } | { text: string }
  cwd: string
  env: Readonly<Record<string, string>>
  sudo: boolean
  sudoPassword: string | undefined
}

export interface RemoteProgram {
  text: string
  /** The line, on stdout and on stderr, that the program prints before the command; without it nothing has run. */
  startMark: string
  /** The prompt that sudo prints, when it was given a password. */
  sudoPrompt: string | undefined
  /**
   * The line on stdout in which the program names the processes that pass its output on. It is missing where the host
   * has no `mkfifo`.
   */
  relayMark: string
}

export function remoteProgram(command: RemoteCommand): RemoteProgram {
  const { sudo, sudoPassword } = command
  const startMark = `[start ${randomUUID()}]`
  const sudoPrompt = sudo && sudoPassword !== undefined ? `[sudo ${randomUUID()}]` : undefined
  const body = bodyOf(command, startMark)
  const relayMark = `[relay ${randomUUID()}]`
  const main = sudo ? asRoot(body, sudoPassword, sudoPrompt ?? '') : body
  return { text: `${relayOutput(relayMark)}${main}`, startMark, sudoPrompt, relayMark }
}

/**
 * Puts two processes between the command and the SSH server. When the command has ended and svc has closed the channel,
 * they go on reading and discard, so that background processes do not die of SIGPIPE at their next output. While the
 * command runs they end with the channel, as the command itself would. They ignore TERM, which is for the processes
 * whose last output they pass on, and end with the last writer.
 */
function relayOutput(relayMark: string): string {
  const pipe = `/tmp/.svc-${randomUUID()}`
  const lines = [
    '{',
    `relay() { trap '' HUP INT TERM PIPE; cat || kill -0 "$$" 2>/dev/null || exec cat >/dev/null; }`,
    `if mkfifo -m 600 ${pipe}.1 ${pipe}.2 2>/dev/null; then`,
    `relay <${pipe}.1 & r=$!`,
    // Both pipes are open when this one is. Removing them must not delay the command.
    `{ rm -f ${pipe}.1 ${pipe}.2 & relay; } <${pipe}.2 >&2 & r="$r $!"`,
    `exec >${pipe}.1 2>${pipe}.2`,
    `echo "${relayMark} $r"`,
    'fi',
    'unset r; unset -f relay',
    '}',
  ]
  return `${lines.join('\n')}\n`
}

/** @param rest the line after `relayMark` */
export function readRelays(rest: string): number[] {
  return rest.split(' ').map(Number).filter(Number.isSafeInteger)
}

/** In braces, so that the shell runs nothing of a program cut short by a broken connection. */
function bodyOf({ run, cwd, env }: RemoteCommand, startMark: string): string {
  const lines = [
    '{',
    'exec </dev/null',
    `echo ${quote(startMark)}; echo ${quote(startMark)} >&2`,
    `cd -- ${quote(cwd)} || exit 1`,
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`),
    // The leading space keeps a text that begins with a dash from being an option.
    'text' in run ? `eval ${quote(` ${run.text}`)}` : `exec ${run.argv.map(quote).join(' ')}`,
    'exit',
    '}',
  ]
  return `${lines.join('\n')}\n`
}

/** Passes the program to a root shell the same way, after the password where sudo asks for one. */
function asRoot(body: string, password: string | undefined, prompt: string): string {
  // printf is a shell builtin, so its arguments appear in no process list.
  const plain = `printf '%s' "$b" | sudo -E -- bash`
  // Without a prompt the shell would read the password as a command; -k also ignores cached credentials.
  const asked = (given: string): string[] => [
    'elif sudo -n -k -E -- bash -c : </dev/null >/dev/null 2>&1; then',
    plain,
    'else',
    `{ printf '%s\\n' ${quote(given)}; printf '%s' "$b"; } | sudo -k -S -p ${quote(prompt)} -E -- bash`,
  ]
  const lines = [
    '{',
    `b=${quote(body)}`,
    'if ! command -v sudo >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then',
    `printf '%s' "$b" | bash`,
    ...(password === undefined ? ['else', plain] : asked(password)),
    'fi',
    'exit $?',
    '}',
  ]
  return `${lines.join('\n')}\n`
}

export interface RemoteProcess {
  pid: number
  /** `0` means unknown. */
  startTime: string
}

export interface KillRequest {
  executionId: string
  process: RemoteProcess | undefined
  graceSeconds: number
  /** The command may run as root. */
  sudo: boolean
  sudoPassword: string | undefined
}

/**
 * Prints the processes that a kill would stop, without the relays of their output: one word each, for
 * `readFoundProcesses`.
 */
export function findProgram(
  { executionId, process }: Pick<KillRequest, 'executionId' | 'process'>,
  relays: readonly number[],
): string {
  return `{\n${treeOf(executionId, process)}\nr='${relays.join(' ')}'; f=1; find_tree\n}\n`
}

/** @param text what `findProgram` printed */
export function readFoundProcesses(text: string): FoundProcess[] {
  return text.split(/\s+/).flatMap((word) => {
    const [, pid, fork] = /^(\d+)(f?)$/.exec(word) ?? []
    return pid === undefined ? [] : [{ pid: Number(pid), continuesFirst: fork === 'f' }]
  })
}

function treeOf(executionId: string, process: RemoteProcess | undefined): string {
  return FIND_TREE.replace('@MARK@', `SVC_ACTION_EXECUTION_ID=${executionId}`)
    .replace('@PID@', process === undefined ? '' : String(process.pid))
    .replace('@START@', process?.startTime ?? '0')
}

/**
 * Stops a process tree: TERM, then KILL when the grace period is over, repeated until no process is left. The tree
 * consists of the started process, its group and session, and all their descendants. On Linux it also includes every
 * process with the execution's marker in its environment, whatever its session. Prints the pids of survivors; without any,
 * what `readStopped` reads.
 */
export function killProgram({ executionId, process, graceSeconds, sudo, sudoPassword }: KillRequest): string {
  const kill = `${treeOf(executionId, process)}\n${KILL_TREE.replace('@GRACE@', String(graceSeconds))}`
  if (!sudo) return `{\n${kill}\n}\n`
  const start = `sh -c ${quote(kill)}`
  const password =
    sudoPassword === undefined ? [] : [`printf '%s\\n' ${quote(sudoPassword)} | sudo -k -S -p '' ${start} && exit`]
  return ['{', `sudo -n ${start} </dev/null && exit`, ...password, kill, '}', ''].join('\n')
}

/** With `f=1` the pids of forks of the first process that have started no other program end in `f`. */
const FIND_TREE = String.raw`m='@MARK@'; p='@PID@'; s='@START@'; r=; f=
if [ -n "$p" ] && [ "$s" != 0 ] && [ -r "/proc/$p/stat" ]; then
  l=; read -r l <"/proc/$p/stat"
  set -f; set -- \${l##*) }; set +f
  # The pid may belong to another process by now.
  [ "\${20}" = "$s" ] || p=
fi
find_tree() {
  {
    grep -ls -- "$m" /proc/[0-9]*/environ 2>/dev/null | sed 's|^/proc/\([0-9]*\)/.*|m \1|'
    # Flag 64: forked, and has not called exec since. The name of a program may hold anything.
    [ -z "$f" ] || grep -s '' /proc/[0-9]*/stat | awk '
      { pid = $0; sub(/^\/proc\//, "", pid); sub(/\/.*/, "", pid); sub(/^.*\) /, "") }
      int($7 / 64) % 2 { print "f", pid }'
    if [ -r /proc/self/status ]; then
      cat /proc/[0-9]*/status 2>/dev/null | awk '
        /^State:/ { state = $2 }
        /^Pid:/ { pid = $2; group = session = 0 }
        /^PPid:/ { parent = $2 }
        /^NSpgid:/ { group = $2 }
        /^NSsid:/ { session = $2; print "t", pid, parent, group, session, state }'
    else
      ps -A -o pid= -o ppid= -o pgid= -o stat= | awk '{ print "t", $1, $2, $3, $3, $4 }'
    fi
  } | awk -v root="$p" -v self="$$" -v relays="$r" -v mark="\${f:+f}" '
    function continues(i) {
      for (; (i in own) && i != root; i = parent[i]) if (!(i in forked) || session[i] != root) return 0
      return 1
    }
    BEGIN { for (i = split(relays, one); i > 0; i--) skipped[one[i]] = 1 }
    $1 == "m" { marked[$2] = 1; next }
    $1 == "f" { forked[$2] = 1; next }
    { parent[$2] = $3; group[$2] = $4; session[$2] = $5; state[$2] = $6 }
    END {
      if (root != "") { own[root] = 1; groups[root] = 1; sessions[root] = 1 }
      do {
        more = 0
        for (i in parent) {
          if ((i in own) || i + 0 <= 1 || i == self) continue
          if (!((i in marked) || (parent[i] in own) || (group[i] in groups) || (session[i] in sessions))) continue
          own[i] = 1; more = 1
          if (group[i] == i) groups[i] = 1
          if (session[i] == i) sessions[i] = 1
        }
      } while (more)
      for (i in own) {
        if (!(i in parent) || state[i] ~ /^[ZX]/) continue
        if (!(i in skipped) && !(parent[i] in skipped)) print i (continues(i) ? mark : "")
      }
    }'
}`.replaceAll('\\${', '${')

/** @returns how many processes the program of `killProgram` stopped; undefined when it did not finish */
export function readStopped(text: string): number | undefined {
  const count = /^stopped (\d+)$/m.exec(text)?.[1]
  return count === undefined ? undefined : Number(count)
}

const KILL_TREE = String.raw`g=@GRACE@
pause() { sleep 0.1 2>/dev/null || sleep 1; }
end=$(( $(date +%s) + g ))
in_time() { [ "$(date +%s)" -le "$end" ]; }
told=
while l=$(find_tree); [ -n "$l" ]; do
  # Each process gets TERM once: many treat a second TERM as an order to exit at once.
  new=$(echo "$l" | awk -v told="$told" '
    BEGIN { for (i = split(told, one); i > 0; i--) known[one[i]] = 1 }
    !($1 in known)')
  [ -z "$new" ] || kill -TERM $new 2>/dev/null
  # The list is bounded; processes beyond it are signalled again until they exit.
  [ "\${#told}" -gt 60000 ] || told="$told "$(echo $new)
  # While the root lives it may keep starting processes, and listing them all would use up the grace period.
  while [ -n "$p" ] && in_time && kill -0 "$p" 2>/dev/null; do pause; done
  in_time || break
  pause
done
# First the root, which may start more: listing takes longer the more processes there are.
[ -z "$p" ] || case " "$(echo $l)" " in *" $p "*) kill -KILL "$p" "-$p" 2>/dev/null ;; esac
n=0
while l=$(find_tree); [ -n "$l" ]; do
  kill -KILL $l 2>/dev/null
  n=$((n + 1))
  if [ "$n" -gt 50 ]; then echo $l; exit 1; fi
  pause
done
set -- $told
echo "stopped $#"`.replaceAll('\\${', '${')

/** Removes a folder that svc made, including files that the script created in it as root. */
export function removeProgram(folder: string, sudo: boolean): string {
  const remove = `rm -rf -- ${quote(folder)}`
  return `{ cd /\n${remove}${sudo ? ` 2>/dev/null || sudo -n ${remove}` : ''}\n}\n`
}
