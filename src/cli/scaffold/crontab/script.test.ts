import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { fullOnly } from '../../../../tests/helpers/tiers.ts'
import { readCrontab } from './read.ts'
import { scriptOf } from './script.ts'

const scriptFor = (crontab: string, user?: string): string => {
  const { jobs, problems } = readCrontab(crontab, { isSystem: false, timeZone: 'UTC' })
  const [job] = jobs
  if (job === undefined) throw new Error(JSON.stringify(problems))
  return scriptOf(job, 'a.cron', user)
}

test('before the account changes, a script has no variable of the crontab', () => {
  const script = scriptFor('PATH=/home/alice/bin\nLD_PRELOAD=/home/alice/evil.so\n@daily run\n', 'alice')
  const asRoot = script
    .slice(0, script.indexOf("<<'JOB'"))
    .split('\n')
    .filter((line) => !line.startsWith('#'))
  expect(asRoot).toEqual([
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    'cd / || exit',
    `exec env -i PATH="$PATH" \${LANG:+"LANG=$LANG"} runuser -u alice -- /bin/sh -c 'eval "$(cat <&3)"' 3`,
  ])
})

describe.skipIf(process.getuid?.() !== 0)('a job of another account, run by root', () => {
  /** An account with a home that exists on every Linux. */
  const account = { name: 'daemon', uid: '1', home: '/usr/sbin' }
  let folder: TemporaryFolder
  beforeEach(() => {
    folder = makeFolder()
    chmodSync(folder.path, 0o777)
  })
  afterEach(() => folder.remove())

  const at = (name: string): string => join(folder.path, name)

  function run(
    crontab: string,
    env: Record<string, string> = {},
  ): { stdout: string; stderr: string; status: number | null } {
    writeFileSync(at('job.sh'), scriptFor(crontab, account.name), { mode: 0o700 })
    const environment = { PATH: '/usr/bin:/bin', HOME: '/root', ...env }
    const { stdout, stderr, status } = spawnSync(at('job.sh'), {
      env: environment,
      encoding: 'utf8',
      cwd: '/',
      // With a socket, bash takes itself for a child of rshd and sources other files.
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return { stdout, stderr, status }
  }

  /** Programs of the account that note who runs them. */
  function makeTraps(...names: string[]): void {
    for (const name of names) {
      writeFileSync(at(name), `#!/bin/sh\n/usr/bin/id -u >> ${at('ran')}\n`)
      chmodSync(at(name), 0o755)
    }
  }

  const ran = (): string[] =>
    existsSync(at('ran')) ? [...new Set(readFileSync(at('ran'), 'utf8').trim().split('\n'))] : []

  fullOnly(test)('gets the account, its home and its folder, as from cron', () => {
    expect(run('@daily id -u; pwd; echo "$HOME $USER $LOGNAME"; cat%in%put\n', { SECRET: 'x' })).toEqual({
      stdout: `${account.uid}\n${account.home}\n${account.home} ${account.name} ${account.name}\nin\nput\n`,
      stderr: '',
      status: 0,
    })
  })

  test('starts no program of its PATH as root, and needs none in it', () => {
    makeTraps('getent', 'cut', 'runuser', 'env', 'cat', 'sh', 'id')
    expect(run(`PATH=${folder.path}\n@daily id\n`)).toMatchObject({ status: 0, stderr: '' })
    expect(ran()).toEqual([account.uid])
    expect(run('PATH=/usr/bin:/bin\n@daily echo "$PATH"\n')).toMatchObject({ stdout: '/usr/bin:/bin\n', stderr: '' })
  })

  fullOnly(test)('sources no BASH_ENV or ENV as root, nor splits words at its IFS', () => {
    makeTraps('rc')
    const set = ['BASH_ENV', 'ENV'].map((name) => `${name}=${at('rc')}\n`).join('')
    const { stdout } = run(`SHELL=/bin/bash\nIFS=/\n${set}@daily pwd\n`)
    expect([stdout, ran()]).toEqual([`${account.home}\n`, [account.uid]])
  })

  fullOnly(test)('has nothing preloaded as root', () => {
    // The loader complains in each process that gets the variable: the shell of the job is the only one.
    const { stderr, stdout } = run('LD_PRELOAD=/nowhere/evil.so\n@daily echo done\n')
    expect([stderr.match(/evil\.so/g)?.length, stdout]).toEqual([1, 'done\n'])
  })

  fullOnly(test)('sees no variable of the server, and shows its own to nobody', () => {
    const { stdout } = run(
      'PGPASSWORD=geheim\n@daily echo "$PGPASSWORD$SVC_ACTION_AUTH_TOKEN"; tr "\\0" " " < /proc/$PPID/cmdline\n',
      { SVC_ACTION_AUTH_TOKEN: 'token' },
    )
    expect(stdout.split('\n')[0]).toBe('geheim')
    expect(stdout.slice(stdout.indexOf('\n'))).not.toContain('geheim')
    expect(stdout).toContain('runuser')
  })

  fullOnly(test)('may be as long as a line of a crontab', () => {
    const many = Array.from({ length: 300 }, (_, index) => `V${index}=${'x'.repeat(500)}\n`).join('')
    expect(run(`${many}@daily echo "$V299" | wc -c\n`)).toMatchObject({ stdout: '501\n', stderr: '' })
    expect(run("@daily cat%JOB%INPUT%it's\n").stdout).toBe("JOB\nINPUT\nit's\n")
  })
})
