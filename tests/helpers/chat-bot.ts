/** `svc chat` as a process of its own, with its configuration and its state in a folder. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCli, type RunningCli } from './cli.ts'
import { makeFolder } from './folders.ts'
import { waitForStatus, type TestApp } from './server.ts'
import { waitFor } from './wait.ts'

export interface ChatBot {
  readonly folder: string
  readonly configFile: string
  configure(text: string): void
  /** Of the state file; empty before there is one. */
  stateText(): string
  /** Of a client of the server. */
  env(server: TestApp, more?: Record<string, string>): Record<string, string>
  /** @param isReady whether the bot listens */
  start(variables: Record<string, string>, isReady: (started: RunningCli) => boolean): Promise<RunningCli>
  /** Default: SIGKILL. */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Resolves when nothing is owed any more. */
  settled(): Promise<unknown>
  remove(): void
}

/** An action that announces as `chatops.post_message` does, without its pack. */
export async function makePostMessage(
  server: TestApp,
): Promise<(parameters: Record<string, unknown>) => Promise<string>> {
  const text = { type: 'string' }
  const action = {
    name: 'post_message',
    pack: 'default',
    runner_type: 'announcement',
    parameters: {
      channel: text,
      message: text,
      user: text,
      whisper: { type: 'boolean' },
      extra: { type: 'object' },
      context: { type: 'object' },
      route: { default: 'chatops', immutable: true },
    },
  }
  await server.call('POST', '/v1/actions', action)
  return async (parameters) => {
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'default.post_message',
      parameters,
    })
    await waitForStatus(server, body.id, ['succeeded'])
    return body.id
  }
}

export function makeChatBot(): ChatBot {
  const folder = makeFolder()
  const configFile = join(folder.path, 'chat.conf')
  const stateFile = `${configFile}.state`
  let running: RunningCli | undefined
  const stateText = (): string => (existsSync(stateFile) ? readFileSync(stateFile, 'utf8') : '')
  return {
    folder: folder.path,
    configFile,
    stateText,
    configure(text) {
      writeFileSync(configFile, text)
      chmodSync(configFile, 0o600)
    },
    env: ({ urls }, more = {}) => ({
      HOME: folder.path,
      SVC_API_URL: `${urls.api}/v1`,
      SVC_AUTH_URL: urls.auth,
      SVC_STREAM_URL: `${urls.stream}/v1`,
      ...more,
    }),
    async start(variables, isReady) {
      const started = startCli(['chat', configFile], variables)
      running = started
      await waitFor('the bot to listen', () => started.process.exitCode !== null || isReady(started))
      if (started.process.exitCode !== null) throw new Error(started.stderr() + started.stdout())
      return started
    },
    async stop(signal = 'SIGKILL') {
      const ending = running
      running = undefined
      ending?.process.kill(signal)
      await ending?.exit
    },
    settled: () => waitFor('nothing to be owed', () => /"owed":\[\],"announcements":\[\]/.test(stateText())),
    remove: () => {
      folder.remove()
    },
  }
}
