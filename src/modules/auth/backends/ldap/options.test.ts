import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeAuthority } from '../../../../../tests/helpers/certificates.ts'
import { makeFolder } from '../../../../../tests/helpers/folders.ts'
import { BackendProblem } from '../backend.ts'
import { readLdapOptions } from './options.ts'

const folder = makeFolder()

const required = {
  bind_dn: 'cn=reader,dc=example,dc=org',
  bind_password: 'the service password',
  base_ou: 'dc=example,dc=org',
  group_dns: ['cn=ops,dc=example,dc=org'],
  host: 'ldap.example.org',
}

beforeAll(async () => {
  await makeAuthority(folder.path, 'own')
  writeFileSync(join(folder.path, 'empty.pem'), '')
  mkdirSync(join(folder.path, 'directory.pem'))
  execFileSync('mkfifo', [join(folder.path, 'pipe.pem')])
}, 240_000)

afterAll(() => folder.remove())

const read = (kwargs: object): ReturnType<typeof readLdapOptions> =>
  readLdapOptions({ ...required, ...kwargs }, folder.path)

describe('readLdapOptions', () => {
  test('has the defaults of the specification', async () => {
    const options = await read({})
    expect(options).toMatchObject({
      bindDn: required.bind_dn,
      bindPassword: required.bind_password,
      baseOu: required.base_ou,
      baseOuGroup: required.base_ou,
      groups: ['cn=ops,dc=example,dc=org'],
      needsAllGroups: true,
      servers: [{ host: 'ldap.example.org', port: 389 }],
      encryption: 'none',
      scope: 'sub',
      connectTimeoutMs: 10_000,
      answerTimeoutMs: 10_000,
      isTraced: false,
      chaseReferrals: false,
      isDefaultAccountPattern: true,
      cache: { ttlSeconds: 120, maxUsers: 100 },
    })
    expect(options.accountPattern.fill({ username: 'alice' }).toString()).toBe('(uid=alice)')
    expect(options.groupPattern.fill({ username: 'alice', user_dn: 'uid=alice' }).toString()).toBe(
      '(|(member=uid=alice)(uniqueMember=uid=alice)(memberUid=alice))',
    )
  })

  test.each<[kwargs: object, expected: object]>([
    [{ use_ssl: true }, { encryption: 'ssl', servers: [{ host: 'ldap.example.org', port: 636 }] }],
    [{ use_ssl: true, port: '' }, { servers: [{ host: 'ldap.example.org', port: 636 }] }],
    [{ use_tls: true }, { encryption: 'starttls', servers: [{ host: 'ldap.example.org', port: 389 }] }],
    [{ port: 1389 }, { servers: [{ host: 'ldap.example.org', port: 1389 }] }],
    [
      { host: 'a.example.org, 10.0.0.1,[::1]', port: 1 },
      {
        servers: [
          { host: 'a.example.org', port: 1 },
          { host: '10.0.0.1', port: 1 },
          { host: '::1', port: 1 },
        ],
      },
    ],
    [{ group_dns: 'CN=Ops, DC=x' }, { groups: ['cn=ops,dc=x'] }],
    [
      { group_dns: ['cn=a', 'CN = A', 'cn=b'], group_dns_check: 'or' },
      { groups: ['cn=a', 'cn=b'], needsAllGroups: false },
    ],
    [{ id_attr: 'sAMAccountName' }, { isDefaultAccountPattern: false, userNames: { attributes: ['sAMAccountName'] } }],
    [{ scope: 'base' }, { scope: 'base' }],
    [{ scope: 'onelevel' }, { scope: 'one' }],
    [{ base_ou_group: 'ou=groups,dc=x' }, { baseOuGroup: 'ou=groups,dc=x' }],
    [{ network_timeout: 0.5 }, { connectTimeoutMs: 500, answerTimeoutMs: 500 }],
    [
      { debug: true, chase_referrals: true },
      { isTraced: true, chaseReferrals: true },
    ],
    [{ cacert: 'own-ca.pem' }, { tls: { isVerified: true } }],
    [{ cacert: null, id_attr: null, port: null }, { tls: { isVerified: false, ca: undefined } }],
    [{ cache_user_groups_ttl: 5 }, { cache: { ttlSeconds: 5, maxUsers: 100 } }],
    [
      { cache_user_groups_cache_ttl: 6, cache_user_groups_cache_max_size: 7 },
      { cache: { ttlSeconds: 6, maxUsers: 7 } },
    ],
    [{ cache_user_groups_ttl: 0 }, { cache: undefined }],
    [{ cache_user_groups_response: false }, { cache: undefined }],
    [{ client_options: { 20485: 3 } }, { connectTimeoutMs: 3000, answerTimeoutMs: 10_000 }],
    [{ client_options: { 20482: 4 } }, { connectTimeoutMs: 10_000, answerTimeoutMs: 4000 }],
    [{ client_options: { 17: 3, 24591: 0 } }, {}],
    [{ client_options: { 2: 3 } }, { derefAliases: 'always' }],
    [{ client_options: { 8: 1 } }, { chaseReferrals: true }],
    [{ client_options: { 24582: 2 } }, { tls: { isVerified: true, ca: undefined } }],
    [{ client_options: { 24583: 772 } }, { tls: { minVersion: 'TLSv1.3' } }],
    [{ client_options: { 24578: 'own-ca.pem' } }, { tls: { isVerified: true } }],
  ])('%j', async (kwargs, expected) => {
    expect(await read(kwargs)).toMatchObject(expected)
  })

  test.each<[kwargs: object, reason: string]>([
    [{ bind_dn: undefined }, 'bind_dn is required'],
    [{ bind_dn: '' }, 'bind_dn is required'],
    [{ bind_dn: 'EXTERNAL' }, 'bind_dn must be a distinguished name'],
    [{ bind_password: undefined }, 'bind_password is required'],
    [{ bind_password: '' }, 'bind_password is required'],
    [{ bind_password: 5 }, 'bind_password must be a non-empty string'],
    [{ base_ou: '' }, 'base_ou is required'],
    [{ base_ou: 'people' }, 'base_ou "people" is not a distinguished name'],
    [{ base_ou_group: 'groups' }, 'base_ou_group "groups" is not a distinguished name'],
    [{ group_dns: undefined }, 'group_dns is required'],
    [{ group_dns: [] }, 'group_dns is required'],
    [{ group_dns: '' }, 'group_dns is required'],
    [{ group_dns: ['ops'] }, 'group_dns "ops" is not a distinguished name'],
    [{ group_dns: [5] }, 'group_dns must be a distinguished name or a list of them'],
    [{ group_dns_check: 'xor' }, 'group_dns_check must be "and" or "or"'],
    [{ host: undefined }, 'host is required'],
    [{ host: '' }, 'host is required'],
    [{ host: 'a,,b' }, 'host has an empty entry'],
    [{ host: 'ldap://a' }, 'host "ldap://a" is not a host name or address'],
    [{ host: 'a:389' }, 'host "a:389" is not a host name or address'],
    [{ host: ['a'] }, 'host must be a non-empty string'],
    [{ port: 0 }, 'port must be a whole number from 1, at most 65535'],
    [{ port: '389' }, 'port must be a whole number'],
    [{ port: 1.5 }, 'port must be a whole number'],
    [{ use_ssl: 'yes' }, 'use_ssl must be true or false'],
    [{ use_ssl: true, use_tls: true }, 'use_ssl and use_tls are both set'],
    [{ cacert: 'absent.pem' }, 'absent.pem does not exist'],
    [{ cacert: 'empty.pem' }, 'empty.pem contains no certificate'],
    [{ cacert: 'directory.pem' }, 'directory.pem is not a file'],
    [{ cacert: 'pipe.pem' }, 'pipe.pem is not a file'],
    [{ cacert: 5 }, 'cacert must be a non-empty string'],
    [{ id_attr: 'uid)(x' }, 'id_attr must be the name of an attribute'],
    [{ account_pattern: '(uid={username}' }, 'account_pattern is not a search filter'],
    [{ account_pattern: '(uid=alice)' }, 'account_pattern matches every user'],
    [{ account_pattern: '(uid={username}*)' }, 'account_pattern has a wildcard next to {username}'],
    [{ group_pattern: '(member={dn})' }, 'group_pattern has no placeholder {dn}'],
    [{ scope: 'sub' }, 'scope must be "base", "onelevel" or "subtree"'],
    [{ scope: 2 }, 'scope must be "base"'],
    [{ network_timeout: 0 }, 'network_timeout must be a number above 0, at most 300'],
    [{ network_timeout: '10' }, 'network_timeout must be a number'],
    [{ debug: 1 }, 'debug must be true or false'],
    [{ chase_referrals: 'no' }, 'chase_referrals must be true or false'],
    [{ chase_referrals: false, client_options: { 8: 1 } }, 'chase_referrals and client_options 8 contradict'],
    [{ client_options: [] }, 'client_options must be an object'],
    [{ client_options: { 12345: 1 } }, 'client_options "12345" is not supported; supported: 2 (DEREF)'],
    [{ client_options: { constructor: 1 } }, 'client_options "constructor" is not supported'],
    [{ client_options: { 17: 2 } }, 'client_options 17 (PROTOCOL_VERSION) must be one of 3'],
    [{ client_options: { 20485: -1 } }, 'client_options 20485 (NETWORK_TIMEOUT) must be seconds above 0'],
    [
      { client_options: { 24578: 'other.pem' }, cacert: 'own-ca.pem' },
      'cacert and client_options 24578 are different files',
    ],
    [{ client_options: { 24582: 0 }, cacert: 'own-ca.pem' }, 'client_options 24582 disables the certificate check'],
    [{ cache_user_groups_response: 0 }, 'cache_user_groups_response must be true or false'],
    [{ cache_user_groups_ttl: -1 }, 'cache_user_groups_ttl must be a number from 0'],
    [{ cache_user_groups_ttl: 1, cache_user_groups_cache_ttl: 2 }, 'are the same option'],
    [{ cache_user_groups_cache_max_size: 0 }, 'cache_user_groups_cache_max_size must be a whole number from 1'],
    [{ bind_pasword: 'x' }, 'ldap has no argument "bind_pasword"; valid arguments: bind_dn, bind_password'],
  ])('refuses %j', async (kwargs, reason) => {
    const refusal = await read(kwargs).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(refusal).toBeInstanceOf(BackendProblem)
    const message = String(refusal instanceof Error && refusal.message)
    expect(message).toMatch(/^auth\.backend_kwargs: [^\n]+$/)
    expect(message).toContain(reason)
    expect(message).not.toContain(required.bind_password)
  })
})
