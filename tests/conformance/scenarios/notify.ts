/** What people see of notifications: a destination that works, one that is dead, and what came of a failing job. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scenario } from '../../helpers/scenarios.ts'
import { runToEnd, type TestApp } from '../../helpers/server.ts'

/** Writes two destinations into the base path. */
export function prepareNotify(basePath: string): Promise<Record<string, string>> {
  mkdirSync(join(basePath, 'notifications'))
  const program = join(basePath, 'sendmail')
  writeFileSync(program, '#!/bin/sh\ncat > /dev/null\n')
  chmodSync(program, 0o755)
  const files = {
    mail: `channel: email\nto: ops@example.org\nsendmail: ${program}\n`,
    hook: 'channel: webhook\nwebhook_url: http://127.0.0.1:1/jobs\nsecret: "{{ svckv.system.hook | decrypt_kv }}"\non: all\n',
  }
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(basePath, 'notifications', `${name}.yaml`), `name: ${name}\n${text}`)
  }
  return Promise.resolve({})
}

export function notifyScenarios(server: TestApp): Scenario[] {
  const unstable = [[/\/\S+\/sendmail/g, '/usr/sbin/sendmail']] as const
  const failed = async (): Promise<string> => {
    const action = { name: 'told', pack: 'default', runner_type: 'local-shell-cmd', notify: 'nobody' }
    await server.call('POST', '/v1/actions', action)
    const { id } = await runToEnd(server, { cmd: 'exit 1' }, { action: 'default.told' })
    const { body } = await server.call<{ id: string }[]>('GET', `/v1/notifications?execution=${id}`)
    return body[0]?.id ?? ''
  }
  let told: Promise<string> | undefined
  const notification = (): Promise<string> => (told ??= failed())
  return [
    {
      command: 'notify test',
      args: () => ['notify', 'test', 'mail'],
      unstable,
    },
    { command: 'notify test', about: 'without its secret', args: () => ['notify', 'test', 'hook'] },
    { command: 'notify test', about: 'unknown', args: () => ['notify', 'test', 'nowhere'] },
    {
      command: 'notify destinations',
      async before() {
        for (const name of ['mail', 'hook']) await server.call('POST', `/v1/notifications/destinations/${name}/test`)
      },
      args: () => ['notify', 'destinations'],
      unstable,
    },
    {
      command: 'notify list',
      before: notification,
      args: () => ['notify', 'list', '--destination', 'nobody', '-a', 'id', 'destination', 'title', 'status'],
    },
    { command: 'notify get', args: async () => ['notify', 'get', await notification()] },
    { command: 'notify get', about: 'unknown', args: () => ['notify', 'get', '6000000000000000000000aa'] },
    { command: 'notify replay', args: async () => ['notify', 'replay', await notification()] },
  ]
}
