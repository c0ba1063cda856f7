/** `svc --version`: the version of the client, and of the server if it is reachable. */
import { cliProcess } from '../cli-process.ts'
import { toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import type { CommonFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { openClient } from '../session.ts'
import { createTimeLimit } from '../connection/time-limit.ts'
import { loadSettings } from '../connection/settings.ts'

export async function printVersion(flags: CommonFlags, version: string): Promise<number> {
  cliProcess().stdout.write(`svc ${version}\n`)
  const server = await serverVersion(flags).catch(() => undefined)
  if (server !== undefined) cliProcess().stdout.write(`server ${server}\n`)
  return exitCodes.ok
}

async function serverVersion(flags: CommonFlags): Promise<string | undefined> {
  const { settings } = loadSettings(flags, cliProcess().env)
  const client = await openClient(settings, {
    interrupted: createTimeLimit(),
    warn: () => undefined,
    debug: (text) => cliProcess().stderr.write(`${text}\n`),
  })
  try {
    const { body } = await client.call('GET', '/')
    const version = toObject(body)['version']
    return typeof version === 'string' ? `${printable(version)} (${client.apiUrl})` : undefined
  } finally {
    client.close()
  }
}
