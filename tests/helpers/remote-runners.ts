/** The runners for other hosts, without a server around them. */
import { join } from 'node:path'
import { newId } from '../../src/core/ids.ts'
import { createRunners, type Runners, type RunnerSettings } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import type { RunContext, Runner, RunResult } from '../../src/runners/runner.ts'
import { recordRun } from './run-context.ts'
import type { SshSite } from './sshd.ts'

export type SshOptions = NonNullable<RunnerSettings['ssh']>

export interface RemoteSubject {
  runners: Runners
  cmd: Runner
  script: Runner
}

export interface RemoteRunners {
  /** Runners that log in as the site's account. @param warnings gets the runners' warnings as lines */
  make(ssh?: SshOptions, warnings?: string[]): Promise<RemoteSubject>
  stop(): Promise<void>
}

/** @param keyFile key of the system user */
export async function remoteRunners(site: SshSite, keyFile: string, maxResultBytes: number): Promise<RemoteRunners> {
  const { launcher } = await createLauncher('child-process')
  const made: Runners[] = []
  return {
    async make(ssh = {}, warnings = []) {
      const runners = await createRunners({
        launcher,
        maxResultBytes,
        systemUser: site.user,
        // Long enough for a loaded machine; runs wait for it only where something outlives the command.
        background: { mode: 'wait', graceSeconds: 2 },
        ssh: {
          knownHostsFile: join(site.folder, `known-${newId()}`),
          hostKeyChecking: 'accept-new',
          keyFile,
          ...ssh,
        },
        warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
      })
      made.push(runners)
      const byName = new Map(runners.list.map((runner) => [runner.definition.name, runner]))
      const [cmd, script] = [byName.get('remote-shell-cmd'), byName.get('remote-shell-script')]
      if (cmd === undefined || script === undefined) throw new Error('A runner is missing in the list')
      return { runners, cmd, script }
    },
    async stop() {
      await Promise.all(made.map((runners) => runners.stop()))
      await launcher.stop()
    },
  }
}

/** What one host answered. */
export type HostAnswer = Record<string, unknown>

/** Runs a command on one host; the answer is that of the host, or the whole result when no host was reached. */
export async function runThere(
  { cmd }: Pick<RemoteSubject, 'cmd'>,
  runnerParameters: Record<string, unknown>,
  more: Partial<RunContext> = {},
): Promise<{ status: RunResult['status']; answer: HostAnswer; output: { stdout: string; stderr: string } }> {
  const { context, output } = recordRun(runnerParameters, more)
  const { status, result } = await cmd.run(context)
  const [first] = Object.values(result)
  return { status, answer: typeof first === 'object' && first !== null ? (first as HostAnswer) : result, output }
}
