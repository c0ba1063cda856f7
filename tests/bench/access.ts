/** Rows about authentication: what a verified credential costs a request, and what the time of a refusal tells. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { median, ms, times as timesAsLong, type Row } from './report.ts'
import { connect, makeFolder, startBenchServer, type Client } from './server.ts'

const ROUNDS = 10
const REQUESTS_A_ROUND = 300
const PATH = '/v1/actions/core.local'

const roles: Record<string, string> = {
  'roles/reader.yaml': `name: reader
permission_grants:
  - resource_uid: action:core:local
    permission_types: [action_view]
`,
  'assignments/admin.yaml': 'username: admin\nroles: [admin]\n',
  'assignments/reader.yaml': 'username: reader\nroles: [reader]\n',
}

/** The same request without authentication and with each kind of credential, in turns. */
export async function verifiedRequests(): Promise<Row[]> {
  const basePath = makeFolder()
  for (const [name, text] of Object.entries(roles)) {
    mkdirSync(join(basePath, 'rbac', name, '..'), { recursive: true })
    writeFileSync(join(basePath, 'rbac', name), text)
  }
  const open = await startBenchServer()
  const guarded = await startBenchServer({
    basePath,
    flags: ['--auth-enable=True', '--rbac-enable=True', '--rbac-backend=default'],
  })
  const clients: Client[] = []
  const client = async (port: number, headers: Record<string, string> = {}): Promise<Client> => {
    const connected = await connect(port, false, headers)
    clients.push(connected)
    return connected
  }
  try {
    const password = firstPassword(basePath)
    const basic = { Authorization: basicAuth('admin', password) }
    const { token } = await (await client(guarded.port, basic)).call<{ token: string }>('POST', '/auth/tokens')
    const administrator = await client(guarded.port, { 'X-Auth-Token': token })
    const { key } = await administrator.call<{ key: string }>('POST', '/v1/apikeys', { user: 'reader' })
    const anonymous = await client(open.port)
    const reader = await client(guarded.port, { 'Svc-Api-Key': key })

    const times = { anonymous: [] as number[], token: [] as number[], key: [] as number[] }
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, one] of [
        ['anonymous', anonymous],
        ['token', administrator],
        ['key', reader],
      ] as const) {
        for (let i = 0; i < REQUESTS_A_ROUND; i++) {
          const at = performance.now()
          const { ref } = await one.call<{ ref?: string }>('GET', PATH)
          times[name].push(performance.now() - at)
          if (ref !== 'core.local') throw new Error(`the request was refused with the credential "${name}"`)
        }
      }
    }
    const base = median(times.anonymous)
    return (['token', 'key'] as const).map((name) => {
      const more = median(times[name]) - base
      const who = name === 'token' ? 'a token, administrator' : 'an API key, one permission'
      return {
        work: `GET ${PATH} with ${who}: p50`,
        ours: ms(median(times[name])),
        reference: `anonymous ${ms(base)}`,
        budget: `≤ 0.2 ms more (is ${more.toFixed(3)} ms)`,
        isMet: more <= 0.2,
      }
    })
  } finally {
    for (const each of clients) each.close()
    await open.stop()
    await guarded.stop()
    rmSync(basePath, { recursive: true, force: true })
  }
}

const LOGINS = 150

/** Refused logins of a user whom the password file knows and of one whom it does not, in turns. */
export async function refusedLogins(): Promise<Row[]> {
  const server = await startBenchServer({
    flags: ['--auth-enable=True', '--auth-failures-per-user=0', '--auth-failures-per-address=0'],
  })
  const wrong = (user: string): Promise<Client> =>
    connect(server.port, false, { Authorization: `Basic ${Buffer.from(`${user}:wrong`).toString('base64')}` })
  const clients = { known: await wrong('admin'), unknown: await wrong('nobody') }
  try {
    const taken = { known: [] as number[], unknown: [] as number[] }
    for (let i = 0; i < LOGINS; i++) {
      for (const name of ['known', 'unknown'] as const) {
        const at = performance.now()
        const { code } = await clients[name].call<{ code?: string }>('POST', '/auth/tokens')
        taken[name].push(performance.now() - at)
        if (code !== 'LOGIN_REFUSED') throw new Error(`the login was answered with ${code}`)
      }
    }
    const ratio = median(taken.unknown) / median(taken.known)
    return [
      {
        work: 'login refused, of a user nobody knows: p50',
        ours: ms(median(taken.unknown)),
        reference: `wrong password of a user ${ms(median(taken.known))}`,
        budget: `0.9 to 1.1 × (is ${timesAsLong(ratio)})`,
        isMet: ratio >= 0.9 && ratio <= 1.1,
      },
    ]
  } finally {
    clients.known.close()
    clients.unknown.close()
    await server.stop()
  }
}
