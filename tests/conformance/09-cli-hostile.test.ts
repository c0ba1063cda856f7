/** Contract 09, 9.1 and 9.2: what the client makes of a server that means harm, or is none of ours. */
import type http from 'node:http'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront, type Front } from '../helpers/front.ts'
import { waitFor } from '../helpers/wait.ts'

type Respond = (request: http.IncomingMessage, url: URL) => Reply | undefined

interface Reply {
  status?: number
  headers?: Record<string, string>
  body: unknown
}

const folder = makeFolder()
/** Colours, the other direction of writing, a bell; and a second command for whoever pastes it. */
const evil = '\u001b[31mevil\u202e\u0007; touch x'
/** What a terminal would obey. */
const obeyed = /[^\n\x20-\x7e]/

let respond: Respond
let asked: string[] = []
let server: Front

beforeAll(async () => {
  server = await startFront((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    asked.push(`${request.method ?? ''} ${url.pathname}`)
    const { status = 200, headers = {}, body } = respond(request, url) ?? { status: 404, body: { faultstring: evil } }
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
})
afterEach(() => (asked = []))
afterAll(async () => {
  await server.close()
  folder.remove()
})

function svc(args: readonly string[], answer: Respond): Promise<CliExit> {
  respond = answer
  return runCli(args, { HOME: folder.path, SVC_API_URL: `${server.url}/v1` })
}

const isView = (url: URL): boolean => url.pathname.includes('/actions/views/')

describe('09.2 nothing that a server names reaches the terminal as more than text', () => {
  const parameters = { [evil]: { type: 'string', default: evil, description: evil } }
  const record = {
    id: evil,
    status: 'succeeded',
    action: { ref: evil, runner_type: 'orquesta' },
    parameters: { [evil]: evil },
    result: { [evil]: evil },
    [evil]: evil,
  }
  const answer: Respond = ({ method }, url) => {
    if (isView(url)) return { body: { description: evil, parameters } }
    if (url.pathname.endsWith('/children')) return { body: [{ ...record, context: { chain: { name: evil } } }] }
    if (url.pathname.startsWith('/stream/')) return undefined
    if (method === 'POST' || url.pathname.startsWith('/v1/executions/')) return { body: record }
    return { body: [record] }
  }

  it.each([
    ['run', 'core.x', '-h'],
    ['run', '--async', 'core.x'],
    ['run', 'core.x'],
    ['run', 'core.x', '-k', 'none'],
    ['execution', 'get', 'x', '--detail'],
    ['execution', 'get', 'x', '--attr', 'constructor,__proto__,id'],
    ['execution', 're-run', 'x', '--async'],
    ['execution', 'list'],
    ['action', 'list'],
    ['pack', 'list', '-a', 'all'],
    ['execution', 'get', 'x', '-y'],
    ['execution', 'get', 'x', '-j'],
  ])('09.2 svc %s %s %s', async (...args) => {
    const { stdout, stderr } = await svc(args, answer)
    expect(stdout + stderr).not.toMatch(obeyed)
    expect(stdout).not.toContain('native code')
    // Whoever pastes a line runs one command.
    for (const [, id = ''] of stdout.matchAll(/^ svc execution \w+ (.*)$/gm)) expect(id).toMatch(/^'[^']*'$/)
  })

  it('09.2 nor does the reason of a refusal', async () => {
    const { code, stdout, stderr } = await svc(['run', 'core.x'], (_, url) =>
      isView(url) ? { body: { parameters } } : { status: 400, body: { faultstring: evil } },
    )
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^ERROR: 400 Client Error: Bad Request\nMESSAGE: \\u001b/)
    expect(stdout).not.toMatch(obeyed)
  })
})

describe('09.1 answers without end', () => {
  it('09.1 the status of an error counts, however long its text is', async () => {
    const page = { status: 404, headers: { 'Content-Type': 'text/html' }, body: `<html>${'x'.repeat(200_000)}` }
    expect(await svc(['action', 'get', 'core.x'], () => page)).toMatchObject({ code: 2 })
    const { code, stdout } = await svc(['pack', 'list'], () => ({ ...page, status: 500 }))
    expect([code, stdout.slice(0, 60)]).toEqual([1, expect.stringMatching(/^ERROR: 500 Server Error/)])
    expect(stdout.length).toBeLessThan(2000)
  })

  it('09.1 a list that is the same on every page ends', async () => {
    const { code, stdout } = await svc(['action', 'list', '-n', '-1'], () => ({
      headers: { 'X-Total-Count': '1e400' },
      body: [{ id: '1', ref: 'core.x' }],
    }))
    expect([code, stdout]).toEqual([1, expect.stringContaining('returns the same page repeatedly')])
    expect(asked.length).toBeLessThan(100)
  })

  it('09.1 the last execution, of which the server says that it is "last", is none', async () => {
    const { code } = await svc(['execution', 'get', 'last'], (_, url) =>
      url.pathname.endsWith('/last') ? { status: 403, body: { faultstring: 'no' } } : { body: [{ id: 'last' }] },
    )
    expect([code, asked]).toEqual([2, ['GET /v1/executions/last', 'GET /v1/executions']])
  })

  it('09.1 children may lie deeper than a terminal is wide', async () => {
    // A server that does not know how to limit them sends all.
    const children = Array.from({ length: 20_000 }, (_, index) => ({ id: `c${index}`, parent: `c${index - 1}` }))
    const { code, stdout } = await svc(['execution', 'get', 'x', '--show-tasks'], (_, url) =>
      url.pathname.endsWith('/children') ? { body: children } : { body: { id: 'c-1', status: 'succeeded' } },
    )
    expect([code, stdout.includes('c49 '), stdout.includes('c50')]).toEqual([0, true, false])
    expect(stdout).toContain('… and 19,950 more.')
  })
})

describe('09.3 sensor tail', () => {
  const line = { seq: 1, timestamp: '2030-01-01T00:00:00Z', type: 'stdout', data: 'hello\n' }
  it.each([
    ['the same line again', [line]],
    ['a line without text', [{ seq: 1 }]],
    ['a line without a number', [{ data: 'hello' }]],
    ['no list', {}],
  ])('ends when the server sends %s', async (_name, body) => {
    const { code, stdout } = await svc(['sensor', 'tail', 'x'], () => ({ body }))
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/ERROR: The server did not return .* Check that --api-url/),
    ])
  })

  it('asks again after what it has, and not at once when the server does not wait', async () => {
    const queries: string[] = []
    const { code, stdout } = await svc(['sensor', 'tail', 'x'], (_, url) => {
      queries.push(url.search)
      return queries.length === 1 ? { body: [line] } : queries.length === 2 ? { body: [] } : { status: 404, body: {} }
    })
    expect([code, stdout]).toEqual([2, expect.stringContaining('hello')])
    expect(queries).toEqual(['?limit=100', '?after=1&wait=30', '?after=1&wait=30'])
  })

  it('goes on while the server starts again, and says so once; not without an answer before', async () => {
    const answers = [
      { body: [line] },
      { status: 503, body: {} },
      { status: 502, body: {} },
      { body: [{ ...line, seq: 2 }] },
    ]
    const queries: string[] = []
    const { code, stdout, stderr } = await svc(['sensor', 'tail', 'x'], (_, url) => {
      queries.push(url.search)
      return queries.length > answers.length ? { status: 404, body: {} } : answers[queries.length - 1]
    })
    expect([code, stdout.split('hello\n').length]).toEqual([2, 3])
    expect(stderr.split('Connection lost; reconnecting.')).toHaveLength(2)
    expect(queries).toEqual(['?limit=100', ...Array.from({ length: 3 }, () => '?after=1&wait=30'), '?after=2&wait=30'])
    expect((await svc(['sensor', 'tail', 'x'], () => ({ status: 503, body: {} }))).code).toBe(1)
  })
})

describe('09.4 waiting through a proxy in front of the server', () => {
  it.each([502, 503, 504])('09.4 goes on while it answers %i', async (status) => {
    let times = 0
    const { code, stdout } = await svc(['run', 'core.x'], ({ method }, url) => {
      if (isView(url)) return { body: { parameters: {} } }
      if (method === 'POST') return { body: { id: 'abc', status: 'requested' } }
      if (url.pathname.startsWith('/stream/')) return undefined
      times += 1
      if (times < 4) return { status, headers: { 'Content-Type': 'text/html' }, body: '<html>Bad Gateway</html>' }
      return { body: { id: 'abc', status: 'succeeded', result: {} } }
    })
    expect([code, stdout]).toEqual([0, expect.stringContaining('id: abc')])
  })
})

describe('09.4 a server that starts again when the execution has just ended', () => {
  it.each([[[]], [['--tail']]])('09.4 is waited for: run %j', async (flags) => {
    let refusals = 0
    const { code, stdout } = await svc(['run', ...flags, 'core.x'], ({ method }, url) => {
      if (isView(url)) return { body: { parameters: {} } }
      if (method === 'POST') return { body: { id: 'abc', status: 'requested' } }
      if (url.pathname.endsWith('/output')) {
        return { headers: { 'Content-Type': 'text/event-stream' }, body: 'event: EOF\ndata: ""\n\n' }
      }
      if (url.pathname.startsWith('/stream/')) return undefined
      if (url.searchParams.get('include_attributes') !== 'status' && (refusals += 1) < 3) {
        return { status: 503, body: { faultstring: 'starting' } }
      }
      return { body: { id: 'abc', status: 'failed', result: {} } }
    })
    expect([code, stdout]).toEqual([1, expect.stringContaining('failed')])
    expect(refusals).toBe(3)
  })
})

describe('09.3 an installation that the server does not tell about', () => {
  it('09.3 is named, with how to look for it', async () => {
    const { code, stdout, stderr } = await svc(['pack', 'install', 'web'], ({ method }) =>
      method === 'POST' ? { body: { execution_id: 'abc' } } : { status: 500, body: { faultstring: 'broken' } },
    )
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^ERROR: 500 /)])
    expect(stderr).toContain('Execution abc was created.\n')
    expect(stderr).toContain('svc execution get abc\n')
  })
})

describe('09.3 Ctrl-C while a file is loaded', () => {
  it('09.3 shows what has been loaded, and where it was left', async () => {
    let sent = 0
    const slow = await startFront((request, response) => {
      request.resume()
      sent += 1
      if (sent === 1) response.end(JSON.stringify({ name: 'one', value: '1' }))
    })
    try {
      const file = folder.write(
        'three.json',
        ['one', 'two', 'three'].map((name) => ({ name, value: '1' })),
      )
      const cli = startCli(['key', 'load', file], { HOME: folder.path, SVC_API_URL: slow.url })
      await waitFor('the second entry', () => sent === 2)
      cli.process.kill('SIGINT')
      const { code, stdout, stderr } = await cli.exit
      expect([code, stdout]).toEqual([130, expect.stringContaining('| one ')])
      expect(stderr).toContain(`${file}: entry 2 of 3 may not have been loaded; later entries were not loaded.\n`)
    } finally {
      await slow.close()
    }
  })
})

describe('09.4 a secret parameter', () => {
  it('09.4 that is of another type is not repeated', async () => {
    const file = join(folder.path, 'pin')
    writeFileSync(file, 'hunter2')
    for (const words of [[`@pin=${file}`], ['options={"pin": hunter2}'], ['list=hunter2']]) {
      const { code, stdout, stderr } = await svc(['run', 'core.x', ...words], () => ({
        body: {
          parameters: {
            pin: { type: 'integer', secret: true },
            options: { type: 'object', properties: { pin: { type: 'string', secret: true } } },
            list: { type: 'array', items: { type: 'integer', secret: true } },
          },
        },
      }))
      expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(/^ERROR: The value of parameter "/)])
      expect(stdout + stderr).not.toContain('hunter2')
    }
  })
})

describe('09.7 a login at an address that makes no tokens', () => {
  it.each([{}, { token: 'two words', expiry: '2030-01-01T00:00:00Z' }, { token: 'abc', expiry: 'never' }])(
    '09.7 fails, and keeps nothing: %j',
    async (body) => {
      for (const command of ['login', 'auth']) {
        const { code, stdout } = await svc([command, 'alice', '-p', 'x'], () => ({ body }))
        expect([command, code, stdout]).toEqual([
          command,
          1,
          expect.stringMatching(/^ERROR: .* did not return a token\. .*--auth-url/),
        ])
      }
      expect(existsSync(join(folder.path, '.svc'))).toBe(false)
    },
  )
})

describe('09.7 secrets in what cannot be used', () => {
  it.each(['http://me:hunter2@host:bad/', 'ftp://me:hunter2@host/', 'me:hun/ter@hunter2@host'])(
    '09.7 the password in the address %s is not repeated',
    async (address) => {
      const { code, stdout, stderr } = await svc(['--api-url', address, 'user', 'list'], () => undefined)
      expect([code, stdout + stderr]).toEqual([1, expect.stringContaining('********@host')])
      expect(stdout + stderr).not.toMatch(/hunter2|hun\/ter/)
    },
  )

  it('09.1 --debug shows no value of a configuration that nothing is known of', async () => {
    const file = join(folder.path, 'values.json')
    writeFileSync(file, '{"shown": "plain", "pass phrase": {"inner": "hunter2"}, "other": "hunter2"}')
    const { code, stderr } = await svc(['--debug', 'pack', 'config', 'web', '--file', file], ({ method }) =>
      method === 'PUT'
        ? { body: { id: '1', pack: 'web', values: {} } }
        : { body: { attributes: { shown: { type: 'string' } } } },
    )
    expect([code, stderr]).toEqual([0, expect.stringContaining('"shown":"plain"')])
    expect(stderr).not.toContain('hunter2')
  })
})
