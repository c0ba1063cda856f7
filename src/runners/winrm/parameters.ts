/** The parameters that all runners for Windows hosts share (contract 03, 3.6). */
import type { ParameterSchema } from '../../lib/schema/index.ts'
import type { RunContext } from '../runner.ts'

export const DEFAULT_TIMEOUT_SECONDS = 60
/** Port of WinRM without TLS: it means the scheme http. */
export const HTTP_PORT = 5985

/** @param cmd description of the parameter `cmd`, of runners that have it */
export function winrmParameters(cmd?: string): Record<string, ParameterSchema> {
  return {
    host: { type: 'string', required: true, description: 'Windows host: a name or an address.' },
    ...(cmd === undefined ? {} : { cmd: { type: 'string', description: cmd } }),
    username: {
      type: 'string',
      required: true,
      description: 'User to log in as: name, DOMAIN\\name or name@domain.',
    },
    password: { type: 'string', required: true, secret: true, description: 'Password to log in with.' },
    port: { type: 'integer', default: 5986, description: 'Port of WinRM. 5985 means the scheme http.' },
    scheme: {
      type: 'string',
      default: 'https',
      description: 'https or http. Over http the command and its output are not encrypted.',
    },
    transport: {
      type: 'string',
      default: 'ntlm',
      description: 'Login: ntlm, basic (also plaintext), or ssl (basic over https). Others are not supported.',
    },
    verify_ssl_cert: {
      type: 'boolean',
      default: true,
      description: 'Refuse hosts with an untrusted certificate.',
    },
    cwd: { type: 'string', description: 'Working directory on the host. Default: the profile folder of the user.' },
    env: { type: 'object', description: 'Environment variables for the command. Values become text.' },
    kwarg_op: { type: 'string', default: '-', description: 'Operator in front of the names of keyword arguments.' },
    timeout: {
      type: 'integer',
      default: DEFAULT_TIMEOUT_SECONDS,
      description: 'Seconds the command may run, with the login. 0 disables the limit.',
    },
  }
}

/** The parameter `cmd`. `problem` is a sentence for the result of the execution. */
export function readCommand(
  { entryPoint, runnerParameters }: Pick<RunContext, 'entryPoint' | 'runnerParameters'>,
  runner: string,
): { cmd: string } | { problem: string } {
  if (entryPoint !== '') {
    return { problem: `The ${runner} runner does not support an entry point; remove "entry_point" from the action.` }
  }
  const { cmd } = runnerParameters
  return typeof cmd === 'string' && cmd !== ''
    ? { cmd }
    : { problem: 'The parameter "cmd" is missing: there is no command to run.' }
}
