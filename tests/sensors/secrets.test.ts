/** What sensors send wrong is explained without the secrets in it. */
import { fullOnly, variants } from '../helpers/tiers.ts'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { TestApp } from '../helpers/server.ts'
import { outputOf, register, sensorOf, waitForInstances, waitForOutput, waitForState, writePack } from './support.ts'

const secret = 'hunter22-Hunter33-hUnter44'
const encoded = Buffer.from(`${'~'.repeat(45)}${secret}`).toString('base64')
const long = 'x'.repeat(190)

const types =
  'trigger_types:\n  - name: seen\n    payload_schema: { type: object, properties: { n: { type: integer } } }\n'

/** Each of these lines would show a secret, or a part of it. */
const leaks = `#!/bin/sh
echo 'the password is ${secret}'
echo '${long}${secret}'
printf '%s\\n' '${encoded.slice(0, 76)}' '${encoded.slice(76)}'
echo '{"trigger": "${secret}"}'
echo '{"trigger": "${long}${secret}"}'
echo '{"trigger": {"ref": "leak.${secret}"}}'
echo '{"trigger": "leak.seen", "payload": {"n": "${secret}"}}'
echo '{"trigger": "leak.seen", "payload": {"n": "${long}${secret}"}}'
echo '{"trigger": "leak.seen", "trace_id": "${secret}"}'
echo '{"type": "dropped", "problem": "no way to send ${secret}"}'
echo "the token is $SVC_AUTH_TOKEN"
echo '{"trigger": "leak.seen", "payload": {"n": 1}}'
read -r start
echo '{"trigger": "'"$SVC_AUTH_TOKEN"'"}'
exec sleep 1000
`

let http: Server
let app: TestApp
let server: TestApp

beforeAll(async () => {
  http = createServer((request, response) => {
    if (request.url?.startsWith('/seen') === true) response.end(JSON.stringify([{ n: `${long}${secret}` }, { n: 1 }]))
    else response.writeHead(500).end()
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  app = await createTestApp({
    settings: {
      'auth.enable': 'True',
      'http_runner.allowed_private_networks': '127.0.0.0/8',
      'sensorcontainer.respawn_delay': '3600',
    },
  })
  const admin = await signIn(app, 'admin', firstPassword(app.basePath))
  server = { ...app, call: (method, path, body) => app.call(method, path, body, admin) }
  const poll = (name: string, path: string): string =>
    `class_name: ${name}\nsensor_type: http-poll\npoll_interval: 60\n${types}http_poll:\n  url: http://127.0.0.1:${(http.address() as AddressInfo).port}${path}\n`
  writePack(server.basePath, 'leak', {
    'config.schema.yaml': 'password: { type: string, secret: true }\n',
    'sensors/leaks.sh': leaks,
    'sensors/leaks.yaml': `sensor_type: process\nclass_name: Leaks\nentry_point: leaks.sh\n${types}`,
    'sensors/answers.yaml': poll('Answers', '/seen'),
    'sensors/paths.yaml': poll('Paths', `/${long}{{ config_context.password }}`),
  })
  mkdirSync(join(server.basePath, 'configs'), { recursive: true })
  writeFileSync(join(server.basePath, 'configs', 'leak.yaml'), `password: ${secret}\n`)
  await register(server, 'leak')
})

afterAll(async () => {
  await app.stop()
  http.closeAllConnections()
  http.close()
})

const expectNothingOf = (value: string, text: string): void => {
  for (let at = 0; at + 6 <= value.length; at++) expect(text).not.toContain(value.slice(at, at + 6))
}

fullOnly(it)('of a program: in lines, torn over lines, cut in messages, and its token', async () => {
  await waitForInstances(server, 'leak.seen', 1)
  const output = await waitForOutput(server, 'leak.Leaks', 'the token is ********.')
  const { runtime } = await sensorOf(server, 'leak.Leaks')
  expectNothingOf(secret, output)
  expectNothingOf(encoded.slice(64), output)
  expectNothingOf(secret, JSON.stringify(runtime))
  for (const text of [
    'a line is no JSON object: the password is ********.',
    'there is no trigger "********"',
    'there is no trigger "leak.********"',
    "n: '********' is not of type 'integer'",
    'no way to send ********',
  ]) {
    expect(output).toContain(text)
  }
})

it.each(variants(['Answers', 'Paths']))('of an HTTP server: %s', async (name) => {
  const { runtime } = await waitForState(server, `leak.${name}`, 'running', 'waiting')
  expect(runtime.last_error).toContain('x'.repeat(100))
  expectNothingOf(secret, JSON.stringify(runtime))
  expectNothingOf(secret, await outputOf(server, `leak.${name}`))
})
