/** Endpoints of contract 02: packs (2.8), their configurations (2.9), aliases (2.13). */
import { configNotFound, contentNotFound, packInvalid } from '../../core/errors.ts'
import {
  aboutCaller,
  arrayOf,
  attributeQuery,
  jsonReply,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parsePage,
  seesSecrets,
  showSecretsQuery,
  textFilter,
  Reply,
  type ApiRequest,
  type Route,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import { describeProblem } from '../../lib/text/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { Configs } from './configs.ts'
import type { RegisteredKind } from './register.ts'
import type { PackService, Registrations } from './service.ts'
import type { PackStore } from './store.ts'
import type { AliasRecord, PackRecord } from './types.ts'
import { packFile, packFileTexts } from './views.ts'
import { actionAliasResource, packResource } from '../../core/permissions.ts'

const DEFAULT_LIMIT = 100
const MAX_SHOWN_PROBLEMS = 100

const text: JsonSchema = { type: 'string' }
const texts: JsonSchema = { type: 'array', items: text }
const object: JsonSchema = { type: 'object' }

const packProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  description: text,
  version: text,
  author: text,
  email: { type: ['string', 'null'] },
  keywords: texts,
  contributors: texts,
  dependencies: texts,
  python_versions: texts,
  svc_version: { type: ['string', 'null'] },
  system: object,
  files: { ...texts, description: 'Relative to the folder of the pack.' },
  path: { ...text, description: 'The folder on the server.' },
}

const packSchema: JsonSchema = {
  title: 'Pack',
  type: 'object',
  description: 'Other keys of the manifest are there as well.',
  required: Object.keys(packProperties),
  properties: packProperties,
}
const partialPackSchema: JsonSchema = { type: 'object', required: ['id', 'ref'], properties: packProperties }

const aliasProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  pack: text,
  description: text,
  enabled: { type: 'boolean' },
  action_ref: text,
  formats: { type: 'array', items: { type: ['string', 'object'] } },
  ack: object,
  result: object,
  extra: object,
  immutable_parameters: object,
  metadata_file: text,
}

const aliasSchema: JsonSchema = {
  title: 'ActionAlias',
  type: 'object',
  required: Object.keys(aliasProperties).filter((name) => name !== 'metadata_file'),
  properties: aliasProperties,
}
const partialAliasSchema: JsonSchema = { type: 'object', required: ['id', 'ref'], properties: aliasProperties }

const configSchema: JsonSchema = {
  title: 'PackConfig',
  type: 'object',
  required: ['id', 'pack', 'values'],
  properties: { id: text, pack: text, values: object },
}

const configSchemaSchema: JsonSchema = {
  title: 'PackConfigSchema',
  type: 'object',
  required: ['id', 'pack', 'attributes'],
  properties: {
    id: text,
    pack: text,
    attributes: { ...object, description: 'Name of the attribute → its schema.', additionalProperties: object },
  },
}

const problemSchema: JsonSchema = {
  type: 'object',
  required: ['pack', 'file', 'message'],
  properties: { pack: text, file: text, line: { type: 'integer' }, key: text, message: text },
}

/** Type in the singular → the key of its count. */
const countKeys = {
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
} as const

type RegisteredType = keyof typeof countKeys
type CountKey = (typeof countKeys)[RegisteredType]

const typesByName = new Map<string, RegisteredType>(
  // `Object.entries` forgets which names there are.
  (Object.entries(countKeys) as [RegisteredType, CountKey][]).flatMap(([type, key]): [string, RegisteredType][] => [
    [type, type],
    [key, type],
  ]),
)

const registerSchema: JsonSchema = {
  title: 'PackRegisterRequest',
  type: 'object',
  additionalProperties: false,
  properties: {
    packs: {
      type: ['array', 'null'],
      maxItems: 1_000,
      items: { type: 'string', minLength: 1, maxLength: 4_096 },
      description: 'References of packs, or paths of their folders; absent: all.',
    },
    types: {
      type: ['array', 'null'],
      maxItems: 100,
      items: { enum: ['all', ...typesByName.keys()] },
      description: 'What to register; absent: all.',
    },
    fail_on_failure: {
      type: ['boolean', 'null'],
      description:
        'Whether a problem makes the request fail. What can be used is registered in any case. Default true.',
    },
  },
}

interface RegisterBody {
  packs?: string[] | null
  types?: string[] | null
  fail_on_failure?: boolean | null
}

export function createRoutes(deps: {
  service: PackService
  store: PackStore
  configs: Configs
  log: Log
  /** Registers those of the program; how many there are. */
  registerTypes: Readonly<Record<'runner' | 'rule_type' | 'policy_type', () => Promise<number> | number>>
  withLock: <T>(work: () => Promise<T>) => Promise<T>
  maxPageSize: number
  /** `api.mask_secrets` */
  maskSecrets: boolean
}): Route[] {
  const { service, store, configs, log, maxPageSize } = deps

  function getPack(refOrId: string | undefined): PackRecord {
    const given = refOrId ?? ''
    const pack = (isId(given) ? store.findPack(given) : undefined) ?? store.findPackByRef(given)
    if (pack === undefined) throw contentNotFound(given)
    return pack
  }

  function getAlias(refOrId: string | undefined): AliasRecord {
    const given = refOrId ?? ''
    const alias = (isId(given) ? store.findAlias(given) : undefined) ?? store.findAliasByRef(given)
    if (alias === undefined) throw contentNotFound(given)
    return alias
  }

  const packOf = ({ params }: Pick<ApiRequest, 'params'>): ReturnType<typeof packResource> =>
    packResource(getPack(params['ref']).ref)

  /** A configuration that does not exist is found by nobody, whatever they may view. */
  const configOf = ({ params }: Pick<ApiRequest, 'params'>): ReturnType<typeof packResource> => {
    const pack = params['pack'] ?? ''
    if (store.findPackByRef(pack) === undefined) throw configNotFound(pack)
    return packResource(pack)
  }

  const mayView = ({ rights }: Pick<ApiRequest, 'rights'>, packs: readonly string[]): string[] =>
    packs.filter((pack) => rights.may('pack_view', packResource(pack)))

  async function register(request: ApiRequest): Promise<Reply> {
    const { packs, types, fail_on_failure: failOnFailure } = (request.body ?? {}) as RegisterBody // has passed its schema
    const given = types ?? ['all']
    const chosen = new Set<RegisteredType>(
      given.length === 0 || given.includes('all')
        ? typesByName.values()
        : given.map((name) => typesByName.get(name)).filter((type) => type !== undefined),
    )
    const counts: Partial<Record<CountKey, number>> = {}
    for (const type of ['runner', 'rule_type', 'policy_type'] as const) {
      if (chosen.has(type)) counts[countKeys[type]] = await deps.registerTypes[type]()
    }
    const kinds = new Set<RegisteredKind>()
    for (const [type, key] of Object.entries(countKeys) as [RegisteredType, CountKey][]) {
      if (chosen.has(type) && key !== 'runners' && key !== 'rule_types' && key !== 'policy_types') kinds.add(key)
    }
    const { registered, problems } = await service.registerNamed(packs ?? undefined, kinds)
    for (const kind of kinds) counts[kind] = registered[kind]
    log.audit('pack.registered', 'Packs registered.', {
      packs: packs ?? 'all',
      types: [...chosen],
      problems: problems.length,
      ...aboutCaller(request),
    })
    if (problems.length > 0 && failOnFailure !== false) throw packInvalid(describe(problems), shownOf(problems))
    const sorted = Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)))
    return new Reply(problems.length === 0 ? sorted : { ...sorted, problems: shownOf(problems) })
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/packs',
      permission: 'pack_list',
      summary: 'Lists packs in the order of their references.',
      query: {
        ref: { type: 'string', description: 'Only the pack of this reference.' },
        name: { type: 'string', description: 'Only packs of this name.' },
        ...pageQuery,
        ...attributeQuery,
      },
      response: { type: 'array', items: partialPackSchema },
      failures: [400, 403],
      handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const projection = parseAttributes(query, {
          known: Object.keys(packProperties),
          excludable: ['files'],
          always: ['id', 'ref'],
        })
        const filter = { ref: textFilter(query, 'ref'), name: textFilter(query, 'name') }
        const packs = store.listPacks(filter, page).map((pack) => projection.apply(pack))
        return listReply(packs, pageHeaders(page, store.countPacks(filter)))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/packs/:ref_or_id',
      permission: 'pack_view',
      resource: ({ params }) => packResource(getPack(params['ref_or_id']).ref),
      summary: 'Gets one pack.',
      response: packSchema,
      failures: [404],
      handler: ({ params }) => getPack(params['ref_or_id']),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/packs/register',
      permission: 'pack_register',
      summary: 'Registers what the folders of packs hold, and takes away what they do not hold any more.',
      body: registerSchema,
      response: {
        type: 'object',
        description: 'How many of each kind are registered now; only of those that were asked for.',
        properties: {
          ...Object.fromEntries(Object.values(countKeys).map((key) => [key, { type: 'integer' }])),
          problems: { type: 'array', items: problemSchema, description: 'What could not be used, if anything.' },
        },
      },
      failures: [400],
      handler: register,
    },
    {
      surface: 'api',
      method: 'get',
      path: '/packs/views/files/:ref',
      permission: 'pack_view',
      resource: packOf,
      summary: 'Gets the text files of a pack; those that are too large are left out.',
      response: {
        type: 'array',
        items: {
          type: 'object',
          required: ['file_path', 'content'],
          properties: { file_path: text, content: text },
        },
      },
      failures: [404],
      async handler({ params }) {
        const files = []
        for await (const file of packFileTexts(getPack(params['ref']).path)) files.push(file)
        return jsonReply(
          arrayOf(files, function* (file) {
            yield JSON.stringify(file)
          }),
        )
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/packs/views/file/:ref/icon.png',
      permission: 'authenticated',
      summary: 'Gets the icon of a pack.',
      response: { type: 'string', format: 'binary' },
      mediaType: 'image/png',
      otherResponses: { 304: {} },
      failures: [404],
      handler: ({ params, headers }) => packFile(getPack(params['ref']).path, 'icon.png', headers),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/packs/views/file/:ref/*file_path',
      permission: 'pack_view',
      resource: packOf,
      summary: 'Gets one file of a pack.',
      headers: {
        'If-None-Match': 'The ETag of what is there already.',
        'If-Modified-Since': 'The Last-Modified of what is there already.',
      },
      answerHeaders: { ETag: 'Changes with the file.', 'Last-Modified': 'When the file was changed.' },
      response: { type: 'string', format: 'binary' },
      mediaType: 'application/octet-stream',
      otherResponses: { 304: {} },
      failures: [400, 404],
      handler: ({ params, headers }) => packFile(getPack(params['ref']).path, params['file_path'] ?? '', headers),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/configs',
      permission: 'pack_list',
      summary: 'Lists the configurations of packs that may be viewed, in the order of the packs.',
      query: { ...pageQuery, ...showSecretsQuery },
      response: { type: 'array', items: configSchema },
      failures: [400, 403],
      handler(request) {
        const page = parsePage(request.query, request.principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const packs = mayView(request, store.configPacks())
        const unmasked = !deps.maskSecrets || seesSecrets(request)
        const records = store.listConfigs(packs, page).map(({ pack }) => configs.get(pack, unmasked))
        return listReply(records, pageHeaders(page, packs.length))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/configs/:pack',
      permission: 'pack_view',
      resource: configOf,
      summary: 'Gets the configuration of a pack.',
      query: showSecretsQuery,
      response: configSchema,
      failures: [404],
      handler: (request) => configs.get(request.params['pack'] ?? '', !deps.maskSecrets || seesSecrets(request)),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/configs/:pack',
      permission: 'pack_config',
      summary: 'Writes the configuration of a pack. The body holds its values; masks stand for what is stored.',
      body: { title: 'PackConfigValues', type: 'object' },
      query: showSecretsQuery,
      response: configSchema,
      failures: [400, 404],
      async handler(request) {
        const pack = request.params['pack'] ?? ''
        if (store.findPackByRef(pack) === undefined) throw configNotFound(pack)
        await deps.withLock(() => configs.put(pack, request.body as Record<string, unknown>)) // has passed its schema
        log.audit('pack.configured', `Configuration of pack "${pack}" changed.`, { pack, ...aboutCaller(request) })
        return configs.get(pack, !deps.maskSecrets || seesSecrets(request))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/config_schemas',
      permission: 'pack_list',
      summary: 'Lists the schemas of configurations of packs that may be viewed, in the order of the packs.',
      query: pageQuery,
      response: { type: 'array', items: configSchemaSchema },
      failures: [400, 403],
      handler(request) {
        const page = parsePage(request.query, request.principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const packs = mayView(request, store.configSchemaPacks())
        return listReply(store.listConfigSchemas(packs, page), pageHeaders(page, packs.length))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/config_schemas/:pack',
      permission: 'pack_view',
      resource: configOf,
      summary: 'Gets the schema of the configuration of a pack.',
      response: configSchemaSchema,
      failures: [404],
      handler({ params }) {
        const pack = params['pack'] ?? ''
        const schema = store.findConfigSchema(pack)
        if (schema === undefined) throw configNotFound(pack)
        return schema
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actionalias',
      permission: 'action_alias_list',
      summary: 'Lists aliases of actions in the order of pack and name.',
      query: {
        pack: { type: 'string', description: 'Only aliases of this pack.' },
        name: { type: 'string', description: 'Only aliases of this name.' },
        ...pageQuery,
        ...attributeQuery,
      },
      response: { type: 'array', items: partialAliasSchema },
      failures: [400, 403],
      handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const projection = parseAttributes(query, {
          known: Object.keys(aliasProperties),
          excludable: [],
          always: ['id', 'ref', 'pack', 'name'],
        })
        const filter = { pack: textFilter(query, 'pack'), name: textFilter(query, 'name') }
        const aliases = store.listAliases(filter, page).map((alias) => projection.apply({ ...alias }))
        return listReply(aliases, pageHeaders(page, store.countAliases(filter)))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actionalias/:ref_or_id',
      permission: 'action_alias_view',
      resource: ({ params }) => actionAliasResource(getAlias(params['ref_or_id']).ref),
      summary: 'Gets one alias of an action.',
      response: aliasSchema,
      failures: [404],
      handler: ({ params }) => getAlias(params['ref_or_id']),
    },
  ]
}

function describe(problems: Registrations['problems']): string {
  const [first] = problems
  if (first === undefined) return ''
  const more = problems.length - 1
  return `Pack "${first.pack}": ${describeProblem(first)}${more === 0 ? '' : `; and ${more} more`}`
}

function shownOf(problems: Registrations['problems']): Record<string, unknown>[] {
  return problems.slice(0, MAX_SHOWN_PROBLEMS).map((problem) => ({ ...problem }))
}
