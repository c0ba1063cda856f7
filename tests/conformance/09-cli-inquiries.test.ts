/** Contract 09, 9.3, and 08, 8.15: inquiries, and actions that are made, on the command line, against a real server. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cell, header, missing, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startAtTerminal } from '../helpers/pty.ts'
import { createTestApp } from '../helpers/app.ts'
import { executable, run, waitForStatus, type TestApp } from '../helpers/server.ts'
import { unknownId } from './support.ts'

const folder = makeFolder()
let server: TestApp

const env = (): Record<string, string> => ({ HOME: folder.path, SVC_API_URL: `${server.urls.api}/v1` })
const svc = (args: string[], input?: string): Promise<CliExit> =>
  runCli(args, env(), input === undefined ? {} : { input })

beforeAll(async () => {
  server = await createTestApp()
  const pack = join(server.basePath, 'packs', 'made')
  mkdirSync(join(pack, 'actions'), { recursive: true })
  writeFileSync(
    join(pack, 'pack.yaml'),
    'name: made\nref: made\ndescription: For tests.\nversion: 1.0.0\nauthor: tests\n',
  )
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs: ['made'] })
  if (status !== 200) throw new Error(text)
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

async function ask(parameters: Record<string, unknown> = {}): Promise<string> {
  const { id } = await run(server, parameters, { action: 'core.ask' })
  await waitForStatus(server, id, ['pending'])
  return id
}

const responseOf = async (id: string, query = ''): Promise<unknown> => {
  const { body } = await server.call<{ result: { response?: unknown } }>('GET', `/v1/executions/${id}${query}`)
  return body.result.response
}

const schema = {
  type: 'object',
  properties: {
    go: { type: 'boolean', description: 'Whether to go on', required: true },
    count: { type: 'integer', default: 3 },
    colour: { type: 'string', enum: ['red', 'blue'] },
    password: { type: 'string', secret: true, required: true },
    hosts: { type: 'array', items: { type: 'string' } },
    note: { type: 'string' },
  },
}

describe('9.3 svc inquiry', () => {
  it('list and get', async () => {
    const id = await ask({ route: 'ops', users: ['ann', 'bob'], ttl: 7 })
    const listed = await svc(['inquiry', 'list'])
    expect(header(listed.stdout)).toEqual(['id', 'roles', 'users', 'route', 'ttl'])
    expect(listed.stdout).toMatch(cell(id))
    const { stdout } = await svc(['inquiry', 'get', id, '-j'])
    expect(JSON.parse(stdout)).toMatchObject({ id, route: 'ops', users: ['ann', 'bob'], ttl: 7 })
    expect(await svc(['inquiry', 'get', unknownId])).toEqual(missing('Inquiry', unknownId))
  })

  it('respond -r', async () => {
    const id = await ask()
    const { code, stdout } = await svc(['inquiry', 'respond', id, '-r', '{"continue": true}'])
    expect([code, stdout]).toEqual([0, `Inquiry "${id}" is answered.\n`])
    expect(await responseOf(id)).toEqual({ continue: true })
    const again = await svc(['inquiry', 'respond', id, '-r', '{"continue": true}'])
    expect([again.code, again.stdout]).toEqual([1, expect.stringContaining('already been responded to')])
    const other = await ask()
    const machine = await svc(['inquiry', 'respond', other, '-j', '-r', '{"continue": false}'])
    expect(JSON.parse(machine.stdout)).toEqual({ id: other, response: { continue: false } })
  })

  it('what cannot be a response is refused before it is sent, what does not fit by the server', async () => {
    const id = await ask()
    for (const response of ['{', '[]', '"yes"']) {
      const { code, stdout } = await svc(['inquiry', 'respond', id, '-r', response])
      expect([response, code, stdout]).toEqual([response, 2, expect.stringContaining('JSON')])
    }
    const { code, stdout } = await svc(['inquiry', 'respond', id, '-r', '{"continue": "maybe"}'])
    expect([code, stdout]).toEqual([1, expect.stringContaining('did not pass schema validation')])
    const absent = await svc(['inquiry', 'respond', unknownId, '-r', '{}'])
    expect(absent.code).toBe(2)
  })

  it('asks for each property, a line of standard input each', async () => {
    const id = await ask({ schema })
    const { code, stderr } = await svc(['inquiry', 'respond', id], 'true\n\nblue\nthe secret\na, b\n\n')
    expect([code, stderr]).toEqual([0, ''])
    expect(await responseOf(id, '?show_secrets=true')).toEqual({
      go: true,
      count: 3,
      colour: 'blue',
      password: 'the secret',
      hosts: ['a', 'b'],
    })
  })

  it('needs what is required, and says of what a value is wrong, but no secret', async () => {
    const id = await ask({ schema })
    const without = await svc(['inquiry', 'respond', id], 'true\n1\nred\n')
    expect([without.code, without.stdout]).toEqual([1, expect.stringContaining('"password" is required')])
    const wrong = await svc(['inquiry', 'respond', id], 'perhaps\n')
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining('"go"')])
    const number = { type: 'object', properties: { pin: { type: 'integer', secret: true, required: true } } }
    const secret = await svc(['inquiry', 'respond', await ask({ schema: number })], 'not a number\n')
    expect([secret.code, secret.stdout]).toEqual([1, expect.stringContaining('"pin" is not of type integer')])
    expect(secret.stdout + secret.stderr).not.toContain('not a number')
  })

  it('at a terminal shows what is typed, unless it is a secret', async () => {
    const id = await ask({ schema })
    const terminal = await startAtTerminal([process.execPath, executable, 'inquiry', 'respond', id], env())
    await terminal.typeAt('go (boolean): Whether to go on: ', 'true\r')
    await terminal.typeAt('count (integer) [3]: ', '12\r')
    await terminal.typeAt('colour (red, blue) [none]: ', 'red\r')
    await terminal.typeAt('password (string): ', 'never shown\r')
    await terminal.typeAt('hosts (array) [none]: ', '\r')
    await terminal.typeAt('note (string) [none]: ', 'seen by all\r')
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()).toContain('seen by all')
    expect(terminal.screen()).not.toContain('never shown')
    expect(await responseOf(id, '?show_secrets=true')).toEqual({
      go: true,
      count: 12,
      colour: 'red',
      password: 'never shown',
      note: 'seen by all',
    })
  })

  it('Ctrl-C leaves the inquiry as it was', async () => {
    const id = await ask({ schema })
    const terminal = await startAtTerminal([process.execPath, executable, 'inquiry', 'respond', id], env())
    await terminal.typeAt('go (boolean): Whether to go on: ', '\u0003')
    expect(await terminal.exit).not.toBe(0)
    const { status } = await server.call('GET', `/v1/inquiries/${id}`)
    expect(status).toBe(200)
  })
})

describe('9.3 svc action', () => {
  const write = (name: string, text: string): string => {
    const path = join(folder.path, name)
    writeFileSync(path, text)
    return path
  }

  it('create, update, disable, enable and delete, with its files or without', async () => {
    const definition = 'name: greet\npack: made\nrunner_type: local-shell-script\nentry_point: greet.sh\n'
    const files = 'data_files:\n  - file_path: greet.sh\n    content: "#!/bin/sh\\necho hi\\n"\n'
    const created = await svc(['action', 'create', write('greet.yaml', definition + files), '-j'])
    expect([created.code, created.stderr]).toEqual([0, ''])
    expect(JSON.parse(created.stdout)).toMatchObject({ ref: 'made.greet', entry_point: 'greet.sh' })
    const again = await svc(['action', 'create', write('greet.yaml', definition)])
    expect([again.code, again.stdout]).toEqual([2, expect.stringContaining('already exists')])

    const ran = await svc(['run', 'made.greet'])
    expect([ran.code, ran.stdout]).toEqual([0, expect.stringContaining('hi')])
    const updated = await svc([
      'action',
      'update',
      'made.greet',
      write('new.yaml', `${definition}description: New.\n`),
      '-j',
    ])
    expect(JSON.parse(updated.stdout)).toMatchObject({ ref: 'made.greet', description: 'New.' })

    expect((await svc(['action', 'disable', 'made.greet', '-j'])).stdout).toContain('"enabled": false')
    expect((await svc(['run', 'made.greet'])).code).not.toBe(0)
    expect((await svc(['action', 'enable', 'made.greet', '-j'])).stdout).toContain('"enabled": true')

    const script = join(server.basePath, 'packs', 'made', 'actions', 'greet.sh')
    expect((await svc(['action', 'delete', 'made.greet'])).stdout).toBe('Action "made.greet" is deleted.\n')
    expect(existsSync(script)).toBe(true)
    await svc(['action', 'create', write('greet.yaml', definition)])
    expect((await svc(['action', 'delete', '-r', 'made.greet'])).code).toBe(0)
    expect(existsSync(script)).toBe(false)
    expect(await svc(['action', 'delete', 'made.greet'])).toEqual(missing('Action', 'made.greet'))
  })
})
