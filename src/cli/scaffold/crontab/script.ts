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
  const given = input === undefined ? [] : [`exec ${hereDocument('INPUT', endLine(input))}`]
  const job = [
    ...(user === undefined ? [] : accountOf(user, environment)),
    ...environment.map(([name, value]) => `export ${name}=${quote(value)}\n`),
    'cd "$HOME" || exit\n',
    ...given,
    isPlain ? `${command}\n` : `exec ${shell} -c ${quote(command)}\n`,
  ].join('')
  const head = `#!${isPlain ? shell : '/bin/sh'}\n# ${MARK}\n# From ${source}:\n# ${text}\n`
  return head + (user === undefined ? job : asAccount(user, job))
}

/** The line of the crontab that a script is made from; empty: the script does not tell. */
export const lineOfScript = (script: string): string => /^# From .*:\n# (.*)$/m.exec(script)?.[1] ?? ''

/** What cron sets for an account before the variables of its crontab. */
function accountOf(user: string, environment: CrontabJob['environment']): string[] {
  const name = quote(user)
  return [
    `export USER=${name} LOGNAME=${name}\n`,
    ...(environment.some(([variable]) => variable === 'HOME')
      ? []
      : [`HOME=$(getent passwd ${name} | cut -d: -f6)\nexport HOME\n`]),
  ]
}

/**
 * Root runs fixed programs only, with an environment that neither the crontab nor the server sets: whoever owns the crontab
 * is not root, and must not get the token of the execution. The job goes through a file descriptor, since all accounts can
 * read the arguments of a process.
 */
function asAccount(user: string, job: string): string {
  return [
    '# Changes the account first: no variable of the crontab may count for root.\n',
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin\n',
    'cd / || exit\n',
    `exec env -i PATH="$PATH" \${LANG:+"LANG=$LANG"} runuser -u ${quote(user)} -- /bin/sh -c 'eval "$(cat <&3)"' `,
    `3${hereDocument('JOB', `exec 3<&-\n${job}`)}`,
  ].join('')
}

/** As in cron, input ends with a line end unless it is empty. */
const endLine = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** A redirection from these lines. */
function hereDocument(name: string, lines: string): string {
  let end = name
  while (lines.split('\n').includes(end)) end += '_'
  return `<<'${end}'\n${lines}${end}\n`
}
