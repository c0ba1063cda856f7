import { execFile, execFileSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { passArgumentsByEnvironment } from './arguments-by-environment.ts'

const folder = makeFolder()
let count = 0

beforeAll(() => symlinkSync('/bin/bash', join(folder.path, 'sh')))
afterAll(() => folder.remove())

interface Ended {
  code: number | undefined
  stdout: string
  stderr: string
}

async function start([file = '', ...args]: readonly string[], env: Record<string, string>): Promise<Ended> {
  try {
    const started = promisify(execFile)(file, args, { env, timeout: 30_000 })
    started.child.stdin?.end()
    return { code: 0, ...(await started) }
  } catch (error) {
    return error as Ended & Error
  }
}

/** Without what only tells that another shell stood before this one. */
const plain = ({ code, stdout, stderr }: Ended): Ended => ({ code, stdout: stdout.replace(/^_=.*\n/m, ''), stderr })

function write(text: string): string {
  const path = join(folder.path, `script ${++count}'$x`)
  // A file that is open for writing cannot be run, and what other threads fork meanwhile has it open for a moment.
  execFileSync('/bin/sh', ['-c', 'cat > "$1"; chmod 755 "$1"', 'sh', path], { input: text })
  return path
}

/** Both ways; @returns how they ended, and whether the arguments were hidden */
async function both(text: string, words: readonly string[], more: Record<string, string> = {}) {
  const path = write(text)
  const env = { PATH: '/usr/bin:/bin', ...more }
  const hidden = passArgumentsByEnvironment(text.slice(0, 256), path, words)
  if (hidden === undefined) throw new Error('not hidden')
  if (JSON.stringify(hidden.argv).includes('geheim')) throw new Error('not hidden')
  const first = text.startsWith('#!') ? [path] : ['/bin/sh', path]
  const [shown, other] = await Promise.all([
    start([...first, ...words], env),
    start(hidden.argv, { ...env, ...hidden.env }),
  ])
  return { shown: plain(shown), hidden: plain(other) }
}

const hostile = [
  '--password=geheim',
  `it's "$HOME" \`id\` $(id) \\ \\\\ !! {a,b} ~ * ? [a]`,
  '',
  ' ',
  'a\nb\n\n',
  '\r\n\t\v\x01\x02\x7f\x1b[0m',
  'āĂăĄąĆćĈ ä€😀',
  '-n',
  '--',
  "''",
  "'",
  ';',
  '\\',
  "$'\\n'",
]
const shells: [string, string][] = [
  ['sh', '#!/bin/sh'],
  ['sh with flags', '#! /bin/sh -eu'],
  ['dash with a dash', '#!/bin/dash -'],
  ['bash', '#!/bin/bash'],
  ['bash with flags', '#!/bin/bash -eu '],
  ['bash by env', '#!/usr/bin/env bash'],
  ['a bash by the name of sh', `#!${folder.path}/sh -eu`],
  ['nothing', ''],
]

describe.concurrent.each(shells.map(([name]) => name))('a script of %s', (name) => {
  const run = (text: string, words: readonly string[] = hostile, more: Record<string, string> = {}) =>
    both(`${shells.find(([other]) => other === name)?.[1] ?? ''}\n${text}\n`, words, more)

  it.each([
    ['its arguments', `echo "$#"; printf '<%s>' "$@"`],
    ['no arguments where there are none', 'echo "$#"', []],
    ['its name', 'echo "$0"; cat "$0"'],
    ['its flags', 'echo "$-"'],
    ['an environment without more', 'env | sort'],
    ['its line numbers and errors', 'echo\necho "${LINENO-}"; shift 3; echo "$1"; cat /no/such >&2; exit 7'],
    ['an end at the first error, or none', 'false; echo went on'],
    ['unset variables', 'echo "${nope}"; echo went on'],
    ['functions and traps', 'trap \'echo "end $?"\' EXIT; f() { echo "$1"; return 4; }; f inner || echo "$2"; exit 3'],
    ['what it starts', 'sh -c \'printf "<%s>" "$@"\' x "$@"; exec printf "[%s]" "$@"'],
    ['the same again', 'if [ "$1" = again ]; then shift; printf "<%s>" "$@"; else exec "$0" again "$@"; fi'],
    ['its options', 'while getopts "np:" o; do echo "$o ${OPTARG-}"; done; echo "$OPTIND"', ['-n', '-p', 'x', 'y']],
    ['its standard input', 'cat; read -r x || echo none'],
    ['its status', '(exit 9)'],
    ['lines of Windows', 'echo "$1"\r'],
    ['a mistake in its text', 'echo "$#"\nif then\n'],
    [
      'a return that tells whether it is sourced',
      '(return 0 2>/dev/null) && echo sourced || echo run; return 5 2>/dev/null; echo "end $?"',
    ],
  ])('has %s', async (_, text, words?: string[]) => {
    const { shown, hidden } = await run(text, words)
    const isDash = !name.includes('bash')
    // dash names the sourced file twice in its own messages.
    if (isDash) hidden.stderr = hidden.stderr.replace(/^(.*?: \d+: ).*?\$x: /gm, '$1')
    if (isDash) shown.stderr = shown.stderr.replace(/^(.*?: \d+: ).*?\$x: /gm, '$1')
    expect(hidden).toEqual(shown)
  })

  it('shows them to nobody', async () => {
    const look = `tr '\\0' ' ' </proc/$$/cmdline; sh -c 'tr "\\0" " " </proc/$PPID/cmdline'; echo; echo "$1"`
    const { hidden, shown } = await run(look)
    expect(shown.stdout.match(/geheim/g)).toHaveLength(3)
    expect(hidden.stdout.match(/geheim/g)).toHaveLength(1)
  })

  it('has them also where bash would not read a file first', async () => {
    const startup = write('')
    for (const more of [{ POSIXLY_CORRECT: '1' }, { BASH_ENV: startup }, { SHELLOPTS: 'posix' }]) {
      const { hidden, shown } = await run(`printf '<%s>' "$@"`, hostile, more)
      expect(hidden).toEqual(shown)
    }
  })
})

it('bash finds itself and what stands around it as ever', async () => {
  const text = [
    '#!/bin/bash',
    'echo "${#BASH_SOURCE[@]} ${BASH_SOURCE[0]} $BASH ${BASH_EXECUTION_STRING-none} $SHLVL $LINENO ${BASH_ENV-none}"',
    'caller; shopt; set -o; [[ "${BASH_SOURCE[0]}" == "$0" ]] && echo main',
    'set -x; f() { echo "${FUNCNAME[*]}"; }; f',
    'for fd in /proc/$$/fd/*; do echo "${fd##*/}"; done',
  ].join('\n')
  const { hidden, shown } = await both(text, hostile)
  expect(hidden).toEqual(shown)
})

it('fails where the variable is lost', async () => {
  for (const line of ['#!/bin/sh', '#!/bin/bash', `#!${folder.path}/sh`]) {
    const path = write(`${line}\necho ran\n`)
    const { argv } = passArgumentsByEnvironment(`${line}\n`, path, ['x']) ?? { argv: ['/bin/true'] }
    const { code, stdout } = await start(argv, { PATH: '/usr/bin:/bin' })
    expect([line, code === 0, stdout]).toEqual([line, false, ''])
  }
})

it.each([
  '#!/usr/bin/python3\n',
  '#!/usr/bin/env python3\n',
  '#!/usr/bin/env -S bash -e\n',
  '#!/usr/bin/env bash -e\n',
  '#!/usr/bin/env\n',
  '#!/bin/zsh\n',
  '#!/bin/ksh\n',
  '#!/bin/rbash\n',
  '#!/bin/bash -l\n',
  '#!/bin/sh -x\n',
  '#!/bin/bash -p\n',
  '#!/bin/bash --posix\n',
  '#!/bin/sh -e -u\n',
  '#!/bin/sh\r\n',
  '#!sh\n',
  '#!/opt/ü/sh\n',
  `#!/${'x'.repeat(256)}/sh`,
  '\x7fELF',
])('leaves %j alone', (head) => {
  expect(passArgumentsByEnvironment(head, '/x', ['geheim'])).toBeUndefined()
})

it('leaves alone what does not fit into a variable', async () => {
  const largest = 'x'.repeat(131_072 - 'SVC_ACTION_ARGUMENTS=\0'.length)
  expect(passArgumentsByEnvironment('', '/x', [`${largest}x`])).toBeUndefined()
  expect(passArgumentsByEnvironment('', '/x', ['a\0b'])).toBeUndefined()
  const { hidden, shown } = await both('#!/bin/sh\nprintf %s "$1" | wc -c', [largest])
  expect(hidden).toEqual(shown)
  expect(Number(hidden.stdout)).toBe(largest.length)
})
