/** Contract 11, 11.6: what definition files may say, and what is wrong with others. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { MAX_USER_CHARACTERS } from '../../core/account-rules.ts'
import { describeProblem } from '../../lib/text/metadata.ts'
import { readDefinitions } from './definitions.ts'

let folder: TemporaryFolder

beforeEach(() => {
  folder = makeFolder()
})
afterEach(() => folder.remove())

function write(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder.path, dirname(path)), { recursive: true })
    writeFileSync(join(folder.path, path), text)
  }
}

async function problemsOf(files: Record<string, string>): Promise<string[]> {
  write(files)
  return (await readDefinitions(folder.path)).problems.map(describeProblem)
}

describe('11.6 what files say', () => {
  it('every name that a user can have can be given roles', async () => {
    const assignment = (username: string): string => `username: ${username}\nroles: [observer]\n`
    const files = { 'assignments/longest.yaml': assignment('u'.repeat(MAX_USER_CHARACTERS)) }
    expect(await problemsOf(files)).toEqual([])
    const more = { 'assignments/longer.yaml': assignment('u'.repeat(MAX_USER_CHARACTERS + 1)) }
    expect(await problemsOf(more)).toEqual([expect.stringContaining('assignments/longer.yaml:1 (username)')])
  })

  it('no folder is no definitions', async () => {
    expect(await readDefinitions(join(folder.path, 'missing'))).toEqual({
      definitions: { roles: [], assignments: [], mappings: [] },
      problems: [],
      isEmpty: true,
    })
  })

  it('the example of the contract, an assignment and a mapping', async () => {
    write({
      'roles/ops.yaml': `name: ops
description: run local commands and read traces
permission_grants:
  - resource_uid: action:core:local
    permission_types: [action_execute, action_view]
  - resource_uid: webhook:sample
    permission_types: [webhook_send]
  - permission_types: [execution_list, trace_list, stream_view]
`,
      'roles/bare.yml': 'name: bare',
      'assignments/alice.yaml': 'username: alice\nroles: [ops, observer, ops]\ndescription: on call\n',
      'mappings/dev.yaml': 'group: "CN=dev,DC=example"\nroles:\n  - ops\nenabled: false\n',
    })
    expect(await readDefinitions(folder.path)).toEqual({
      problems: [],
      isEmpty: false,
      definitions: {
        roles: [
          { name: 'bare', description: '', grants: [] },
          {
            name: 'ops',
            description: 'run local commands and read traces',
            grants: [
              { resource_uid: 'action:core:local', permission_types: ['action_execute', 'action_view'] },
              { resource_uid: 'webhook:sample', permission_types: ['webhook_send'] },
              { permission_types: ['execution_list', 'trace_list', 'stream_view'] },
            ],
          },
        ],
        assignments: [
          { user: 'alice', roles: ['ops', 'observer'], description: 'on call', source: 'assignments/alice.yaml' },
        ],
        mappings: [
          { group: 'CN=dev,DC=example', roles: ['ops'], description: '', enabled: false, source: 'mappings/dev.yaml' },
        ],
      },
    })
  })

  it('a pack can be granted what its content can', async () => {
    const types = [
      'pack_view',
      'pack_all',
      ...['view', 'modify', 'all'].map((verb) => `sensor_type_${verb}`),
      ...['view', 'create', 'modify', 'delete', 'execute', 'all'].map((verb) => `action_${verb}`),
      ...['view', 'create', 'modify', 'delete', 'all'].flatMap((verb) => [`action_alias_${verb}`, `rule_${verb}`]),
    ]
    const grant = `permission_grants: [{resource_uid: "pack:web", permission_types: [${types.join(', ')}]}]`
    expect(await problemsOf({ 'roles/a.yaml': `name: a\n${grant}` })).toEqual([])
  })

  it('every permission type about whole types can be granted without a resource', async () => {
    const types = `runner_type_list pack_list sensor_type_list action_list action_alias_list rule_list
      rule_enforcement_list execution_list key_value_pair_list webhook_list timer_list api_key_list trace_list trigger_list
      policy_type_list policy_list inquiry_list pack_install pack_uninstall pack_create pack_register pack_config
      pack_search pack_views_index_health action_alias_match action_alias_help api_key_create policy_create
      execution_views_filters_list stream_view inquiry_respond inquiry_view`.split(/\s+/)
    const grant = `permission_grants: [{permission_types: [${types.join(', ')}]}]`
    expect(await problemsOf({ 'roles/a.yaml': `name: a\n${grant}` })).toEqual([])
  })

  it('other files, hidden ones and folders are not looked at', async () => {
    write({
      'roles/README.md': 'x',
      'roles/.hidden.yaml': 'x: [',
      'roles/sub.yaml/inner.yaml': 'x: [',
      'roles/a.yaml~': '[',
    })
    expect(await readDefinitions(folder.path)).toMatchObject({ problems: [], isEmpty: true })
  })

  it('disabled roles and assignments are not looked at', async () => {
    write({
      'roles/a.yaml': 'enabled: false\nname: [nonsense]\nwhatever: 1\n',
      'roles/b.yaml': 'enabled: no\nname: twice\n',
      'roles/c.yaml': 'name: twice\n',
      'assignments/a.yaml': 'enabled: false\nusername: alice\nroles: [unknown]\n',
    })
    const { definitions, problems } = await readDefinitions(folder.path)
    expect(problems).toEqual([])
    expect(definitions.roles.map(({ name }) => name)).toEqual(['twice'])
    expect(definitions.assignments).toEqual([])
  })

  it('of the mappings of one group the file that comes later counts', async () => {
    write({
      'mappings/10.yaml': 'group: g\nroles: [admin]\n',
      'mappings/9.yaml': 'group: g\nroles: [observer]\n',
      'mappings/a.yaml': 'group: G\nroles: [admin]\n',
    })
    const { definitions, problems } = await readDefinitions(folder.path)
    expect(problems).toEqual([])
    expect(definitions.mappings.map(({ group, source }) => [group, source])).toEqual([
      ['g', 'mappings/9.yaml'],
      ['G', 'mappings/a.yaml'],
    ])
  })
})

const globalTypes = 'action_alias_help, action_alias_list, action_alias_match, action_list, api_key_create, '

describe('11.6 what is wrong', () => {
  it.each<[what: string, files: Record<string, string>, problems: unknown[]]>([
    [
      'a permission type of another resource type',
      {
        'roles/a.yaml':
          'name: a\npermission_grants:\n  - resource_uid: action:core:local\n    permission_types:\n      - action_view\n      - rule_view\n',
      },
      [
        'roles/a.yaml:6 (permission_grants.0.permission_types.1): Invalid permission type "rule_view" for resource type "action"',
      ],
    ],
    [
      'a permission type nobody knows',
      { 'roles/a.yaml': 'name: a\npermission_grants: [{resource_uid: "action:a:b", permission_types: [action_fly]}]' },
      [expect.stringMatching(/^roles\/a\.yaml:2 .*: Invalid permission type "action_fly" for resource type "action"$/)],
    ],
    [
      'policies on a pack',
      { 'roles/a.yaml': 'name: a\npermission_grants: [{resource_uid: "pack:a", permission_types: [policy_view]}]' },
      [expect.stringContaining('Invalid permission type "policy_view" for resource type "pack"')],
    ],
    [
      'a permission type about one resource without a resource',
      { 'roles/a.yaml': 'name: a\npermission_grants: [{permission_types: [execution_view, action_list, fly]}]' },
      [
        expect.stringContaining(
          `Invalid permission type "execution_view". Valid global permission types which can be used without a resource id are: ${globalTypes}`,
        ),
        expect.stringContaining('Invalid permission type "fly". Valid global'),
      ],
    ],
    [
      'a resource nobody knows, once',
      {
        'roles/a.yaml':
          'name: a\npermission_grants: [{resource_uid: "car:x", permission_types: [action_view, rule_view]}]',
      },
      [expect.stringContaining('Invalid resource "car:x"')],
    ],
    [
      'a role that the system has',
      { 'roles/a.yaml': 'name: admin' },
      [expect.stringMatching(/^roles\/a\.yaml:1 \(name\): .*system role/)],
    ],
    [
      'a role twice',
      { 'roles/a.yaml': 'name: ops', 'roles/b.yaml': 'description: x\nname: ops' },
      ['roles/b.yaml:2 (name): Duplicate definition file found for role "ops": roles/a.yaml defines it already'],
    ],
    [
      'a user twice',
      { 'assignments/a.yaml': 'username: u\nroles: []', 'assignments/b.yaml': 'username: u\nroles: [admin]' },
      [
        'assignments/b.yaml:1 (username): Duplicate definition file found for user "u": assignments/a.yaml defines it already',
      ],
    ],
    [
      'empty files',
      { 'roles/a.yaml': '', 'roles/b.yaml': '# nothing\n', 'assignments/a.yaml': '{}', 'mappings/a.yaml': '---\n' },
      [
        'roles/a.yaml: Role definition file "roles/a.yaml" is empty and invalid',
        'roles/b.yaml: Role definition file "roles/b.yaml" is empty and invalid',
        'assignments/a.yaml: User role assignment file "assignments/a.yaml" is empty and invalid',
        'mappings/a.yaml: Group mapping file "mappings/a.yaml" is empty and invalid',
      ],
    ],
    [
      'unknown roles',
      {
        'roles/idle.yaml': 'name: idle\nenabled: false',
        'assignments/a.yaml': 'username: u\nroles:\n  - admin\n  - nope\n  - idle\n',
        'mappings/a.yaml': 'group: g\nroles: [nope]\nenabled: false',
      },
      [
        'assignments/a.yaml:4 (roles.1): Role "nope" does not exist: no enabled file in roles/ defines it',
        'assignments/a.yaml:5 (roles.2): Role "idle" does not exist: no enabled file in roles/ defines it',
        'mappings/a.yaml:2 (roles.0): Role "nope" does not exist: no enabled file in roles/ defines it',
      ],
    ],
    [
      'a role whose file is wrong is not unknown as well',
      { 'roles/a.yaml': 'name: ops\nfoo: 1', 'assignments/a.yaml': 'username: u\nroles: [ops]' },
      [expect.stringMatching(/^roles\/a\.yaml:2 .*foo/)],
    ],
    ['missing keys', { 'roles/a.yaml': 'description: x' }, ["roles/a.yaml: 'name' is a required property"]],
    [
      'missing keys of assignments',
      { 'assignments/a.yaml': 'username: u' },
      ["assignments/a.yaml: 'roles' is a required property"],
    ],
    [
      'missing keys of mappings',
      { 'mappings/a.yaml': 'roles: []' },
      ["mappings/a.yaml: 'group' is a required property"],
    ],
    [
      'a misspelt key',
      { 'roles/a.yaml': 'name: a\npermisson_grants: []' },
      [expect.stringMatching(/^roles\/a\.yaml:2 .*'permisson_grants' was unexpected/)],
    ],
    [
      'a wrong type',
      { 'assignments/a.yaml': 'username: 12\nroles: [admin]' },
      [expect.stringMatching(/^assignments\/a\.yaml:1 \(username\): .*not of type 'string'/)],
    ],
    [
      'an empty user name',
      { 'assignments/a.yaml': 'username: ""\nroles: [admin]' },
      [expect.stringContaining('non-empty')],
    ],
    ['a list', { 'roles/a.yaml': '- name: a' }, [expect.stringContaining("not of type 'object'")]],
    ['no YAML', { 'roles/a.yaml': 'name: a\nb: [' }, [expect.stringMatching(/^roles\/a\.yaml:\d: /)]],
    [
      'a tag',
      { 'roles/a.yaml': 'name: !!python/object/apply:os.system ["id"]' },
      [expect.stringMatching(/^roles\/a\.yaml:1: .*tag/)],
    ],
    [
      'too large',
      { 'roles/a.yaml': `# ${'x'.repeat(262_144)}\nname: a` },
      ['roles/a.yaml: the file is larger than 262144 bytes'],
    ],
  ])('%s', async (_what, files, problems) => {
    expect(await problemsOf(files)).toEqual(problems)
  })

  it('everything that is wrong is told at once', async () => {
    const problems = await problemsOf({
      'roles/a.yaml': 'name: admin',
      'roles/b.yaml': '[',
      'roles/c.yaml': 'name: c\npermission_grants: [{permission_types: [fly, swim]}]',
      'assignments/a.yaml': 'username: u\nroles: [nope, c]',
      'mappings/a.yaml': '',
    })
    expect(problems).toHaveLength(6)
  })

  it('a link out of the folder is refused, one inside is followed', async () => {
    const outside = makeFolder()
    try {
      writeFileSync(join(outside.path, 'secret.yaml'), 'username: mallory\nroles: [system_admin]\n')
      write({ 'roles/a.yaml': 'name: a' })
      mkdirSync(join(folder.path, 'assignments'))
      symlinkSync(join(outside.path, 'secret.yaml'), join(folder.path, 'assignments', 'x.yaml'))
      symlinkSync('a.yaml', join(folder.path, 'roles', 'b.yaml'))
      symlinkSync('nowhere.yaml', join(folder.path, 'roles', 'c.yaml'))
      const { problems } = await readDefinitions(folder.path)
      expect(problems.map(describeProblem)).toEqual([
        'roles/c.yaml: the file is missing',
        'assignments/x.yaml: the file lies outside of the folder; links may not lead out of it',
        'roles/b.yaml:1 (name): Duplicate definition file found for role "a": roles/a.yaml defines it already',
      ])
    } finally {
      outside.remove()
    }
  })

  it('all files together are bounded', async () => {
    const text = `name: NAME\ndescription: ${'x'.repeat(262_000)}\n`
    write(
      Object.fromEntries(
        Array.from({ length: 66 }, (_, i) => [`roles/${100 + i}.yaml`, text.replace('NAME', `r${i}`)]),
      ),
    )
    expect((await readDefinitions(folder.path)).problems.map(describeProblem)).toEqual([
      'roles/164.yaml: all definition files together are larger than 16777216 bytes',
    ])
  })
})
