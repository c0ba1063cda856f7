/** The module on a real database: applying definitions, roles by groups, who is administrator. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import type { Database } from '../../db/database.ts'
import type { Rights } from '../../http/route.ts'
import { createLog, type RootLog } from '../../lib/log/log.ts'
import { createRbac, type Rbac } from './index.ts'
import { actionResource } from '../../core/permissions.ts'

const settings = { enable: true, backend: 'default', sync_remote_groups: true, permission_isolation: false } as const

let folder: TemporaryFolder
let logged: TextSink
let log: RootLog
let database: Database
let changes: string[]
let rbac: Rbac

beforeEach(async () => {
  folder = makeFolder()
  logged = new TextSink()
  log = createLog({ level: 'INFO', format: 'text', stream: logged })
  rbac = await open()
})

afterEach(async () => {
  await database.close()
  await log.close()
  folder.remove()
})

async function open(more: Partial<Record<keyof typeof settings, boolean>> = {}): Promise<Rbac> {
  changes = []
  const opened = await openDatabase(folder.path)
  const { bus } = opened
  database = opened.database
  const module = createRbac({
    database,
    bus,
    log,
    config: { ...settings, ...more, backend: 'default' },
    basePath: folder.path,
    maxPageSize: 100,
  })
  bus.subscribe('rbac.changed', ({ reason }) => changes.push(reason))
  return module
}

async function reopen(more: Parameters<typeof open>[0] = {}): Promise<void> {
  await database.close()
  rbac = await open(more)
}

/** Undefined removes. */
function write(files: Record<string, string | undefined>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder.path, 'rbac', path)
    if (text === undefined) rmSync(file)
    else {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
  }
}

const rightsOf = (user: string): Rights => rbac.rightsOf({ user, isAdmin: false, method: 'token' })
const echo = actionResource('core.echo')
const rowsOf = (table: 'roles' | 'role_assignments' | 'group_mappings'): unknown[] =>
  database.all(
    database.build
      .selectFrom(table)
      .selectAll()
      .orderBy(table === 'group_mappings' ? 'group_name' : 'id'),
  )
/** Events of the audit lines so far. */
const audits = (event: string): string[] =>
  logged.text.split('\n').filter((line) => line.includes('AUDIT') && line.includes(event))

const ops = `name: ops
permission_grants:
  - resource_uid: action:core:echo
    permission_types: [action_execute]
  - permission_types: [execution_list]
`

describe('applying definitions', () => {
  it('at the start, and what they say counts', async () => {
    write({ 'roles/ops.yaml': ops, 'assignments/alice.yaml': 'username: alice\nroles: [ops]\n' })
    await rbac.start?.()
    expect(rightsOf('alice').may('action_execute', echo)).toBe(true)
    expect(rightsOf('alice').may('action_execute', actionResource('core.noop'))).toBe(false)
    expect(rightsOf('Alice').may('action_execute', echo)).toBe(false)
    expect(rbac.rolesOf('alice')).toEqual(['ops'])
    expect(rbac.isAdmin('alice')).toBe(false)
    expect(rowsOf('roles')).toMatchObject([
      { name: 'system_admin', is_system: 1 },
      { name: 'admin', is_system: 1 },
      { name: 'observer', is_system: 1 },
      { name: 'ops', is_system: 0 },
    ])
  })

  it('a second time changes nothing: no row, no id, no fact', async () => {
    write({
      'roles/ops.yaml': ops,
      'assignments/alice.yaml': 'username: alice\nroles: [ops, admin]\n',
      'mappings/a.yaml': 'group: g\nroles: [ops]\n',
    })
    await rbac.start?.()
    const before = [rowsOf('roles'), rowsOf('role_assignments'), rowsOf('group_mappings')]
    changes.length = 0
    await rbac.reload?.()
    await rbac.start?.()
    expect([rowsOf('roles'), rowsOf('role_assignments'), rowsOf('group_mappings')]).toEqual(before)
    expect(changes).toEqual([])
    expect(audits('role_assignment.created')).toHaveLength(2)
  })

  it('what has changed is changed at once, and keeps its id', async () => {
    write({ 'roles/ops.yaml': ops, 'assignments/alice.yaml': 'username: alice\nroles: [ops, observer]\n' })
    await rbac.start?.()
    const [, , , role] = rowsOf('roles') as { id: string; grants: string }[]
    const [first] = rowsOf('role_assignments') as { id: string }[]
    const rights = rightsOf('alice')
    expect(rights.may('rule_list')).toBe(true)

    write({
      'roles/ops.yaml': ops.replace('action:core:echo', 'action:core:noop'),
      'assignments/alice.yaml': undefined,
      'assignments/a.yaml': 'username: alice\nroles: [ops]\ndescription: moved\n',
    })
    await rbac.reload?.()
    expect(rights.may('rule_list')).toBe(false)
    expect(rights.may('action_execute', echo)).toBe(false)
    expect(rights.may('action_execute', actionResource('core.noop'))).toBe(true)
    expect(rowsOf('role_assignments')).toEqual([
      expect.objectContaining({ id: first?.id, role: 'ops', source: 'assignments/a.yaml', description: 'moved' }),
    ])
    const [, , , changed] = rowsOf('roles') as { id: string; grants: string }[]
    expect(changed?.id).toBe(role?.id)
    const grants = (text: string | undefined) => JSON.parse(text ?? '[]') as { id: string }[]
    expect(grants(changed?.grants)[1]).toEqual(grants(role?.grants)[1])
    expect(grants(changed?.grants)[0]?.id).not.toBe(grants(role?.grants)[0]?.id)
    expect(audits('role_assignment.removed')).toEqual([expect.stringMatching(/"observer" is taken from "alice"/)])
  })

  it('what is no longer in files is removed; system roles and what came from elsewhere stay', async () => {
    write({
      'roles/ops.yaml': ops,
      'assignments/alice.yaml': 'username: alice\nroles: [ops]\n',
      'mappings/a.yaml': 'group: g\nroles: [ops]\n',
    })
    await rbac.start?.()
    await rbac.syncGroups('bob', ['g'])
    const other = { id: 'f'.repeat(24), user: 'carol', role: 'observer', description: '', is_remote: 0, source: 'API' }
    const gone = { ...other, id: `${'f'.repeat(23)}e`, role: 'ops' }
    await database.write({
      steps: [{ query: database.build.insertInto('role_assignments').values([gone, other]) }],
      facts: [],
    })
    write({ 'roles/ops.yaml': undefined, 'assignments/alice.yaml': undefined, 'mappings/a.yaml': undefined })
    await rbac.reload?.()
    expect(rowsOf('roles')).toHaveLength(3)
    expect(rowsOf('group_mappings')).toEqual([])
    expect(rowsOf('role_assignments')).toEqual([
      expect.objectContaining({ user: 'carol', role: 'ops' }),
      expect.objectContaining({ user: 'carol', role: 'observer' }),
    ])
    expect(rbac.rolesOf('alice')).toEqual([])
    expect(rbac.rolesOf('carol')).toEqual(['observer'])
    // The mapping is gone, and with it what it gave.
    expect(rbac.rolesOf('bob')).toEqual([])
  })

  it('wrong files stop the start, with all that is wrong', async () => {
    write({ 'roles/a.yaml': 'name: admin', 'assignments/b.yaml': 'username: u\nroles: [nope]' })
    await expect(rbac.start?.()).rejects.toThrow(
      /^The definition files in .*\/rbac cannot be used:\n {2}roles\/a\.yaml:1 .*\n {2}assignments\/b\.yaml:2 .*"nope".*$/,
    )
    expect(rowsOf('role_assignments')).toEqual([])
  })

  it('wrong files change nothing later, and are named in the log', async () => {
    write({ 'roles/ops.yaml': ops, 'assignments/alice.yaml': 'username: alice\nroles: [ops]\n' })
    await rbac.start?.()
    const before = rowsOf('role_assignments')
    write({ 'assignments/alice.yaml': undefined, 'assignments/bob.yaml': 'username: bob\nroles: [ops, nope]\n' })
    changes.length = 0
    await rbac.reload?.()
    expect(rowsOf('role_assignments')).toEqual(before)
    expect(rightsOf('alice').may('action_execute', echo)).toBe(true)
    expect(changes).toEqual([])
    expect(logged.text).toMatch(/ERROR .*assignments\/bob\.yaml:2 .*"nope"/)
  })

  it('many at the same time agree', async () => {
    write({ 'roles/ops.yaml': ops, 'assignments/alice.yaml': 'username: alice\nroles: [ops]\n' })
    await rbac.start?.()
    write({ 'assignments/alice.yaml': undefined, 'assignments/bob.yaml': 'username: bob\nroles: [ops]\n' })
    await Promise.all(Array.from({ length: 5 }, async () => rbac.reload?.()))
    expect(rowsOf('role_assignments')).toHaveLength(1)
    expect(audits('role_assignment.created')).toHaveLength(2)
  })

  it('thousands of files are applied', async () => {
    const files = Array.from({ length: 1200 }, (_, i) => [
      `assignments/${i}.yaml`,
      `username: u${i}\nroles: [observer]\n`,
    ])
    write(Object.fromEntries(files))
    await rbac.start?.()
    expect(rowsOf('role_assignments')).toHaveLength(1200)
    for (const [path] of files) if (!path?.endsWith('7.yaml')) write({ [path ?? '']: undefined })
    await rbac.reload?.()
    expect(rowsOf('role_assignments')).toHaveLength(120)
    expect(rbac.rolesOf('u17')).toEqual(['observer'])
    expect(rbac.rolesOf('u18')).toEqual([])
  })
})

describe('roles by groups', () => {
  const mappings = {
    'roles/ops.yaml': ops,
    'mappings/a.yaml': 'group: CN=dev,DC=x\nroles: [ops, observer]\n',
    'mappings/b.yaml': 'group: admins\nroles: [admin]\n',
    'mappings/c.yaml': 'group: idle\nroles: [admin]\nenabled: false\n',
    'assignments/alice.yaml': 'username: alice\nroles: [ops]\n',
  }

  it('groups count exactly, and disabled mappings not at all', async () => {
    write(mappings)
    await rbac.start?.()
    await rbac.syncGroups('bob', ['cn=dev,dc=x', 'CN=dev', 'Admins', 'idle', ''])
    expect(rbac.rolesOf('bob')).toEqual([])
    expect(rowsOf('role_assignments')).toHaveLength(1)
    await rbac.syncGroups('bob', ['CN=dev,DC=x', 'CN=dev,DC=x', 'unknown'])
    expect(rbac.rolesOf('bob')).toEqual(['observer', 'ops'])
    expect(rowsOf('role_assignments').slice(1)).toMatchObject([
      { user: 'bob', role: 'ops', is_remote: 1, source: 'mappings/a.yaml' },
      { user: 'bob', role: 'observer', is_remote: 1, source: 'mappings/a.yaml' },
    ])
  })

  it('each time they are replaced; the same groups write nothing; files are not touched', async () => {
    write(mappings)
    await rbac.start?.()
    await rbac.syncGroups('alice', ['CN=dev,DC=x'])
    const before = rowsOf('role_assignments')
    changes.length = 0
    await rbac.syncGroups('alice', ['CN=dev,DC=x'])
    expect(changes).toEqual([])
    expect(rowsOf('role_assignments')).toEqual(before)
    await rbac.syncGroups('alice', ['admins'])
    expect(rbac.rolesOf('alice')).toEqual(['admin', 'ops'])
    expect(rbac.isAdmin('alice')).toBe(true)
    await rbac.syncGroups('alice', [])
    expect(rbac.rolesOf('alice')).toEqual(['ops'])
    expect(rbac.isAdmin('alice')).toBe(false)
  })

  it('two logins at the same time end with one of each', async () => {
    write(mappings)
    await rbac.start?.()
    await Promise.all(Array.from({ length: 8 }, () => rbac.syncGroups('bob', ['admins', 'CN=dev,DC=x'])))
    expect(rbac.rolesOf('bob')).toEqual(['admin', 'observer', 'ops'])
    expect(rowsOf('role_assignments')).toHaveLength(4)
  })

  it.each([
    ['at once', [{ 'mappings/b.yaml': 'group: all\nroles: [admin]\n' }]],
    ['later', [{ 'mappings/b.yaml': undefined }, { 'mappings/b.yaml': 'group: all\nroles: [admin]\n' }]],
  ])('a file that maps another group %s gives its roles to nobody of the first one', async (_, steps) => {
    write(mappings)
    await rbac.start?.()
    await rbac.syncGroups('bob', ['admins', 'CN=dev,DC=x'])
    for (const files of steps) {
      write(files)
      await rbac.reload?.()
    }
    expect(rbac.rolesOf('bob')).toEqual(['observer', 'ops'])
    expect(audits('role_assignment.removed')).toEqual([expect.stringMatching(/"admin" is taken from "bob"/)])
    await rbac.syncGroups('bob', ['all'])
    expect(rbac.rolesOf('bob')).toEqual(['admin'])
  })

  it('count for nothing while they are switched off', async () => {
    write(mappings)
    await rbac.start?.()
    await rbac.syncGroups('bob', ['admins'])
    await reopen({ sync_remote_groups: false })
    await rbac.start?.()
    expect(rbac.isAdmin('bob')).toBe(false)
    await rbac.syncGroups('carol', ['admins'])
    expect(rbac.rolesOf('carol')).toEqual([])
    expect(rowsOf('role_assignments')).toHaveLength(2)
  })
})

describe('who is administrator', () => {
  const admin = (): string => join(folder.path, 'rbac', 'assignments', 'admin.yaml')
  const found = (user: string | undefined) => () => Promise.resolve(user)
  const warnings = (): string[] => logged.text.split('\n').filter((line) => line.includes('There is no administrator'))

  it('at the very first start the account that the server has made', async () => {
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(rbac.isAdmin('admin')).toBe(true)
    expect(rbac.rolesOf('admin')).toEqual(['system_admin'])
    expect(readFileSync(admin(), 'utf8')).toMatch(/^# .*\n# .*\nusername: "admin"\nroles:\n {2}- system_admin\n$/)
    expect(statSync(admin()).mode & 0o777).toBe(0o600)
    expect(warnings()).toEqual([])
    await reopen()
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(rbac.isAdmin('admin')).toBe(true)
  })

  it('at the first start that succeeds, whatever ended others before', async () => {
    await rbac.start?.()
    await reopen()
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(rbac.isAdmin('admin')).toBe(true)
    expect(warnings()).toEqual([])
  })

  it('nobody where there is no such account: a warning says what to write', async () => {
    await rbac.start?.()
    await rbac.ensureAdministrator(found(undefined))
    expect(existsSync(admin())).toBe(false)
    expect(warnings()).toEqual([expect.stringContaining('roles: [system_admin]')])
  })

  it.each([
    ['roles/a.yaml', 'name: a'],
    ['mappings/a.yaml', 'group: g\nroles: [observer]'],
  ])('nobody where somebody has written definitions: %s', async (path, text) => {
    write({ [path]: text })
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(existsSync(admin())).toBe(false)
    expect(warnings()).toHaveLength(1)
  })

  it('nobody at a later start, whose file was taken away', async () => {
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    rmSync(join(folder.path, 'rbac'), { recursive: true })
    await reopen()
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(rbac.isAdmin('admin')).toBe(false)
    expect(warnings()).toHaveLength(1)
  })

  it('nobody from a reload on that has taken the file away: the way back is in the log', async () => {
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    await rbac.reload?.()
    expect(warnings()).toEqual([])
    rmSync(join(folder.path, 'rbac'), { recursive: true })
    await rbac.reload?.()
    expect(rbac.isAdmin('admin')).toBe(false)
    expect(warnings()).toEqual([expect.stringContaining('then send SIGHUP to the server')])
    write({ 'assignments/a.yaml': 'username: admin\nroles: [system_admin]' })
    await rbac.reload?.()
    expect(rbac.isAdmin('admin')).toBe(true)
    expect(warnings()).toHaveLength(1)
  })

  it('nobody where the file cannot be written, and the server starts', async () => {
    mkdirSync(join(folder.path, 'rbac'))
    symlinkSync('nowhere', join(folder.path, 'rbac', 'assignments'))
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(logged.text).toMatch(/admin\.yaml cannot be written/)
    expect(warnings()).toHaveLength(1)
  })

  it.each([
    ['a file', { 'assignments/a.yaml': 'username: a\nroles: [admin]' }],
    ['a mapping', { 'mappings/a.yaml': 'group: g\nroles: [system_admin]' }],
  ])('no warning where %s names one', async (_what, files) => {
    write(files)
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(existsSync(admin())).toBe(false)
    expect(warnings()).toEqual([])
  })

  it('a mapping that is disabled names nobody', async () => {
    write({ 'mappings/a.yaml': 'group: g\nroles: [system_admin]\nenabled: false' })
    await rbac.start?.()
    await rbac.ensureAdministrator(found('admin'))
    expect(warnings()).toHaveLength(1)
  })
})

describe('while access control is off', () => {
  it('nothing is read, made or written, and everybody may do everything', async () => {
    await reopen({ enable: false })
    write({ 'roles/a.yaml': '[' })
    chmodSync(join(folder.path, 'rbac'), 0o000)
    await rbac.start?.()
    await rbac.reload?.()
    await rbac.syncGroups('alice', ['g'])
    await rbac.ensureAdministrator(() => Promise.reject(new Error('asked')))
    chmodSync(join(folder.path, 'rbac'), 0o700)
    expect([rowsOf('roles'), rowsOf('role_assignments'), changes, logged.text]).toEqual([[], [], [], ''])
    expect(rbac.isAdmin('anybody')).toBe(true)
    expect(rbac.rolesOf('anybody')).toEqual([])
    expect(rightsOf('anybody').may('action_execute')).toBe(true)
  })
})
