/** The script of a job: what cron would do before, and for, its command. */
import { quote } from '../../../lib/process/index.ts'
import type { CrontabJob } from './read.ts'

/** Its first line, or its second below `#!`, tells that an import may replace a file. */
export const MARK = 'Written by svc crontab import, which replaces this file. Without this line it is yours.'

/** Shells that read a script as `sh` does. */
const likeSh = /\/(?:sh|bash|dash|ash|ksh|ksh93|mksh|zsh|yash)$/

/**
 * @param source where the line stands, for people
 * @param user account to change to, as root; undefined: that of the server's commands
 */
export function scriptOf(
  { text, command, input, shell, environment }: CrontabJob,
  source: string,
  user: string | undefined,
): string {
  const isPlain = user === undefined && likeSh.test(shell)
  const variables: string[] = environment.map(([name, value]) => `export ${name}=${quote(value)}\n`)
  if (user !== undefined) {
    const name = quote(user)
    variables.unshift(`export USER=${name} LOGNAME=${name}\n`)
    if (!environment.some(([variable]) => variable === 'HOME')) {
      variables.push(`HOME=$(getent passwd ${name} | cut -d: -f6)\n`)
    }
  }
  const words = [...(user === undefined ? [] : ['runuser', '-u', quote(user), '--']), shell, '-c', quote(command)]
  return [
    `#!${isPlain ? shell : '/bin/sh'}\n# ${MARK}\n# From ${source}:\n# ${text}\n`,
    ...variables,
    'cd "$HOME" || exit\n',
    ...(input === undefined ? [] : [hereDocument(input)]),
    isPlain ? `${command}\n` : `exec ${words.join(' ')}\n`,
  ].join('')
}

/** Standard input for all that follows; as in cron, it ends with a line end unless it is empty. */
function hereDocument(input: string): string {
  const lines = input === '' || input.endsWith('\n') ? input : `${input}\n`
  let end = 'INPUT'
  while (input.split('\n').includes(end)) end += '_'
  return `exec <<'${end}'\n${lines}${end}\n`
}
