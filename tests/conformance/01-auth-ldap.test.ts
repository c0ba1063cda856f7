/** Contract 01, 1.4 "ldap", and the table of directory options: against a real slapd, alone and behind the real server. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Attribute, Change, type Client } from 'ldapts'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createLog, type RootLog } from '../../src/lib/log/log.ts'
import type { AuthBackend } from '../../src/modules/auth/backends/backend.ts'
import { createLdapBackend } from '../../src/modules/auth/backends/ldap.ts'
import { makeAuthority, type Authority } from '../helpers/certificates.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, waitForLog, type Answer, type TestApp } from '../helpers/server.ts'
import { findPort, startSlapd, suffix, type Slapd } from '../helpers/slapd.ts'
import { TextSink } from '../helpers/text-sink.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const people = `ou=people,${suffix}`
const groups = `ou=groups,${suffix}`
const operators = `cn=Operators,${groups}`
const staff = `cn=Staff,${groups}`
const unix = `cn=unix,${groups}`
const team = `cn=team,ou=teams,${suffix}`
const reader = { bind_dn: `cn=reader,${suffix}`, bind_password: 'password of the reader' }

const readerEntry = `dn: cn=reader,${suffix}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: reader\nuserPassword: ${reader.bind_password}\n`

const passwordOf = (user: string): string => `secret of ${user}`

const unit = (dn: string): string =>
  `dn: ${dn}\nobjectClass: organizationalUnit\nou: ${/^ou=([^,]+)/.exec(dn)?.[1] ?? ''}\n`

/** In base64, so that blanks and letters of any kind stay what they are. */
const encoded = (text: string): string => Buffer.from(text).toString('base64')

function person(rdn: string, uid: string, more = '', parent = people): string {
  return `dn:: ${encoded(`${rdn},${parent}`)}
objectClass: inetOrgPerson
uid:: ${encoded(uid)}
cn:: ${encoded(`Somebody ${uid}`)}
sn: Person
userPassword:: ${encoded(passwordOf(uid))}
${more === '' ? '' : `${more}\n`}`
}

const hostileUsers = [
  ['uid=star*name', 'star*name'],
  ['uid=paren(s)', 'paren(s)'],
  ['uid=back\\\\slash', 'back\\slash'],
  ['uid=comma\\, name', 'comma, name'],
  ['uid=\\#hash\\+plus\\"quote', '#hash+plus"quote'],
  ['uid=jos\u00e9 \u5c71\u7530', 'jos\u00e9 \u5c71\u7530'],
  ['uid={user_dn}', '{user_dn}'],
] as const

const ldif = (referral: string): string =>
  [
    readerEntry,
    ...[people, groups, `ou=teams,${suffix}`, `ou=inner,${people}`, `ou=contractors,${people}`].map(unit),
    person('uid=alice', 'alice', 'mail: alice@example.org\nemployeeType: active'),
    person('uid=bob', 'bob', 'mail: bob@example.org'),
    person('uid=carol', 'carol'),
    person('uid=dave', 'dave'),
    person('uid=eve', 'eve'),
    person('uid=frank', 'frank'),
    person('uid=inner', 'inner', '', `ou=inner,${people}`),
    person('uid=twin', 'twin'),
    person('uid=twin', 'twin', '', `ou=contractors,${people}`),
    ...hostileUsers.map(([rdn, uid]) => person(rdn, uid)),
    `dn: ${operators}\nobjectClass: groupOfNames\ncn: Operators\n${[
      'uid=alice',
      'uid=bob',
      'uid=twin',
      'uid=frank',
      ...hostileUsers.map(([rdn]) => rdn),
    ]
      .map((rdn) => `member:: ${encoded(`${rdn},${people}`)}\n`)
      .join('')}member: uid=inner,ou=inner,${people}\n`,
    `dn: ${staff}\nobjectClass: groupOfUniqueNames\ncn: Staff\nuniqueMember: uid=alice,${people}\nuniqueMember: uid=carol,${people}\n`,
    `dn: ${unix}\nobjectClass: posixGroup\ncn: unix\ngidNumber: 5000\nmemberUid: alice\nmemberUid: dave\n`,
    `dn: ${team}\nobjectClass: groupOfNames\ncn: team\nmember: uid=alice,${people}\n`,
    `dn: ou=remote,${people}\nobjectClass: referral\nobjectClass: extensibleObject\nou: remote\n${referral}`,
  ].join('\n')

const folder = makeFolder()
let authority: Authority
let otherAuthority: Authority
let slapd: Slapd
/** Serves `ou=remote,ou=people`, on another address and the same port. */
let remote: Slapd
/** Where a referral leads that must not be followed. */
let stranger: FakeServer
let log: RootLog
const logged = new TextSink()
const backends: AuthBackend[] = []
const fakes: FakeServer[] = []

beforeAll(async () => {
  authority = await makeAuthority(folder.path, 'own')
  otherAuthority = await makeAuthority(folder.path, 'other')
  log = createLog({ level: 'DEBUG', format: 'text', stream: logged })
  stranger = await startFake(() => undefined)
  fakes.splice(0)
  const port = await findPort()
  const remoteBase = `ou=remote,${people}`
  remote = await startSlapd({
    host: '127.0.0.2',
    port,
    ldif: [
      readerEntry,
      unit(people),
      unit(remoteBase),
      person('uid=robin', 'robin', '', remoteBase),
      // Somebody of the same name as in the other directory.
      person('uid=frank', 'frank', '', remoteBase),
      // Leads back to where the search came from.
      `dn: ou=back,${remoteBase}\nobjectClass: referral\nobjectClass: extensibleObject\nou: back\nref: ldap://127.0.0.1:${port}/${people}??sub\n`,
    ].join('\n'),
  })
  slapd = await startSlapd({
    port,
    certificate: authority.issue('directory', 'IP:127.0.0.1'),
    ldif: ldif(
      `ref: ldap://127.0.0.2:${port}/${remoteBase}??sub\nref: ldap://127.0.0.1:${stranger.port}/${people}??sub\n`,
    ),
  })
}, 180_000)

afterEach(async () => {
  for (const backend of backends.splice(0)) await backend.stop?.()
  for (const fake of fakes.splice(0)) await fake.close()
})

afterAll(async () => {
  await stranger.close()
  await slapd.stop()
  await remote.stop()
  await log.close()
  folder.remove()
})

const defaults = (): Record<string, unknown> => ({
  ...reader,
  base_ou: suffix,
  group_dns: [operators],
  host: slapd.host,
  port: slapd.port,
  id_attr: 'uid',
})

async function create(kwargs: Record<string, unknown> = {}, now?: () => number): Promise<AuthBackend> {
  const backend = await createLdapBackend({ ...defaults(), ...kwargs }, { basePath: folder.path, log }, now)
  backends.push(backend)
  return backend
}

/** What is logged while the work goes on. */
async function logOf<T>(work: () => Promise<T>): Promise<{ result: T; text: string }> {
  const start = logged.text.length
  const result = await work()
  // The log hands on its lines a moment later.
  const last = `end of ${Math.random()}`
  log.info('test.end', last)
  await waitFor('the log to be written', () => logged.text.includes(last))
  return { result, text: logged.text.slice(start) }
}

interface FakeServer {
  port: number
  /** Connections so far. */
  connections: number
  /** All bytes that came in, as latin1. */
  received: string
  close(): Promise<void>
}

/** A TCP server that is no directory, or a bad one. */
async function startFake(
  onData: (socket: Socket, data: Buffer) => void,
  host = '127.0.0.1',
  port = 0,
): Promise<FakeServer> {
  const sockets = new Set<Socket>()
  const server: TcpServer = createServer((socket) => {
    fake.connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (data) => {
      fake.received += data.toString('latin1')
      onData(socket, data)
    })
  })
  // With a port that is given, somebody else may still have a connection from there.
  await waitFor('the address to be free', () =>
    once(server.listen(port, host), 'listening').then(
      () => true,
      () => false,
    ),
  )
  const fake: FakeServer = {
    port: (server.address() as AddressInfo).port, // a TCP server's address
    connections: 0,
    received: '',
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  fakes.push(fake)
  return fake
}

/** Whether the user gets in. */
const login = async (backend: AuthBackend, user: string, password = passwordOf(user)): Promise<boolean> =>
  (await backend.authenticate(user, password)) === true

function setPassword(client: Client, dn: string, password: string): Promise<void> {
  const modification = new Attribute({ type: 'userPassword', values: [password] })
  return client.modify(dn, new Change({ operation: 'replace', modification }))
}

function changeMember(client: Client, operation: 'add' | 'delete', user: string): Promise<void> {
  const modification = new Attribute({ type: 'member', values: [`uid=${user},${people}`] })
  return client.modify(operators, new Change({ operation, modification }))
}

describe('01.4 ldap: who gets in', () => {
  it.each<[string, Record<string, unknown>, user: string, expected: boolean]>([
    ['a member', {}, 'alice', true],
    ['no member', {}, 'eve', false],
    ['nobody', {}, 'nobody', false],
    ['a name that two entries have', {}, 'twin', false],
    ['group_dns as one text', { group_dns: operators }, 'bob', true],
    ['all groups', { group_dns: [operators, staff, unix] }, 'alice', true],
    ['all but one', { group_dns: [operators, staff] }, 'bob', false],
    ['one of the groups', { group_dns: [operators, staff], group_dns_check: 'or' }, 'bob', true],
    ['none of the groups', { group_dns: [operators, staff], group_dns_check: 'or' }, 'dave', false],
    ['by uniqueMember', { group_dns: staff }, 'carol', true],
    ['by memberUid', { group_dns: unix }, 'dave', true],
    ['a group that is none', { group_dns: `cn=none,${groups}` }, 'alice', false],
    [
      'a group in other letters and with blanks',
      { group_dns: 'CN = OPERATORS , OU=Groups,dc=EXAMPLE,  DC=org' },
      'alice',
      true,
    ],
    ['base_ou of the users', { base_ou: people, base_ou_group: groups }, 'alice', true],
    ['groups outside of base_ou', { base_ou: people }, 'alice', false],
    ['base_ou_group', { group_dns: team, base_ou_group: `ou=teams,${suffix}` }, 'alice', true],
    ['another base_ou_group', { group_dns: operators, base_ou_group: `ou=teams,${suffix}` }, 'alice', false],
    ['users below, scope subtree', { base_ou: people, base_ou_group: groups, scope: 'subtree' }, 'inner', true],
    ['users below, scope onelevel', { base_ou: people, base_ou_group: groups, scope: 'onelevel' }, 'inner', false],
    ['users at the level, scope onelevel', { base_ou: people, base_ou_group: groups, scope: 'onelevel' }, 'bob', true],
    [
      'scope base at the entries',
      { base_ou: `uid=bob,${people}`, base_ou_group: operators, scope: 'base' },
      'bob',
      true,
    ],
    ['scope base elsewhere', { base_ou: people, base_ou_group: operators, scope: 'base' }, 'bob', false],
    ['account_pattern', { account_pattern: '(&(uid={username})(employeeType=active))' }, 'alice', true],
    ['account_pattern that leaves out', { account_pattern: '(&(uid={username})(employeeType=active))' }, 'bob', false],
    ['account_pattern with a presence', { account_pattern: '(&(uid={username})(mail=*))' }, 'bob', true],
    ['account_pattern with an absence', { account_pattern: '(&(uid={{username}})(!(mail=*)))' }, 'bob', false],
    ['group_pattern', { group_pattern: '(&(objectClass=groupOfNames)(member={user_dn}))' }, 'alice', true],
    ['group_pattern by name', { group_pattern: '(memberUid={{username}})', group_dns: unix }, 'dave', true],
    ['group_pattern that leaves out', { group_pattern: '(uniqueMember={{user_dn}})' }, 'bob', false],
    ['client_options', { client_options: { 2: 3, 17: 3, 20485: 5 } }, 'alice', true],
  ])('01.4 %s', async (_, kwargs, user, expected) => {
    const backend = await create(kwargs)
    expect(await login(backend, user)).toBe(expected)
    expect(await login(backend, user, `${passwordOf(user)}!`)).toBe(false)
    await slapd.settle()
  })

  it('01.4 id_attr and account_pattern choose the attribute of the name', async () => {
    const byMail = await create({ id_attr: 'mail' })
    expect(await byMail.authenticate('bob@example.org', passwordOf('bob'))).toBe(true)
    expect(await byMail.authenticate('bob', passwordOf('bob'))).toBe(false)
    const both = await create({ account_pattern: '(|(uid={username})(mail={username}))' })
    expect(await both.authenticate('bob@example.org', passwordOf('bob'))).toBe(true)
    expect(await both.authenticate('bob', passwordOf('bob'))).toBe(true)
  })

  it('01.4 an empty password is refused before the directory is asked', async () => {
    const backend = await create()
    await slapd.settle()
    const { result, text } = await logOf(() => backend.authenticate('alice', ''))
    expect(result).toBe(false)
    expect(text).toContain('without a password')
    expect(await login(backend, 'alice')).toBe(true)
    // The two connections of the second login, and none before them.
    expect((await slapd.settle()).filter((line) => line.includes(' ACCEPT '))).toHaveLength(2)
  })

  it('01.4 groupsOf tells the groups as the directory writes them', async () => {
    const backend = await create()
    expect((await backend.groupsOf?.('alice'))?.sort()).toEqual([operators, staff, team, unix].sort())
    expect(await backend.groupsOf?.('eve')).toEqual([])
    expect(await backend.groupsOf?.('nobody')).toEqual([])
    expect(await backend.groupsOf?.('twin')).toEqual([])
    expect(await backend.groupsOf?.('ALICE')).toEqual([])
    expect(await backend.groupsOf?.(' alice')).toEqual([])
  })
})

describe('01.4 ldap: hostile names', () => {
  it.each(hostileUsers.map(([, user]) => user))('01.4 %j is a user like others', async (user) => {
    const backend = await create()
    expect(await login(backend, user)).toBe(true)
    expect(await backend.groupsOf?.(user)).toEqual([operators])
  })

  it.each([
    '*',
    'alic*',
    '*)(uid=*',
    'alice)(uid=*',
    'alice)(|(objectClass=*',
    'nobody)(|(uid=alice))(&(uid=*',
    '\\',
    '\\61lice',
    'alice\\',
    'alice\0',
    'alice\0)(uid=*',
    `uid=alice,${people}`,
    '{username}',
    '\u202ealice',
    '\ud800',
    'x'.repeat(100_000),
  ])('CVE-2026-38428 escape, injection: the name %j finds nobody', async (user) => {
    const backend = await create()
    expect(await backend.authenticate(user, passwordOf('alice'))).toBe(false)
    expect(await backend.groupsOf?.(user)).toEqual([])
  })

  // slapd finds alice for each of these.
  it.each(['ALICE', 'Alice', ' alice', 'alice ', ' alice  ', 'alice\t', '\u2000alice', 'ali\u00adce', '\uff41lice'])(
    '01.4 the spelling %j is no second user beside alice',
    async (user) => {
      const backend = await create()
      expect(await backend.authenticate(user, passwordOf('alice'))).toBe(false)
      expect(await backend.authenticate('alice', passwordOf('alice'))).toBe(true)
    },
  )

  it('01.4 no refusal is told from another by the calls it takes', async () => {
    const backend = await create()
    // From now on the groups of both are known.
    expect(await login(backend, 'alice')).toBe(true)
    expect(await login(backend, 'eve')).toBe(false)
    const callsOf = async (user: string, password: string): Promise<string[]> => {
      await slapd.settle()
      expect(await backend.authenticate(user, password)).toBe(false)
      return (await slapd.settle()).flatMap(
        (line) => / (ACCEPT|BIND(?= .* method=)|SRCH(?= base)|UNBIND)/.exec(line)?.[1] ?? [],
      )
    }
    const wrongPassword = await callsOf('alice', 'wrong')
    expect(wrongPassword.toSorted()).toEqual(['ACCEPT', 'ACCEPT', 'BIND', 'BIND', 'SRCH', 'UNBIND', 'UNBIND'])
    for (const user of ['nobody', 'eve', 'twin', 'ALICE']) {
      expect((await callsOf(user, passwordOf(user.toLowerCase()))).toSorted()).toEqual(wrongPassword.toSorted())
    }
    // The password of somebody who may not log in is not even tried.
    expect(await login(backend, 'eve')).toBe(false)
    expect((await slapd.settle()).filter((line) => line.includes(`BIND dn="uid=eve`))).toEqual([])
  })
})

describe('01.4 ldap: what is remembered', () => {
  afterEach(() =>
    slapd.change(async (client) => {
      await setPassword(client, `uid=bob,${people}`, passwordOf('bob'))
      await changeMember(client, 'add', 'bob').catch(() => undefined) // he is a member still
      await changeMember(client, 'delete', 'eve').catch(() => undefined) // she is none
    }),
  )

  const clock = (): { now: () => number; pass: (seconds: number) => void } => {
    let milliseconds = 5_000_000
    return { now: () => milliseconds, pass: (seconds) => (milliseconds += seconds * 1000) }
  }

  it('01.4 a password counts from the moment it is changed', async () => {
    const backend = await create()
    expect(await login(backend, 'bob')).toBe(true)
    await slapd.change((client) => setPassword(client, `uid=bob,${people}`, 'changed'))
    expect(await login(backend, 'bob')).toBe(false)
    expect(await backend.authenticate('bob', 'changed')).toBe(true)
  })

  it.each([
    ['120 seconds by default', {}, 120],
    ['cache_user_groups_ttl', { cache_user_groups_ttl: 7 }, 7],
    ['cache_user_groups_cache_ttl', { cache_user_groups_cache_ttl: 9.5 }, 9.5],
  ])('01.4 groups, for %s', async (_, kwargs, ttl) => {
    const { now, pass } = clock()
    const backend = await create(kwargs, now)
    expect(await login(backend, 'bob')).toBe(true)
    expect(await login(backend, 'eve')).toBe(false)
    await slapd.change(async (client) => {
      await changeMember(client, 'delete', 'bob')
      await changeMember(client, 'add', 'eve')
    })
    pass(ttl - 0.001)
    expect(await login(backend, 'bob')).toBe(true)
    expect(await backend.groupsOf?.('bob')).toEqual([operators])
    // An empty list too.
    expect(await login(backend, 'eve')).toBe(false)
    pass(0.001)
    expect(await login(backend, 'bob')).toBe(false)
    expect(await login(backend, 'eve')).toBe(true)
    expect(await backend.groupsOf?.('bob')).toEqual([])
  })

  it.each([
    ['cache_user_groups_response false', { cache_user_groups_response: false }],
    ['a time of 0', { cache_user_groups_ttl: 0 }],
  ])('01.4 nothing with %s', async (_, kwargs) => {
    const backend = await create(kwargs)
    expect(await login(backend, 'bob')).toBe(true)
    await slapd.change((client) => changeMember(client, 'delete', 'bob'))
    expect(await login(backend, 'bob')).toBe(false)
  })

  fullOnly(it)('01.4 no more users than cache_user_groups_cache_max_size', async () => {
    const backend = await create({ cache_user_groups_cache_max_size: 1 })
    expect(await login(backend, 'bob')).toBe(true)
    expect(await login(backend, 'alice')).toBe(true)
    await slapd.change((client) => changeMember(client, 'delete', 'bob'))
    expect(await login(backend, 'bob')).toBe(false)
  })

  it('01.4 not for whoever has got the name since', async () => {
    const backend = await create()
    const grace = `uid=grace,${people}`
    const add = (client: Client, dn: string): Promise<void> =>
      client.add(dn, {
        objectClass: 'inetOrgPerson',
        uid: 'grace',
        cn: 'Grace',
        sn: 'Person',
        userPassword: passwordOf('grace'),
      })
    const other = `uid=grace,ou=contractors,${people}`
    await slapd.change(async (client) => {
      await add(client, grace)
      await changeMember(client, 'add', 'grace')
    })
    try {
      expect(await login(backend, 'grace')).toBe(true)
      await slapd.change(async (client) => {
        await client.del(grace)
        await add(client, other)
      })
      expect(await login(backend, 'grace')).toBe(false)
    } finally {
      await slapd.change(async (client) => {
        await changeMember(client, 'delete', 'grace')
        for (const dn of [grace, other]) await client.del(dn).catch(() => undefined) // at most one is left
      })
    }
  })
})

describe('01.4 ldap: encryption', () => {
  it.each([
    ['LDAPS', { use_ssl: true }],
    ['StartTLS', { use_tls: true }],
  ])('01.4 %s with the right authority', async (name, kwargs) => {
    const port = name === 'LDAPS' ? slapd.tlsPort : slapd.port
    await slapd.settle()
    const { result, text } = await logOf(async () => {
      const backend = await create({ ...kwargs, port, cacert: authority.caFile })
      return [await login(backend, 'alice'), await login(backend, 'alice', 'wrong')]
    })
    expect(result).toEqual([true, false])
    expect(text).not.toContain('WARNING')
    const lines = await slapd.settle()
    const numberOf = (text: string): number => lines.filter((line) => line.includes(text)).length
    // Each login takes two connections, and each of them is encrypted before the bind.
    expect([' ACCEPT ', ' TLS established ', ' method=128'].map(numberOf)).toEqual([4, 4, 4])
  })

  it.each([
    ['LDAPS', { use_ssl: true }],
    ['StartTLS', { use_tls: true }],
  ])('01.4 %s with another authority is refused before a password is sent', async (name, kwargs) => {
    const port = name === 'LDAPS' ? slapd.tlsPort : slapd.port
    await slapd.settle()
    const { result, text } = await logOf(async () => {
      const backend = await create({ ...kwargs, port, cacert: otherAuthority.caFile })
      return login(backend, 'alice')
    })
    expect(result).toBe(false)
    expect(text).toMatch(/WARNING.*auth\.directory_server_failed/)
    expect(text).toMatch(/self.signed certificate|unable to (verify|get)/)
    expect((await slapd.settle()).filter((line) => line.includes(' BIND '))).toEqual([])
  })

  it('01.4 a certificate for another name is refused', async () => {
    const wrongName = await startSlapd({ certificate: authority.issue('elsewhere', 'DNS:elsewhere.example'), ldif: '' })
    try {
      const backend = await create({ use_ssl: true, port: wrongName.tlsPort, cacert: authority.caFile })
      const { result, text } = await logOf(() => login(backend, 'alice'))
      expect(result).toBe(false)
      expect(text).toContain("does not match certificate's altnames")
    } finally {
      await wrongName.stop()
    }
  })

  it('01.4 without cacert the certificate is not checked, and the log says so at the start', async () => {
    const { result, text } = await logOf(async () => {
      const backend = await create({ use_tls: true })
      return [await login(backend, 'alice'), await login(backend, 'bob')]
    })
    expect(result).toEqual([true, true])
    expect(text.match(/WARNING.*cacert.*auth\.directory_unverified/g)).toHaveLength(1)
  })

  fullOnly(it)('01.4 client_options can demand a check without cacert', async () => {
    const backend = await create({ use_tls: true, client_options: { 24582: 2 } })
    expect(await login(backend, 'alice')).toBe(false)
  })

  it('01.4 nothing is sent to a server that refuses StartTLS', async () => {
    const plain = await startSlapd({ ldif: '' })
    try {
      const backend = await create({ use_tls: true, port: plain.port, cacert: authority.caFile })
      const { result, text } = await logOf(() => login(backend, 'alice'))
      expect(result).toBe(false)
      expect(text).toContain('StartTLS refused')
      expect((await plain.settle()).filter((line) => line.includes(' BIND '))).toEqual([])
    } finally {
      await plain.stop()
    }
  })

  /** The answer to a bind or an extended request; its text is one byte that also begins every other answer. */
  const answer = (id: number, type: 0x61 | 0x78, code: number): Buffer =>
    Buffer.from([0x30, 13, 2, 1, id, type, 8, 0x0a, 1, code, 4, 0, 4, 1, 0x30])
  const startTlsGranted = answer(2, 0x78, 0)

  it.each([
    ['whole', 2, 0],
    ['whole, for the message after', 3, 0],
    ['but for its last byte', 2, -1],
    ['but for its last byte, for the message after', 3, -1],
  ])('01.4 an answer put before the encryption, %s, grants nothing', async (_, id, end) => {
    const { certFile, keyFile } = authority.issue('between', 'IP:127.0.0.1')
    const injected = answer(id, 0x61, 0)
    const requests: number[] = []
    const fake = await startFake((socket, data) => {
      if (!data.includes('1.3.6.1.4.1.1466.20037')) return
      socket.removeAllListeners('data')
      socket.write(Buffer.concat([startTlsGranted, injected.subarray(0, injected.length + end)]))
      const secure = new TLSSocket(socket, {
        isServer: true,
        cert: readFileSync(certFile),
        key: readFileSync(keyFile),
      })
      secure.on('error', () => undefined)
      secure.on('data', (request: Buffer) => {
        requests.push(request[5] ?? 0)
        secure.write(answer(request[4] ?? 0, 0x61, 49))
      })
    })
    const backend = await create({ use_tls: true, port: fake.port, cacert: authority.caFile })
    const { result, text } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(false)
    expect(text).toMatch(/WARNING.*auth\.directory_failed.*invalid credentials \(49\)/)
    // A bind, and the farewell.
    expect(requests.filter((type) => type !== 0x42)).toEqual([0x60])
  })

  it('01.4 a connection that the server closes is not made again behind our back', async () => {
    const fake = await startFake((socket) => socket.end(answer(2, 0x61, 0)))
    const backend = await create({ port: fake.port })
    const { result, text } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(false)
    expect(text).toContain('the server closed the connection')
    expect(fake.connections).toBe(1)
  })

  it('01.4 a server that hangs up after StartTLS gets no password', async () => {
    const fake = await startFake((socket) => socket.end(startTlsGranted))
    const backend = await create({ use_tls: true, port: fake.port })
    expect(await login(backend, 'alice')).toBe(false)
    expect(fake.connections).toBe(1)
    expect(fake.received).not.toContain(reader.bind_password)
  })
})

describe('01.4 ldap: servers that fail', () => {
  const host = (first: string): Record<string, unknown> => ({ host: `${first},127.0.0.1` })

  it('01.4 the next one is asked when the first is dead', async () => {
    // Nothing listens there.
    const backend = await create(host('127.0.0.3'))
    const { result, text } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(true)
    expect(text).toMatch(/WARNING.*auth\.directory_server_failed.*127\.0\.0\.3.*ECONNREFUSED/)
  })

  fullOnly(it)('01.4 the next one is asked when the first never answers, and soon that one first', async () => {
    const fake = await startFake(() => undefined, '127.0.0.3', slapd.port)
    let milliseconds = 0
    const backend = await create({ ...host('127.0.0.3'), network_timeout: 2 }, () => milliseconds)
    const { result, text } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(true)
    expect(text).toMatch(/WARNING.*auth\.directory_server_failed.*no answer within 2 seconds/)
    expect(fake.connections).toBe(1)
    expect(await login(backend, 'bob')).toBe(true)
    expect(fake.connections).toBe(1)
    milliseconds += 30_000
    expect(await login(backend, 'bob')).toBe(true)
    expect(fake.connections).toBe(2)
  })

  fullOnly(it)('01.4 the next one is asked when the name of the first is unknown', async () => {
    expect(await login(await create(host('directory.invalid')), 'alice')).toBe(true)
  })

  it('01.4 a server that says no is not asked again elsewhere', async () => {
    const fake = await startFake(() => undefined, '127.0.0.3', slapd.port)
    const backend = await create({ host: '127.0.0.1,127.0.0.3', bind_password: 'not the password' })
    const { result, text } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(false)
    expect(text).toMatch(/WARNING.*auth\.directory_failed.*invalid credentials \(49\)/)
    expect(text).not.toContain('not the password')
    expect(fake.connections).toBe(0)
  })

  it('01.4 groupsOf throws when the directory cannot tell', async () => {
    const backend = await create({ host: '127.0.0.3' })
    await expect(backend.groupsOf?.('alice')).rejects.toThrow('127.0.0.3')
  })

  // So many of the shortest answers as one read takes, and nothing that waits for them.
  const flood = Buffer.alloc(64 * 1024, Buffer.from('30050201637300', 'hex'))
  const hugeLength = Buffer.from('308412345678', 'hex')

  it.each<[string, (socket: Socket) => void, string]>([
    ['never answers', () => undefined, 'no answer within 0.3 seconds'],
    ['hangs up', (socket) => socket.destroy(), 'closed|ECONNRESET'],
    ['speaks another protocol', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'closed the connection'],
    ['sends a thousand messages at once', (socket) => socket.write(flood), 'no answer within 0.3 seconds'],
    [
      'sends without end',
      (socket) => {
        const send = (): void => {
          while (!socket.destroyed && socket.write(flood)) continue
        }
        socket.write(hugeLength)
        socket.on('drain', send)
        send()
      },
      'more than 1048576 bytes',
    ],
    [
      'trickles',
      (socket) => {
        const timer = setInterval(() => socket.write('0'), 20)
        socket.on('close', () => clearInterval(timer))
      },
      'no answer within 0.3 seconds',
    ],
  ])('01.4 a server that %s is a refusal', async (_, onData, reason) => {
    const isSilent = reason.startsWith('no answer')
    const fake = await startFake(onData)
    const backend = await create({ port: fake.port, network_timeout: isSilent ? 0.3 : 20 })
    const { result, text } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(false)
    expect(text).toMatch(new RegExp(`WARNING.*auth\\.directory_failed.*(${reason})`))
    expect(text).not.toContain(passwordOf('alice'))
    expect(text).not.toContain(reader.bind_password)
  })

  it('01.4 a server that repeats the password does not bring it into the log', async () => {
    const text = Buffer.from(`you said ${reader.bind_password}`)
    const refusal = Buffer.concat([
      Buffer.from([0x30, 3 + 2 + 3 + 2 + 2 + text.length, 2, 1, 2, 0x61, 3 + 2 + 2 + text.length]),
      Buffer.from([0x0a, 1, 49, 4, 0, 4, text.length]),
      text,
    ])
    const fake = await startFake((socket) => socket.write(refusal))
    const backend = await create({ port: fake.port, debug: true })
    const { result, text: lines } = await logOf(() => login(backend, 'alice'))
    expect(result).toBe(false)
    expect(lines).toContain('you said ********')
    expect(lines).not.toContain(reader.bind_password)
  })

  it.each([
    ['more groups than the server tells', 501, '', 'size limit exceeded \\(4\\)'],
    ['as many groups as are read', 5000, 'sizelimit unlimited', ''],
    ['more groups than are read', 5001, 'sizelimit unlimited', 'more than 5000 groups'],
  ])('01.4 a user in %s', async (_, count, config, reason) => {
    const dn = `uid=many,${people}`
    const names = Array.from({ length: count }, (__, i) => `cn=g${i},${groups}`)
    const many = await startSlapd({
      config,
      ldif: [
        readerEntry,
        unit(people),
        unit(groups),
        person('uid=many', 'many'),
        ...names.map((name, i) => `dn: ${name}\nobjectClass: groupOfNames\ncn: g${i}\nmember: ${dn}\n`),
      ].join('\n'),
    })
    try {
      const backend = await create({ port: many.port, group_dns: names[0] })
      const { result, text } = await logOf(() => login(backend, 'many'))
      expect(result).toBe(reason === '')
      const failure = /WARNING.*auth\.directory_failed.*/.exec(text)?.[0] ?? ''
      expect(failure).toMatch(reason === '' ? /^$/ : new RegExp(reason))
    } finally {
      await many.stop()
    }
  })

  it('01.4 stop ends what is under way, and can be called again', async () => {
    const fake = await startFake(() => undefined)
    const backend = await create({ port: fake.port, network_timeout: 300 })
    const pending = login(backend, 'alice')
    await waitFor('the bind to arrive', () => fake.received !== '')
    await backend.stop?.()
    await backend.stop?.()
    expect(await pending).toBe(false)
    expect(await login(backend, 'alice')).toBe(false)
    expect(fake.connections).toBe(1)
  })
})

describe('01.4 ldap: referrals', () => {
  const both = { host: '127.0.0.1,127.0.0.2', base_ou: people, base_ou_group: groups, group_pattern: '(cn={username})' }

  it('01.4 are skipped by default', async () => {
    const backend = await create({ ...both, group_pattern: '(|(member={user_dn})(cn={username}))' })
    expect(await login(backend, 'robin')).toBe(false)
    expect(await login(backend, 'frank')).toBe(true)
    expect(stranger.connections).toBe(0)
  })

  fullOnly(it)('01.4 chase_referrals follows them to the servers of the option host, and no others', async () => {
    await slapd.change((client) => changeMember(client, 'add', 'robin,ou=remote'))
    try {
      const backend = await create({ ...both, group_pattern: '(member={user_dn})', chase_referrals: true })
      const { result, text } = await logOf(async () => [
        await login(backend, 'robin'),
        await login(backend, 'robin', 'wrong'),
        await login(backend, 'alice'),
      ])
      expect(result).toEqual([true, false, true])
      expect(text).toMatch(/WARNING.*auth\.directory_referral_ignored/)
      expect(stranger.connections).toBe(0)
      // His password was checked where his entry is.
      await waitForLog(remote, `BIND dn="uid=robin,ou=remote,${people}" method=128`)
      expect(slapd.log()).not.toContain(`BIND dn="uid=robin`)
      // With the other directory there are two of them.
      expect(await login(backend, 'frank')).toBe(false)
      await slapd.settle()
      await remote.settle()
    } finally {
      await slapd.change((client) => changeMember(client, 'delete', 'robin,ou=remote'))
    }
  })

  it('01.4 chase_referrals refuses the login when a server does not answer that might know the user', async () => {
    const port = await findPort()
    const alone = await startSlapd({
      port,
      ldif: [ldif(`ref: ldap://127.0.0.4:${port}/ou=remote,${people}??sub\n`)].join('\n'),
    })
    try {
      const kwargs = { host: '127.0.0.1,127.0.0.4', port, chase_referrals: true }
      expect(await login(await create(kwargs), 'alice')).toBe(false)
      expect(await login(await create({ ...kwargs, chase_referrals: false }), 'alice')).toBe(true)
    } finally {
      await alone.stop()
    }
  })
})

describe('01.4 ldap: the log', () => {
  it('CVE-2025-2877 debug shows each call and its result, and no password', async () => {
    const { text } = await logOf(async () => {
      const backend = await create({ debug: true })
      await login(backend, 'alice')
      await login(backend, 'alice', 'a wrong password')
      await login(backend, 'nobody')
    })
    for (const part of [
      'call: connect',
      'succeeded: bind',
      'succeeded: search',
      'failed: bind',
      '(uid=alice)',
      operators,
    ]) {
      expect(text).toContain(part)
    }
    for (const secret of [passwordOf('alice'), passwordOf('nobody'), 'a wrong password', reader.bind_password]) {
      expect(text).not.toContain(secret)
    }
  })

  it.each<[string, Record<string, unknown>, events: string[]]>([
    ['nothing that asks for a remark', {}, []],
    ['passwords in the clear', { host: '127.0.0.1,directory.invalid' }, ['auth.directory_unencrypted']],
    ['TLS without a check', { host: 'directory.invalid', use_ssl: true }, ['auth.directory_unverified']],
    ['neither id_attr nor account_pattern', { id_attr: undefined }, ['auth.directory_default_pattern']],
  ])('01.4 the start remarks on %s', async (_, kwargs, events) => {
    const { text } = await logOf(() => create(kwargs))
    expect(text.match(/WARNING.*/g)?.map((line) => /event=([\w.]+)/.exec(line)?.[1]) ?? []).toEqual(events)
  })

  it('01.4 without debug there are no such lines; a refusal of a user is INFO with its reason', async () => {
    const backend = await create()
    const { text } = await logOf(async () => {
      for (const user of ['alice', 'nobody', 'eve', 'twin', 'ALICE', ' x']) await login(backend, user, 'wrong')
    })
    expect(text).not.toContain('DEBUG')
    expect(text).not.toContain('WARNING')
    for (const reason of [
      'refused the password',
      'no such user',
      'not in every one',
      'more than one',
      'differently',
      'extra blanks',
    ]) {
      expect(text).toMatch(new RegExp(`INFO .*${reason}.*auth\\.directory_refused`))
    }
  })
})

describe('01.4 ldap behind the server', () => {
  let server: TestApp
  let own: Slapd

  const settings = (kwargs: Record<string, unknown>): Record<string, string> => ({
    'auth.enable': 'True',
    'auth.backend': 'ldap',
    'auth.backend_kwargs': JSON.stringify({ ...defaults(), ...kwargs }),
    'log.level': 'DEBUG',
  })

  function createToken(
    user: string,
    password: string,
  ): Promise<Answer<{ user: string; token: string; faultstring: string }>> {
    const authorization = basicAuth(user, password)
    return call(`${server.urls.auth}/tokens`, 'POST', undefined, { Authorization: authorization })
  }

  beforeAll(async () => {
    own = await startSlapd({
      certificate: authority.issue('own', 'IP:127.0.0.1'),
      ldif: ldif('ref: ldap://127.0.0.9/\n'),
    })
    server = await createTestApp({
      settings: settings({ port: own.port, use_tls: true, cacert: authority.caFile, network_timeout: 5, debug: true }),
    })
  })

  afterAll(async () => {
    await server.stop()
    await own.stop()
  })

  it('01.4 a user of the directory gets a token that works', async () => {
    const { status, body } = await createToken('alice', passwordOf('alice'))
    expect(status).toBe(201)
    expect(body.user).toBe('alice')
    const user = await server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': body.token })
    expect(user.body).toMatchObject({ username: 'alice' })
  })

  it.each([
    ['a wrong password', 'alice', 'wrong'],
    ['an empty password', 'alice', ''],
    ['a wrong group', 'carol', passwordOf('carol')],
    ['an injection', '*)(uid=*', passwordOf('alice')],
    ['other letters', 'ALICE', passwordOf('alice')],
  ])('01.2 %s is 401', async (_, user, password) => {
    const { status, body } = await createToken(user, password)
    expect(status).toBe(401)
    expect(body.faultstring).toContain('Invalid or missing credentials')
  })

  it('01.4 a directory that is down is 401, not 500, and a line for the operator', async () => {
    await own.stop()
    expect((await createToken('bob', passwordOf('bob'))).status).toBe(401)
    await waitForLog(server, /WARNING.*auth\.directory_failed.*request_id=[\w-]+.*ECONNREFUSED/)
    for (const secret of [passwordOf('alice'), passwordOf('bob'), passwordOf('carol'), reader.bind_password]) {
      expect(server.log()).not.toContain(secret)
    }
  })

  it.each<[Record<string, unknown>, string]>([
    [{ bind_password: '' }, 'auth.backend_kwargs: bind_password is required'],
    [{ use_ssl: true, use_tls: true }, 'auth.backend_kwargs: use_ssl and use_tls are both set'],
    [{ cacert: '/nonexistent/ca.pem' }, 'auth.backend_kwargs: cacert /nonexistent/ca.pem does not exist'],
    [{ account_pattern: '(uid={username}' }, 'auth.backend_kwargs: account_pattern is not a search filter'],
  ])('01.4 %j stops the start', async (kwargs, message) => {
    const failure = await createTestApp({ settings: settings(kwargs) }).then(
      async (started) => {
        await started.stop()
        return ''
      },
      (error: unknown) => String(error),
    )
    expect(failure).toContain(message)
    expect(failure).not.toContain(reader.bind_password)
  })
})
