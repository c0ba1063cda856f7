/** Results as their runners leave them, in the parts that people read (contract 03, 3.9). */
import { isObject, writeJson } from '../../../json.ts'

export interface CommandResult {
  kind: 'command'
  /** Undefined where the runner tells none. */
  exitCode: number | undefined
  stdout: ResultOutput
  stderr: ResultOutput
  /** Everything else, such as the return value of a Python action. */
  rest: Record<string, unknown>
}

export interface ResultOutput {
  text: string
  /** There was more, which the result does not hold. */
  isCut: boolean
}

export interface HostsResult {
  kind: 'hosts'
  hosts: { name: string; result: CommandResult }[]
}

export interface OtherResult {
  kind: 'other'
  value: unknown
}

export type ReadResult = CommandResult | HostsResult | OtherResult

export function readResult(value: unknown): ReadResult {
  const command = readCommand(value)
  if (command !== undefined) return command
  if (isObject(value)) {
    const hosts = Object.entries(value).map(([name, host]) => ({ name, result: readCommand(host) }))
    if (hosts.length > 0 && hosts.every((host): host is HostsResult['hosts'][number] => host.result !== undefined)) {
      return { kind: 'hosts', hosts }
    }
  }
  return { kind: 'other', value }
}

function readCommand(value: unknown): CommandResult | undefined {
  if (!isObject(value) || !('stdout' in value && 'stderr' in value)) return undefined
  const { stdout, stderr, return_code, exit_code, failed: _, succeeded: _s, ...others } = value
  const { stdout_truncated: cutOut, stderr_truncated: cutError, ...rest } = others
  const code = return_code ?? exit_code
  return {
    kind: 'command',
    exitCode: typeof code === 'number' ? code : undefined,
    stdout: { text: textOf(stdout), isCut: cutOut === true },
    stderr: { text: textOf(stderr), isCut: cutError === true },
    rest,
  }
}

/** Text that is JSON may have been read already. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : writeJson(value, 2)
}
