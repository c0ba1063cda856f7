/** The runners that use SSH, against a real server whose processes are on this machine (contract 03, 3.6 to 3.10). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { newId } from '../../src/ids.ts'
import { createRunners, type Runners, type RunnerSettings } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import type { Runner } from '../../src/runners/runner.ts'
import { makeSshSite, type ClientKey, type Sshd, type SshSite } from '../helpers/sshd.ts'
import { describeProcessRunner } from './runner-suite.ts'

const MAX_RESULT_BYTES = 1000

type Ssh = NonNullable<RunnerSettings['ssh']>
type HostAnswer = Record<string, unknown>

let launcher: Launcher
let site: SshSite
let sshd: Sshd
let key: ClientKey
let shared: Subject
const warnings: string[] = []
const stopped: (() => Promise<void>)[] = []

interface Subject {
  runners: Runners
  cmd: Runner
  script: Runner
}

async function makeRunners(ssh: Ssh = {}): Promise<Subject> {
  const runners = await createRunners({
    launcher,
    maxResultBytes: MAX_RESULT_BYTES,
    systemUser: site.user,
    ssh: {
      knownHostsFile: join(site.folder, `known-${newId()}`),
      hostKeyChecking: 'accept-new',
      keyFile: key.path,
      ...ssh,
    },
    warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
  })
  stopped.push(() => runners.stop())
  const byName = new Map(runners.list.map((runner) => [runner.definition.name, runner]))
  const [cmd, script] = [byName.get('remote-shell-cmd'), byName.get('remote-shell-script')]
  if (cmd === undefined || script === undefined) throw new Error('A runner is missing in the list')
  return { runners, cmd, script }
}

let scripts = 0
function writeScript(text: string): string {
  const path = join(site.folder, `script-${++scripts}.sh`)
  writeFileSync(path, text)
  return path
}

beforeAll(async () => {
  launcher = (await createLauncher('child-process')).launcher
  site = await makeSshSite()
  key = site.makeKey('id_allowed')
  sshd = await site.start()
  shared = await makeRunners()
})
afterAll(async () => {
  await Promise.all(stopped.map((stop) => stop()))
  await site.stop()
  await launcher.stop()
})
afterEach(() => {
  if (warnings.length > 0) throw new Error(`Unexpected warnings: ${warnings.splice(0).join('; ')}`)
})

const read = (result: Record<string, unknown>) => {
  const { stdout, stderr, return_code: code, error } = { ...result, ...(result['127.0.0.1'] as HostAnswer | undefined) }
  return { stdout, stderr, code, error }
}

describeProcessRunner({
  name: 'remote-shell-cmd',
  runner: () => shared.cmd,
  shell: (text, more) => ({ runnerParameters: { cmd: text, hosts: sshd.address, ...more } }),
  read,
  maxResultBytes: MAX_RESULT_BYTES,
  startFailures: [
    ['no hosts', () => ({ runnerParameters: { cmd: ':', hosts: ' , ' } }), /^No hosts specified to run action/],
    ['no host', () => ({ runnerParameters: { cmd: ':', hosts: 'a b' } }), /"a b"/],
    ['no command', () => ({ runnerParameters: { hosts: sshd.address } }), /"cmd"/],
    ['too large', () => ({ runnerParameters: { cmd: 'x'.repeat(300_000), hosts: sshd.address } }), /too large/],
    ['bad name', () => ({ runnerParameters: { cmd: ':', hosts: sshd.address, env: { 'A;x': 1 } } }), /"A;x"/],
    ['NUL', () => ({ runnerParameters: { cmd: 'a\0b', hosts: sshd.address } }), /NUL/],
    ['nobody there', () => ({ runnerParameters: { cmd: ':', hosts: '127.0.0.1:9' } }), /^Unable to connect to any one/],
  ],
})

describeProcessRunner({
  name: 'remote-shell-script',
  runner: () => shared.script,
  shell: (text, more) => ({
    entryPoint: writeScript(`#!/bin/sh\n${text}\n`),
    runnerParameters: { hosts: sshd.address, ...more },
  }),
  read,
  maxResultBytes: MAX_RESULT_BYTES,
  startFailures: [
    ['no script', () => ({ runnerParameters: { hosts: sshd.address } }), /entry_point/],
    ['a missing script', () => ({ entryPoint: '/no/such.sh', runnerParameters: { hosts: sshd.address } }), /"such.sh"/],
    [
      'no such folder there',
      () => ({ entryPoint: writeScript('#!/bin/sh\n'), runnerParameters: { hosts: sshd.address, dir: '/no/such' } }),
      /^Failed copying content to remote boxes\. .*\/no\/such/,
    ],
  ],
})
