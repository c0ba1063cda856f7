/** Wire records of contract 02, 2.8 (packs) and 2.9 (configurations). */
import { record, Type, type ParameterSchema, type Static } from '../../lib/schema/index.ts'

const pack = Type.Object(
  {
    id: Type.String(),
    uid: Type.String(),
    ref: Type.String(),
    name: Type.String(),
    description: Type.String(),
    version: Type.String(),
    author: Type.String(),
    email: Type.Nullable(Type.String()),
    keywords: Type.Array(Type.String()),
    contributors: Type.Array(Type.String()),
    dependencies: Type.Array(Type.String()),
    python_versions: Type.Array(Type.String()),
    svc_version: Type.Nullable(Type.String()),
    system: Type.FreeForm(),
    files: Type.Array(Type.String(), { description: 'Paths relative to the folder of the pack, sorted.' }),
    path: Type.String({ description: 'Absolute path of the folder on the host of the server.' }),
  },
  { additionalProperties: true },
)

/** Attributes of every pack; other keys of its manifest follow. */
export const packAttributes = [...Object.keys(pack.properties), 'config_problem', 'python_environment']

const example = {
  id: '67a1f0c2e4b0a1d2c3e4f510',
  uid: 'pack:deploy',
  ref: 'deploy',
  name: 'deploy',
  description: 'Deploys services.',
  version: '1.2.0',
  author: 'Ada',
  email: 'ada@example.org',
  keywords: ['deployment'],
  contributors: [],
  dependencies: [],
  python_versions: ['3'],
  svc_version: null,
  system: {},
  files: ['actions/deploy.yaml', 'pack.yaml'],
  path: '/opt/svc/packs/deploy',
}

/** What the server finds out when it is asked, which no manifest says. */
const found = {
  config_problem: Type.Optional(
    Type.String({
      description: 'Why the configuration file of the pack is not used, or only unchecked, and what follows.',
    }),
  ),
  python_environment: Type.Optional(
    Type.Object(
      {
        missing: Type.Array(Type.String(), { description: 'Packages of requirements.txt that are not installed.' }),
        problem: Type.Optional(Type.String({ description: 'Why they could not be installed.' })),
      },
      { description: 'Only for a pack whose Python environment lacks something.' },
    ),
  ),
}

/** Of one pack, with what it lacks. */
export const PackView = record(
  'PackView',
  Type.Object({ ...pack.properties, ...found }, { additionalProperties: true }),
  {
    description: 'Other keys of the manifest follow.',
    example: {
      ...example,
      python_environment: { missing: ['flask'], problem: 'Could not install the requirements of the pack "deploy": …' },
    },
  },
)

export const PackRecord = record('Pack', pack, {
  description: 'Other keys of the manifest follow.',
  example,
})
export type PackRecord = Static<typeof PackRecord> & Record<string, unknown>

/** A pack in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialPack = record(
  'PartialPack',
  Type.Object(
    { ...Type.Partial(pack).properties, ...found, id: Type.String(), ref: Type.String() },
    { additionalProperties: true },
  ),
  { example: { id: '67a1f0c2e4b0a1d2c3e4f510', ref: 'deploy', name: 'deploy', version: '1.2.0' } },
)

export const PackFileText = record(
  'PackFile',
  Type.Object({
    file_path: Type.String({ description: 'Relative to the folder of the pack.' }),
    content: Type.String(),
  }),
  { example: { file_path: 'README.md', content: '# deploy\n' } },
)
export type PackFileText = Static<typeof PackFileText>

/** Type of content → its plural, which names the count in the answer. */
export const contentPlurals = {
  runner: 'runners',
  rule_type: 'rule_types',
  policy_type: 'policy_types',
  trigger: 'triggers',
  sensor: 'sensors',
  action: 'actions',
  rule: 'rules',
  alias: 'aliases',
  policy: 'policies',
  config: 'configs',
} as const satisfies Record<string, keyof PackRegisterResult>
export type ContentType = keyof typeof contentPlurals
export type ContentPlural = (typeof contentPlurals)[ContentType]

const switchesOfKind = Type.Optional(
  Type.Unsafe<Record<string, boolean>>({
    type: 'object',
    additionalProperties: { type: 'boolean' },
    maxProperties: 20_000,
  }),
)

/** By kind and reference. */
export const PackSwitches = Type.Object(
  {
    actions: switchesOfKind,
    sensors: switchesOfKind,
    rules: switchesOfKind,
    aliases: switchesOfKind,
    policies: switchesOfKind,
  },
  {
    additionalProperties: false,
    description:
      'Whether content is enabled, by its reference, whatever its file says. Later registrations know nothing of it.',
  },
)
export type PackSwitches = Static<typeof PackSwitches>

export const PackRegisterRequest = record(
  'PackRegisterRequest',
  Type.Object(
    {
      packs: Type.Optional(
        Type.Nullable(
          Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), {
            maxItems: 1_000,
            description: 'References of packs, or paths of their folders. Absent: all packs.',
          }),
        ),
      ),
      types: Type.Optional(
        Type.Nullable(
          Type.Array(Type.Unsafe<string>({ enum: ['all', ...Object.entries(contentPlurals).flat()] }), {
            maxItems: 100,
            description: 'Types of content to register. Absent: all types.',
          }),
        ),
      ),
      fail_on_failure: Type.Optional(
        Type.Nullable(
          Type.Boolean({
            description: 'Fail the request on a problem. Valid content is registered in any case. Default: true.',
          }),
        ),
      ),
      keep_enabled: Type.Optional(
        Type.Boolean({
          description:
            'Leave what is registered enabled or disabled as it is, unless its file says something else than when it was registered last. Default: false.',
        }),
      ),
      enabled: Type.Optional(PackSwitches),
    },
    { additionalProperties: false },
  ),
  { example: { packs: ['deploy'], types: ['action', 'rule'] } },
)
export type PackRegisterRequest = Static<typeof PackRegisterRequest>

const PackProblemRecord = record(
  'PackProblem',
  Type.Object({
    pack: Type.String(),
    file: Type.String(),
    line: Type.Optional(Type.Integer()),
    key: Type.Optional(Type.String()),
    message: Type.String(),
  }),
  {
    example: {
      pack: 'deploy',
      file: 'actions/deploy.yaml',
      line: 3,
      key: 'runner_type',
      message: 'runner_type is missing',
    },
  },
)

const count = Type.Optional(Type.Integer())
const overridden = Type.Optional(
  Type.Integer({ description: 'Those that an override has enabled or disabled. Absent: none.' }),
)

export const PackRegisterResult = record(
  'PackRegisterResult',
  Type.Object({
    runners: count,
    rule_types: count,
    policy_types: count,
    triggers: count,
    sensors: count,
    actions: count,
    rules: count,
    aliases: count,
    policies: count,
    configs: count,
    'actions(overridden)': overridden,
    'sensors(overridden)': overridden,
    'rules(overridden)': overridden,
    'aliases(overridden)': overridden,
    problems: Type.Optional(
      Type.Array(PackProblemRecord, { description: 'What is not registered. Absent: everything is.' }),
    ),
    more_problems: Type.Optional(Type.Integer({ description: 'Number of problems that are not listed. Absent: 0.' })),
    warnings: Type.Optional(
      Type.Array(PackProblemRecord, {
        description: 'What is registered, but not as its author may expect. Absent: none.',
      }),
    ),
    more_warnings: Type.Optional(Type.Integer({ description: 'Number of warnings that are not listed. Absent: 0.' })),
  }),
  { description: 'Registered records by type of content, for the requested types.', example: { actions: 4, rules: 1 } },
)

export type PackRegisterResult = Static<typeof PackRegisterResult>

export const PackIndexStatus = record(
  'PackIndexStatus',
  Type.Object({
    url: Type.String({ description: 'Without credentials.' }),
    packs: Type.Integer({ description: 'Packs in the index.' }),
    message: Type.String(),
    error: Type.Nullable(Type.Enum(['unresponsive', 'malformed', 'empty'])),
  }),
  { example: { url: 'https://packs.example.org/index.json', packs: 170, message: 'Success.', error: null } },
)
export type PackIndexStatus = Static<typeof PackIndexStatus>

export const CataloguePack = record(
  'CataloguePack',
  Type.Object(
    {
      ref: Type.String(),
      name: Type.String(),
      description: Type.Optional(Type.Unknown()),
      version: Type.Optional(Type.Unknown()),
      author: Type.Optional(Type.Unknown()),
      repo_url: Type.Optional(Type.Unknown()),
    },
    { additionalProperties: true },
  ),
  {
    description: 'As the index has it: the keys of the manifest, and `repo_url`, the address of its git repository.',
    example: {
      ref: 'deploy',
      name: 'deploy',
      description: 'Deploys services.',
      version: '1.2.0',
      author: 'Ada',
      repo_url: 'https://git.example.org/deploy.git',
    },
  },
)
export type CataloguePack = Static<typeof CataloguePack> & Record<string, unknown>

export const PackCatalogue = record(
  'PackCatalogue',
  Type.Object({
    status: Type.Array(PackIndexStatus, { description: 'In the order of `content.index_url`.' }),
    index: Type.MapOf(CataloguePack, { description: 'Packs by reference; of several the one of the first index.' }),
  }),
  { example: { status: [], index: {} } },
)

export const CatalogueHealth = record(
  'PackCatalogueHealth',
  Type.Object({
    indexes: Type.Object({
      count: Type.Integer(),
      valid: Type.Integer(),
      invalid: Type.Integer(),
      errors: Type.MapOf(Type.Integer(), { description: 'Indexes by the kind of their error.' }),
      status: Type.Array(PackIndexStatus),
    }),
    packs: Type.Object({ count: Type.Integer() }),
  }),
  { example: { indexes: { count: 0, valid: 0, invalid: 0, errors: {}, status: [] }, packs: { count: 0 } } },
)

export const CatalogueSearch = record(
  'PackCatalogueSearch',
  Type.Union([
    Type.Object(
      { query: Type.String({ maxLength: 1_024, description: 'Words that a pack must have; empty: every pack.' }) },
      { additionalProperties: false },
    ),
    Type.Object(
      { pack: Type.String({ maxLength: 255, description: 'Reference of one pack.' }) },
      { additionalProperties: false },
    ),
  ]),
  { example: { query: 'deploy' } },
)

const packNames = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), { minItems: 1, maxItems: 100, description })

export const PackInstallRequest = record(
  'PackInstallRequest',
  Type.Object({
    packs: packNames(
      'Each one: the name of a pack that svc includes or that an index has, the path of a folder or archive on the host of the server, or ' +
        'the address of a git repository. After `=`: a version, branch, tag or commit.',
    ),
    force: Type.Optional(
      Type.Boolean({ description: 'Also installs packs for other versions, and the valid content of invalid packs.' }),
    ),
    skip_dependencies: Type.Optional(Type.Boolean({ description: 'Does not install the packs it depends on.' })),
  }),
  { example: { packs: ['examples'] } },
)

export const PackUninstallRequest = record(
  'PackUninstallRequest',
  Type.Object({ packs: packNames('References of packs.') }),
  { example: { packs: ['examples'] } },
)

export const PackExecution = record(
  'PackExecution',
  Type.Object({ execution_id: Type.String({ description: 'Id of the execution that carries out the request.' }) }),
  { example: { execution_id: '67a1f0c2e4b0a1d2c3e4f511' } },
)

/** Name → schema of the value, as for parameters of actions. */
const configAttributes = Type.MapOf(Type.Unsafe<ParameterSchema>({ type: 'object', additionalProperties: true }), {
  description: 'Name of the attribute → its schema.',
})
export type ConfigAttributes = Static<typeof configAttributes>

export const ConfigSchemaRecord = record(
  'PackConfigSchema',
  Type.Object({ id: Type.String(), pack: Type.String(), attributes: configAttributes }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f512',
      pack: 'deploy',
      attributes: { region: { type: 'string', required: true } },
    },
  },
)
export type ConfigSchemaRecord = Static<typeof ConfigSchemaRecord>

export const ConfigRecord = record(
  'PackConfig',
  Type.Object({ id: Type.String(), pack: Type.String(), values: Type.FreeForm() }),
  { example: { id: '67a1f0c2e4b0a1d2c3e4f513', pack: 'deploy', values: { region: 'eu-west-1' } } },
)
export type ConfigRecord = Static<typeof ConfigRecord>

export const ConfigValues = record('PackConfigValues', Type.FreeForm(), { example: { region: 'eu-west-1' } })
