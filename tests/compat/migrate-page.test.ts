/** The examples of docs/stackstorm.md, run as they stand there. */
import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { openConsole, stepsOf, type ConsoleSession } from '../helpers/console-session.ts'
import { blocksOf, docPage } from '../helpers/doc-blocks.ts'
import { executable } from '../helpers/server.ts'
import { makeInstallation, writeGreetings, type Installation } from './installation.ts'
import { makeOldKey } from './secrets.ts'

const steps = blocksOf(docPage('stackstorm.md'))
  .filter(({ language }) => language === 'console')
  .flatMap(({ text }) => stepsOf(text))

let old: Installation
let app: InProcessApp
let session: ConsoleSession

beforeAll(async () => {
  old = makeInstallation()
  const inCopy: Installation = { ...old, write: (name, content) => old.write(`old-host/${name}`, content) }
  const key = makeOldKey()
  writeGreetings(inCopy)
  inCopy.write('etc/st2/keys/datastore_key.json', key.file)
  inCopy.write('etc/st2/htpasswd', `ada:{SHA}${createHash('sha1').update('secret').digest('base64')}\n`)
  inCopy.write('etc/st2/st2.conf', '[system]\nbase_path = /opt/stackstorm\n[auth]\ntoken_ttl = 3600\n')
  inCopy.write('exports/keys.json', [
    { name: 'region', value: 'eu', scope: 'st2kv.system' },
    { name: 'token', value: key.encrypt('hunter2'), scope: 'st2kv.system', secret: true, encrypted: true },
  ])
  const hash = createHash('sha512').update('saltnpepermine').digest('hex')
  inCopy.write('exports/apikeys.json', [{ user: 'ada', key_hash: hash, metadata: {} }])
  mkdirSync(join(old.path, 'bin'))
  symlinkSync(executable, join(old.path, 'bin', 'svc'))
  app = await createTestApp()
  session = openConsole({
    folder: old.path,
    env: {
      PATH: `${join(old.path, 'bin')}:${process.env['PATH'] ?? ''}`,
      HOME: old.path,
      LANG: 'C.UTF-8',
      SVC_CONFIG_FILE: app.configFile,
    },
  })
})
afterAll(async () => {
  await app.stop()
  old.remove()
})

test.each(steps)('$command', async ({ command, expected }) => {
  // The client takes the variable for its own configuration, and needs the port of the test.
  const run = `env -u SVC_CONFIG_FILE svc --api-url ${app.urls.api}/v1 run`
  const played = await session.play({ command: command.replace(/^svc run/, run), expected })
  expect(played.printed).toBe(played.expected)
})
