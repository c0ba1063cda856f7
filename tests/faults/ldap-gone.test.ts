/** The directory dies, or takes connections and says nothing: logins fail with a reason, and nothing else notices. */
import { afterEach, describe, expect, it } from 'vitest'
import { basicAuth } from '../helpers/logins.ts'
import { call, startServer, waitForLog, type Answer, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { startSlapd, suffix, type Slapd } from '../helpers/slapd.ts'
import { waitFor } from '../helpers/wait.ts'

const people = `ou=people,${suffix}`
const reader = { bind_dn: `cn=reader,${suffix}`, bind_password: 'password of the reader' }
const ldif = [
  `dn: ${reader.bind_dn}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: reader\nuserPassword: ${reader.bind_password}\n`,
  `dn: ${people}\nobjectClass: organizationalUnit\nou: people\n`,
  `dn: uid=alice,${people}\nobjectClass: inetOrgPerson\nuid: alice\ncn: Alice\nsn: A\nuserPassword: secret of alice\n`,
  `dn: cn=staff,${suffix}\nobjectClass: groupOfNames\ncn: staff\nmember: uid=alice,${people}\n`,
].join('\n')
/** More than a user may fail. */
const LOGINS = 4

let slapd: Slapd
let server: TestServer
let token = ''

afterEach(async () => {
  slapd.signal('SIGCONT')
  await Promise.all([server.stop('SIGKILL'), slapd.stop()])
})

const login = (): Promise<Answer<{ token: string; code: string; faultstring: string }>> =>
  call(`${server.urls.auth}/tokens`, 'POST', {}, { Authorization: basicAuth('alice', 'secret of alice') })

/** One after the other. */
async function logInTimes(times: number): Promise<string[]> {
  const answers: string[] = []
  for (let n = 0; n < times; n += 1) {
    const { status, body } = await login()
    answers.push(`${status} ${body.code}`)
  }
  return answers
}

/** Requests with a token, and what they start, as if nothing had happened. */
async function expectServed(): Promise<void> {
  const headers = { 'X-Auth-Token': token }
  const execution = { action: 'core.local', parameters: { cmd: 'echo served' } }
  const { status, body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', execution, headers)
  expect(status).toBe(201)
  await waitFor('its end', async () => {
    const answer = await server.call<ExecutionAnswer>('GET', `/v1/executions/${body.id}`, undefined, headers)
    return answer.body.status === 'succeeded'
  })
}

describe('a directory', () => {
  it('that says nothing, then dies, then is back', async () => {
    slapd = await startSlapd({ ldif })
    const directory = {
      ...reader,
      host: slapd.host,
      port: slapd.port,
      base_ou: suffix,
      id_attr: 'uid',
      group_dns: [`cn=staff,${suffix}`],
      network_timeout: 0.5,
    }
    server = await startServer({
      settings: {
        'auth.enable': 'True',
        'auth.backend': 'ldap',
        'auth.backend_kwargs': JSON.stringify(directory),
        'auth.failures_per_user': '2',
      },
    })
    const first = await login()
    expect([first.status, first.text]).toEqual([201, expect.anything()])
    token = first.body.token
    await expectServed()

    slapd.signal('SIGSTOP')
    const silent = logInTimes(LOGINS)
    await expectServed()
    // The answer tells strangers nothing; the log tells the operator (contract 01, 1.4).
    expect(await silent).toEqual(Array.from({ length: LOGINS }, () => '401 LOGIN_REFUSED'))
    await waitForLog(server, /WARNING.*event=auth\.directory_failed.*no answer within 0\.5 seconds/)
    slapd.signal('SIGCONT')
    // None of these was a wrong password, after which the user would have to wait.
    expect((await login()).status).toBe(201)

    const { host, port } = slapd
    await slapd.stop()
    expect(await logInTimes(LOGINS)).toEqual(Array.from({ length: LOGINS }, () => '401 LOGIN_REFUSED'))
    await waitForLog(server, /WARNING.*event=auth\.directory_failed.*ECONNREFUSED/)
    await expectServed()
    slapd = await startSlapd({ ldif, host, port })
    expect((await login()).status).toBe(201)
    expect(await server.stop()).toEqual({ code: 0, signal: null })
  })
})
