/** Contract 01, 1.3 and 11, 11.6: the groups that a directory tells at login bring roles. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Attribute, Change } from 'ldapts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { startSlapd, suffix, type Slapd } from '../helpers/slapd.ts'

const folder = makeFolder()
const admins = `cn=admins,${suffix}`
const staff = `cn=staff,${suffix}`
const person = (uid: string): string =>
  `dn: uid=${uid},${suffix}\nobjectClass: inetOrgPerson\nuid: ${uid}\ncn: ${uid}\nsn: ${uid}\nuserPassword: of ${uid}\n`
const group = (dn: string, cn: string, members: string[]): string =>
  `dn: ${dn}\nobjectClass: groupOfNames\ncn: ${cn}\n${members.map((uid) => `member: uid=${uid},${suffix}\n`).join('')}`

let slapd: Slapd
let server: TestApp

beforeAll(async () => {
  slapd = await startSlapd({
    ldif: [
      `dn: cn=reader,${suffix}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: reader\nuserPassword: reads\n`,
      person('anna'),
      person('ben'),
      group(staff, 'staff', ['anna', 'ben']),
      group(admins, 'admins', ['anna']),
    ].join('\n'),
  })
  for (const name of ['mappings', 'assignments']) mkdirSync(join(folder.path, 'rbac', name), { recursive: true })
  writeFileSync(join(folder.path, 'rbac', 'mappings', 'admins.yaml'), `group: "${admins}"\nroles: [admin]\n`)
  writeFileSync(join(folder.path, 'rbac', 'mappings', 'staff.yaml'), `group: "${staff}"\nroles: [observer]\n`)
  server = await createTestApp({
    basePath: folder.path,
    settings: {
      'auth.enable': 'True',
      'auth.backend': 'ldap',
      'auth.backend_kwargs': JSON.stringify({
        host: '127.0.0.1',
        port: slapd.port,
        bind_dn: `cn=reader,${suffix}`,
        bind_password: 'reads',
        base_ou: suffix,
        group_dns: [staff],
        cache_user_groups_response: false,
      }),
      'rbac.enable': 'True',
      'rbac.backend': 'default',
      'rbac.sync_remote_groups': 'True',
    },
  })
})

afterAll(async () => {
  await server.stop()
  await slapd.stop()
  folder.remove()
})

const signInAs = (user: string): Promise<Record<string, string>> => signIn(server, user, `of ${user}`)

async function rolesOf(headers: Record<string, string>): Promise<{ roles: string[]; is_admin: boolean }> {
  const { body } = await server.call<{ rbac: { roles: string[]; is_admin: boolean } }>(
    'GET',
    '/v1/user',
    undefined,
    headers,
  )
  return { roles: body.rbac.roles, is_admin: body.rbac.is_admin }
}

it('roles come with the first login, and follow the groups from login to login', async () => {
  const anna = await signInAs('anna')
  const ben = await signInAs('ben')
  expect(await rolesOf(anna)).toEqual({ roles: ['admin', 'observer'], is_admin: true })
  expect(await rolesOf(ben)).toEqual({ roles: ['observer'], is_admin: false })

  const values = [`uid=ben,${suffix}`]
  const member = new Attribute({ type: 'member', values })
  await slapd.change((client) => client.modify(admins, new Change({ operation: 'add', modification: member })))
  // A login says what counts, not the directory behind its back.
  expect((await rolesOf(ben)).is_admin).toBe(false)
  await signInAs('ben')
  expect(await rolesOf(ben)).toEqual({ roles: ['admin', 'observer'], is_admin: true })

  await slapd.change((client) => client.modify(admins, new Change({ operation: 'delete', modification: member })))
  await signInAs('ben')
  expect(await rolesOf(ben)).toEqual({ roles: ['observer'], is_admin: false })
  expect((await rolesOf(anna)).is_admin).toBe(true)
})

it('a deleted user loses the roles of groups until the next login', async () => {
  const anna = await signInAs('anna')
  const ben = await signInAs('ben')
  const users = await server.call<{ name: string; has_password: unknown }[]>('GET', '/v1/users', undefined, anna)
  expect(users.body.map(({ name, has_password: has }) => [name, has])).toEqual([
    ['anna', null],
    ['ben', null],
  ])
  const change = await server.call<{ faultstring: string }>('PUT', '/v1/users/ben', { password: 'x' }, anna)
  expect(change.status).toBe(400)
  expect(change.body.faultstring).toContain('"ldap" does not store passwords')
  expect((await server.call('DELETE', '/v1/users/ben', undefined, anna)).status).toBe(204)
  expect((await server.call('GET', '/v1/user', undefined, ben)).status).toBe(401)
  const assigned = await server.call<unknown[]>('GET', '/v1/rbac/role_assignments?user=ben', undefined, anna)
  expect(assigned.body).toEqual([])
  expect(await rolesOf(await signInAs('ben'))).toEqual({ roles: ['observer'], is_admin: false })
})

it('a backend that knows of no groups stops the start', async () => {
  const other = makeFolder()
  try {
    const error = await createTestApp({
      basePath: other.path,
      settings: {
        'auth.enable': 'True',
        'rbac.enable': 'True',
        'rbac.backend': 'default',
        'rbac.sync_remote_groups': 'True',
      },
    }).then(
      (started) => started.stop().then(() => 'it started'),
      (failure: unknown) => String(failure),
    )
    const lines = error.split('\n').filter((line) => line.includes('rbac.sync_remote_groups'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('the authentication backend "flat_file" (auth.backend) has no groups')
    expect(error).not.toMatch(/\n\s+at /)
  } finally {
    other.remove()
  }
})
