/** Runs one program on several hosts, in sequence or in parallel, and combines the results (contract 03, 3.9). */
import { isObject, type ParameterSchema } from '../../lib/schema/index.ts'
import { environmentText } from '../environment.ts'
import { programStartFailure, type BackgroundChoice } from '../process/run-command.ts'
import { backgroundParameters, readRunParameters } from '../run-parameters.ts'
import type { EndedRun, RunContext, RunResult, StoppedBackground } from '../runner.ts'
import { sshTextOf } from './connection.ts'
import { parseHosts, type HostAddress } from './hosts.ts'
import type { PrivateKeys } from './private-key.ts'
import type { RemoteCommand } from './remote-program.ts'
import { connectionFailure, runOnHost, stopOnHost } from './run-on-host.ts'
import type { ConnectedHost, HostResult, HostRunDeps } from './run-on-host.ts'
import { createLocate, type SshLogin, type TargetSettings } from './targets.ts'
import { nearestNumber, writeJson } from '../../lib/json/index.ts'

/** The options of `ssh_runner.*` and `system_user.*` that runs need. */
export interface RemoteSettings extends TargetSettings {
  remoteDir: string
  allowPartialFailure: boolean
  maxParallel: number
}

export interface RemoteDeps extends HostRunDeps {
  keys: PrivateKeys
  /** `actionrunner.background` and its grace. */
  background: BackgroundChoice
  settings: RemoteSettings
}

const DEFAULT_TIMEOUT_SECONDS = 60
const DEFAULT_CWD = '/tmp'
const USUAL_PORT = 22
/** Largest argument of a program on Linux, without the terminating NUL. */
export const MAX_ARGUMENT_BYTES = 131_071
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The parameters of both SSH runners. */
export function remoteParameters(remoteDir: string, mayNameKeyFile = false): Record<string, ParameterSchema> {
  return {
    hosts: {
      type: 'string',
      required: true,
      description: 'Hosts, separated by commas: host, host:port or [IPv6 address]:port.',
    },
    username: { type: 'string', description: 'User to log in as. Default: the system user.' },
    password: { type: 'string', secret: true, description: 'Password to log in with.' },
    private_key: {
      type: 'string',
      secret: true,
      description: `Private key to log in with: ${mayNameKeyFile ? 'its text or the path of its file on the server' : 'its text'}. Without key and password: the system user's key.`,
    },
    passphrase: { type: 'string', secret: true, description: 'Passphrase of the private key.' },
    port: { type: 'integer', default: USUAL_PORT, description: 'Port of hosts without a port in "hosts".' },
    bastion_host: {
      type: 'string',
      description: 'Jump host: host or host:port. It gets the same user and credentials.',
    },
    cwd: { type: 'string', default: DEFAULT_CWD, description: 'Working directory on the hosts. It must exist.' },
    dir: {
      type: 'string',
      default: remoteDir,
      description: 'Folder on the hosts that holds scripts while they run.',
    },
    env: { type: 'object', description: 'Environment variables for the command. Values become text.' },
    kwarg_op: {
      type: 'string',
      default: '--',
      description: 'Operator in front of the names of keyword arguments, such as -- or -.',
    },
    parallel: {
      type: 'boolean',
      default: false,
      immutable: true,
      description: 'Run on about a third of the hosts in parallel instead of one host at a time.',
    },
    sudo: { type: 'boolean', default: false, description: 'Run the command as root.' },
    sudo_password: {
      type: 'string',
      default: null,
      secret: true,
      description: 'Password for sudo, if sudo asks for one.',
    },
    timeout: {
      type: 'integer',
      default: DEFAULT_TIMEOUT_SECONDS,
      description: 'Seconds the command may run on a host. 0 disables the limit.',
    },
    ...backgroundParameters,
  }
}

/** The command for the hosts, and its setup and cleanup. */
export interface RemoteWork {
  command(sudo: boolean): RemoteCommand['run']
  /** Additional variables; they override parameter `env`. */
  env?: Readonly<Record<string, string>>
  /** Whether `private_key` may be the path of a file on the server. */
  mayNameKeyFile: boolean
  /** Copies what the command needs to the host. @throws Error on failure */
  prepare?(host: ConnectedHost): Promise<void>
  /** Removes the copied files, however the run ends. */
  cleanUp?(host: ConnectedHost, sudo: boolean): Promise<void>
}

/** Stops what outlived a run on its hosts, with the login of the run. */
export async function stopOnHosts(
  deps: RemoteDeps,
  { executionId, result, runnerParameters }: EndedRun,
  mayNameKeyFile: boolean,
): Promise<StoppedBackground> {
  const labels = new Set(Object.keys(result).filter((label) => hasBackground(result[label])))
  if (labels.size === 0) return { stopped: 0, problems: [] }
  let stopped = 0
  const problems: string[] = []
  try {
    const read = readLogin(await runnerParameters())
    if ('problem' in read) throw new Error(read.problem)
    const { addresses, login, sudo, sudoPassword } = read
    const locate = await createLocate(deps.settings, deps.keys, login, mayNameKeyFile)
    const left = addresses.filter(({ label }) => labels.has(label))
    await forEachAtOnce(left, deps.settings.maxParallel, async (address) => {
      try {
        const target = await locate(address)
        const lease = await deps.pool.acquire(target, neverAborted)
        const host: ConnectedHost = { label: address.label, target, lease }
        try {
          stopped += await stopOnHost(deps, host, { executionId, sudo, sudoPassword })
        } finally {
          host.lease.release()
        }
      } catch (error) {
        problems.push(sentence(`${address.label}: ${sshTextOf(error)}`))
      }
    })
  } catch (error) {
    problems.push(sentence(error instanceof Error ? error.message : String(error)))
  }
  return { stopped, problems }
}

const neverAborted = new AbortController().signal
const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`)

function hasBackground(hostResult: unknown): boolean {
  return isObject(hostResult) && isObject(hostResult['background']) && 'pids' in hostResult['background']
}

export async function runOnHosts(deps: RemoteDeps, context: RunContext, work: RemoteWork): Promise<RunResult> {
  const parameters = readParameters(deps, context, work)
  if ('status' in parameters) return parameters
  const { addresses, command, timeoutSeconds, background, atOnce, login } = parameters
  const { signal } = context

  // In parallel: each host that does not answer takes a minute.
  const connected: ConnectedHost[] = []
  const results = new Map<string, HostResult>()
  try {
    const locate = await createLocate(deps.settings, deps.keys, login, work.mayNameKeyFile)
    await forEachAtOnce(addresses, deps.settings.maxParallel, async (address) => {
      let note: string | undefined
      try {
        const target = await locate(address)
        ;({ note } = target)
        connected.push({ label: address.label, target, lease: await deps.pool.acquire(target, signal) })
      } catch (error) {
        results.set(address.label, connectionFailure([sshTextOf(error), note].filter(Boolean).join('. ')))
      }
    })
    if (connected.length === 0) return unreachable(addresses, results)
    const failed = await prepare(deps, work, connected)
    if (failed.length > 0) return programStartFailure(`Failed copying content to remote boxes. ${failed.join(' ')}`)
    connected.sort((a, b) => order(addresses, a.label) - order(addresses, b.label))
    // All hosts share the size limit of one result.
    const share = { ...deps, maxResultBytes: Math.max(1, Math.floor(deps.maxResultBytes / connected.length)) }
    await forEachAtOnce(connected, atOnce, async (host) => {
      results.set(host.label, await runOnHost(share, context, host, command, { timeoutSeconds, background }))
    })
  } catch (error) {
    // A problem with keys or configuration; other failures are results of their hosts.
    if (connected.length === 0 && error instanceof Error) return programStartFailure(error.message)
    throw error
  } finally {
    await forEachAtOnce(connected, deps.settings.maxParallel, async (host) => {
      await work.cleanUp?.(host, command.sudo)
      host.lease.release()
    })
  }
  return summarize(addresses, results, deps.settings.allowPartialFailure)
}

const order = (addresses: readonly HostAddress[], label: string): number =>
  addresses.findIndex((address) => address.label === label)

interface Login {
  addresses: HostAddress[]
  login: SshLogin
  sudo: boolean
  sudoPassword: string | undefined
}

interface Request extends Pick<Login, 'addresses' | 'login'> {
  command: RemoteCommand
  timeoutSeconds: number
  background: BackgroundChoice
  atOnce: number
}

function readParameters(deps: RemoteDeps, context: RunContext, work: RemoteWork): Request | RunResult {
  const given = context.runnerParameters
  const whom = readLogin(given)
  if ('problem' in whom) return programStartFailure(whom.problem)
  const { addresses, login, sudo, sudoPassword } = whom
  if (addresses.length === 0) {
    return programStartFailure(`No hosts specified to run action "${context.actionRef}" on; set "hosts".`)
  }
  const defaults = { timeoutSeconds: DEFAULT_TIMEOUT_SECONDS, background: deps.background }
  const common = readRunParameters(given, defaults)
  if ('problem' in common) return programStartFailure(common.problem)
  const { timeoutSeconds, background } = common
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(common.env ?? {})) {
    if (!VARIABLE.test(name)) {
      const shown = writeJson(name.slice(0, 200))
      return programStartFailure(`The parameter "env" has the invalid name ${shown}; use only letters, digits and _.`)
    }
    env[name] = environmentText(value)
  }
  Object.assign(env, work.env, context.env)
  const run = work.command(sudo)
  const command: RemoteCommand = { run, cwd: textIn(given, 'cwd') ?? DEFAULT_CWD, env, sudo, sudoPassword }
  const words = 'argv' in run ? run.argv : []
  const parts = [...words, ...Object.values(env), command.cwd, ...('text' in run ? [run.text] : [])]
  if (parts.some((part) => part.includes('\0'))) {
    return programStartFailure(
      'The command, its directory or its environment contains a NUL character, which programs cannot receive.',
    )
  }
  if ([...words, ...Object.values(env)].some((part) => Buffer.byteLength(part) > MAX_ARGUMENT_BYTES)) {
    return programStartFailure(
      `The command, or a variable of "env", is too large: the limit is ${MAX_ARGUMENT_BYTES} bytes each.`,
    )
  }
  const third = Math.ceil(addresses.length / 3)
  return {
    addresses,
    command,
    timeoutSeconds,
    background,
    atOnce: given['parallel'] === true ? Math.min(third, deps.settings.maxParallel) : 1,
    login,
  }
}

/** Where a run logs in, and as whom. `problem` is a sentence for its result. */
function readLogin(given: Readonly<Record<string, unknown>>): Login | { problem: string } {
  const text = (name: string): string | undefined => textIn(given, name)
  const listed = parseHosts(text('hosts') ?? '')
  if ('problem' in listed) return listed
  const port = nearestNumber(given['port']) ?? USUAL_PORT
  if (typeof port !== 'number' || port < 1 || port > 65_535) {
    return { problem: 'The parameter "port" must be a number from 1 to 65535.' }
  }
  const sudoPassword = text('sudo_password')
  if (sudoPassword !== undefined && /[\r\n\0]/.test(sudoPassword)) {
    return { problem: 'The parameter "sudo_password" must be a single line of text.' }
  }
  return {
    addresses: listed.hosts,
    sudo: given['sudo'] === true,
    sudoPassword,
    login: {
      username: text('username'),
      password: text('password'),
      privateKey: text('private_key'),
      passphrase: text('passphrase'),
      // Port 22 may be the filled-in default; then the OpenSSH configuration decides.
      port: port === USUAL_PORT ? undefined : port,
      bastionHost: text('bastion_host'),
    },
  }
}

function textIn(given: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = given[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** @returns one sentence per failed host */
async function prepare(deps: RemoteDeps, work: RemoteWork, hosts: readonly ConnectedHost[]): Promise<string[]> {
  const problems: string[] = []
  await forEachAtOnce(hosts, deps.settings.maxParallel, async (host) => {
    try {
      await work.prepare?.(host)
    } catch (error) {
      problems.push(`${host.label}: ${sshTextOf(error)}.`)
    }
  })
  return problems
}

function unreachable(addresses: readonly HostAddress[], results: ReadonlyMap<string, HostResult>): RunResult {
  const names = addresses.map(({ label }) => label).join(', ')
  const reasons = [...new Set([...results.values()].map(({ error }) => String(error)))]
  return programStartFailure(`Unable to connect to any one of the hosts: [${names}]. ${reasons.join(' ')}`)
}

function summarize(
  addresses: readonly HostAddress[],
  results: ReadonlyMap<string, HostResult>,
  allowPartialFailure: boolean,
): RunResult {
  const ordered = addresses.flatMap(({ label }) => {
    const result = results.get(label)
    return result === undefined ? [] : [[label, result] as const]
  })
  const all = ordered.map(([, result]) => result)
  const hasSucceeded = allowPartialFailure
    ? all.some(({ succeeded }) => succeeded)
    : all.every(({ succeeded }) => succeeded)
  const hasTimedOut = all.every((result) => result['timeout'] === true)
  return {
    status: hasSucceeded ? 'succeeded' : hasTimedOut ? 'timeout' : 'failed',
    result: Object.fromEntries(ordered),
  }
}

async function forEachAtOnce<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, async () => {
    for (const item of left) await work(item)
  })
  // Wait for all workers, even when one has thrown.
  const ended = await Promise.allSettled(workers)
  for (const one of ended) if (one.status === 'rejected') throw one.reason
}
