/** The OpenAPI document: lists exactly the routes there are, is valid, and tells the truth about answers. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { projectRoot, waitForStatus, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { send, unknownId, type ErrorAnswer, type RawAnswer } from './support.ts'

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: { type: string }
}

interface Operation {
  operationId: string
  security?: Record<string, string[]>[]
  parameters: Parameter[]
  requestBody?: { content: Record<string, { schema: object }> }
  responses: Record<string, Answer | { $ref: string }>
}

interface Answer {
  content?: Record<string, { schema: object }>
  headers?: object
}

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, object>
    responses: Record<string, Answer>
    securitySchemes: Record<string, object>
  }
}

let server: TestApp
let document: Document
let token: string
let execution: string
let inquiry: string
let workflow: string
let notification: string
/** Checks values against schemas of the document. */
const ajv = new Ajv2020({ strict: false, formats: { 'date-time': true, uri: true } })

beforeAll(async () => {
  const notified = { 'notifications.destinations': 'nobody', 'notifications.on': 'all' }
  const app = await createTestApp({ settings: { 'auth.enable': 'True', 'api.max_body_bytes': '20000', ...notified } })
  server = app
  mkdirSync(join(server.basePath, 'notifications'))
  const destination = 'name: dead\nchannel: webhook\nwebhook_url: http://127.0.0.1:1/\nmessage: "{{ title }}"\n'
  writeFileSync(join(server.basePath, 'notifications', 'dead.yaml'), destination)
  await app.reload()
  document = JSON.parse((await send(server.urls.api, { path: '/v1/openapi.json' })).text) as Document
  ajv.addSchema({ $id: 'https://svc.example/openapi', components: document.components })
  token = JSON.parse((await login()).text)['token'] as string
  execution = await finishedExecution()
  notification = (JSON.parse((await request('get', '/v1/notifications')).text) as { id: string }[])[0]?.id ?? ''
  inquiry = await waitingInquiry()
  await registerPack()
  workflow = await finishedExecution('listed.flow', {})
})
afterAll(async () => {
  await server.stop()
})

const basic = (): string => {
  const password = firstPassword(server.basePath)
  return basicAuth('admin', password)
}
const login = (): Promise<RawAnswer> =>
  send(server.urls.api, { method: 'POST', path: '/auth/v1/tokens', headers: { Authorization: basic() }, body: '{}' })

/** `listed`, in which actions can be made. */
async function registerPack(): Promise<void> {
  const pack = join(server.basePath, 'packs', 'listed')
  mkdirSync(join(pack, 'actions', 'workflows'), { recursive: true })
  mkdirSync(join(pack, 'sensors'))
  writeFileSync(join(pack, 'sensors', 'watch.py'), 'class Watch:\n    pass\n')
  writeFileSync(
    join(pack, 'sensors', 'watch.yaml'),
    'class_name: Watch\nentry_point: watch.py\nenabled: false\npoll_interval: 5\n',
  )
  writeFileSync(join(pack, 'actions', 'workflows', 'flow.yaml'), 'version: 1.0\ntasks:\n  a:\n    action: core.noop\n')
  writeFileSync(
    join(pack, 'actions', 'flow.json'),
    JSON.stringify({ name: 'flow', runner_type: 'orquesta', entry_point: 'workflows/flow.yaml', enabled: true }),
  )
  writeFileSync(
    join(pack, 'pack.yaml'),
    'name: listed\nref: listed\ndescription: For the document.\nversion: 1.0.0\nauthor: tests\n',
  )
  const { status, text } = await request('post', '/v1/packs/register', { packs: ['listed'] })
  if (status !== 200) throw new Error(text)
}

async function waitingInquiry(): Promise<string> {
  const answer = await request('post', '/v1/executions', { action: 'core.ask' })
  const { id } = JSON.parse(answer.text) as { id: string }
  await waitFor('the inquiry', async () => (await request('get', `/v1/inquiries/${id}`)).status === 200)
  return id
}

async function finishedExecution(
  action = 'core.local',
  parameters: object = { cmd: 'echo out; echo err >&2' },
): Promise<string> {
  const answer = await send(server.urls.api, {
    method: 'POST',
    path: '/v1/executions',
    headers: { 'X-Auth-Token': token },
    body: JSON.stringify({ action, parameters }),
  })
  const { id } = JSON.parse(answer.text) as { id: string }
  const signedIn: TestApp = {
    ...server,
    call: (method, path, body) => server.call(method, path, body, { 'X-Auth-Token': token }),
  }
  await waitForStatus(signedIn, id)
  return id
}

const operations = (): [string, string, Operation][] =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, string, Operation] => [method, path, operation]),
  )
const isPublic = ({ security }: Operation): boolean => security?.length === 0
const filled = (path: string): string => {
  const file = path.startsWith('/v1/ui/') ? 'index.html' : 'start.js'
  return path.replace(
    /\{(\w+)\}/g,
    (_, name: string) => ({ id: execution, file, hook: 'listed' })[name] ?? 'core.local',
  )
}

/** Fails unless the document says that this operation can answer this. */
function holdToDocument(operation: Operation, answer: RawAnswer): void {
  expect(`${answer.status} ${contradiction(operation, answer)}\n${answer.text.slice(0, 300)}`).toBe(
    `${answer.status} fits\n${answer.text.slice(0, 300)}`,
  )
}

function declaredAnswer(operation: Operation, status: number): Answer | undefined {
  const declared = operation.responses[String(status)]
  if (declared === undefined || !('$ref' in declared)) return declared
  return document.components.responses[declared.$ref.replace('#/components/responses/', '')]
}

function contradiction(operation: Operation, answer: RawAnswer): string {
  const declared = declaredAnswer(operation, answer.status)
  if (declared === undefined) return `is not among ${Object.keys(operation.responses).join(', ')}`
  if (declared.content === undefined) return answer.text === '' ? 'fits' : 'has a body'
  const type = String(answer.headers['content-type'] ?? '').split(';', 1)[0] ?? ''
  const media = declared.content[type] ?? declared.content['*/*']
  if (media === undefined) return `has type "${type}", not ${Object.keys(declared.content).join(', ')}`
  const value: unknown = type.includes('json') ? JSON.parse(answer.text) : answer.text
  const absolute = JSON.stringify(media.schema).replaceAll('"#/', '"https://svc.example/openapi#/')
  const validate = ajv.compile(JSON.parse(absolute) as object)
  return validate(value) ? 'fits' : ajv.errorsText(validate.errors)
}

function request(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  return send(server.urls.api, {
    method: method.toUpperCase(),
    path,
    headers: {
      'X-Auth-Token': token,
      // The client says by itself how long a body is, but not that of DELETE.
      ...(text === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(text)) }),
      ...headers,
    },
    ...(text === undefined ? {} : { body: text }),
  })
}

describe('the document is an OpenAPI 3.1 document', () => {
  const text = { type: 'string', minLength: 1 }
  const closed = (required: string[], properties: Record<string, unknown>) => ({
    type: 'object',
    required,
    properties,
    additionalProperties: false,
    patternProperties: { '^x-': {} },
  })
  const content = {
    type: 'object',
    minProperties: 1,
    propertyNames: { pattern: '^([a-z]+/[a-z0-9.+-]+|[*]/[*])$' },
    additionalProperties: closed(['schema'], { schema: { type: 'object' } }),
  }
  const requirement = {
    type: 'array',
    items: { type: 'object', additionalProperties: { type: 'array', items: text }, maxProperties: 1 },
  }
  /** What OpenAPI 3.1.0 asks of the parts that this document uses; parts it does not use are not allowed. */
  const answer = closed(['description'], {
    description: text,
    content,
    headers: {
      type: 'object',
      additionalProperties: closed(['schema'], { description: text, schema: { type: 'object' } }),
    },
  })
  const metaSchema = closed(['openapi', 'info', 'paths', 'components', 'servers', 'security'], {
    openapi: { const: '3.1.0' },
    info: closed(['title', 'version'], {
      title: text,
      version: text,
      description: text,
      license: closed(['name'], { name: text, identifier: text }),
    }),
    servers: { type: 'array', minItems: 1, items: closed(['url'], { url: text, description: text }) },
    security: requirement,
    paths: {
      type: 'object',
      propertyNames: { pattern: '^/' },
      additionalProperties: {
        type: 'object',
        propertyNames: { enum: ['get', 'post', 'put', 'delete'] },
        additionalProperties: closed(['operationId', 'summary', 'responses'], {
          operationId: { type: 'string', pattern: '^[a-z][A-Za-z0-9]*$' },
          summary: { type: 'string', pattern: '^[A-Z].*\\.$' },
          tags: { type: 'array', items: text },
          security: requirement,
          parameters: {
            type: 'array',
            items: closed(['name', 'in', 'schema'], {
              name: text,
              in: { enum: ['path', 'query', 'header'] },
              required: { const: true },
              description: text,
              schema: { type: 'object', required: ['type'] },
              style: { const: 'form' },
              explode: { const: false },
            }),
          },
          requestBody: closed(['content'], { required: { type: 'boolean' }, content }),
          responses: {
            type: 'object',
            minProperties: 1,
            propertyNames: { pattern: '^[1-5]\\d\\d$' },
            additionalProperties: { oneOf: [answer, closed(['$ref'], { $ref: text })] },
          },
        }),
      },
    },
    components: closed(['schemas', 'responses', 'securitySchemes'], {
      responses: { type: 'object', additionalProperties: answer },
      schemas: { type: 'object', propertyNames: { pattern: '^[A-Za-z0-9._-]+$' } },
      securitySchemes: {
        type: 'object',
        additionalProperties: {
          oneOf: [
            closed(['type', 'in', 'name'], {
              type: { const: 'apiKey' },
              in: { enum: ['header', 'query', 'cookie'] },
              name: text,
            }),
            closed(['type', 'scheme'], { type: { const: 'http' }, scheme: text }),
          ],
        },
      },
    }),
  })

  it('openapi: its structure', () => {
    const validate = new Ajv2020({ strict: false }).compile(metaSchema)
    expect([validate(document), JSON.stringify(validate.errors)]).toEqual([true, 'null'])
  })

  it('openapi: every schema in it is one of JSON schema 2020-12, every reference leads somewhere', () => {
    const check = new Ajv2020({ strict: false })
    const schemas = [
      ...Object.values(document.components.schemas),
      ...operations().flatMap(([, , operation]) => [
        ...operation.parameters.map(({ schema }) => schema),
        ...[
          operation.requestBody,
          ...Object.keys(operation.responses).map((status) => declaredAnswer(operation, Number(status))),
        ].flatMap((part) => Object.values(part?.content ?? {}).map(({ schema }) => schema)),
      ]),
    ]
    expect(schemas.length).toBeGreaterThan(50)
    for (const schema of schemas)
      expect([check.validateSchema(schema), check.errorsText()]).toEqual([true, 'No errors'])
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(schemas|responses)\/([^"]+)"/g)]
    expect(references.length).toBeGreaterThan(10)
    for (const [, kind, name = ''] of references) {
      expect(Object.keys(document.components[kind === 'responses' ? kind : 'schemas'])).toContain(name)
    }
  })

  it('openapi: operation ids are unique; path parameters are those of the path; security schemes exist', () => {
    const ids = operations().map(([, , { operationId }]) => operationId)
    expect(ids).toEqual([...new Set(ids)])
    for (const [, path, { parameters, security = [] }] of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect([path, parameters.filter((p) => p.in === 'path').map(({ name }) => name)]).toEqual([path, inPath])
      expect(parameters.filter((p) => p.in === 'path' && p.required !== true)).toEqual([])
      const names = parameters.map((p) => `${p.in} ${p.name}`)
      expect(names).toEqual([...new Set(names)])
      for (const scheme of security.flatMap((requirement) => Object.keys(requirement))) {
        expect(Object.keys(document.components.securitySchemes)).toContain(scheme)
      }
    }
  })
})

describe('the document lists exactly the routes', () => {
  it('openapi: what the sources declare is what it lists', () => {
    const prefixes = { api: '/v1', auth: '/auth/v1', stream: '/stream/v1' }
    const source = join(projectRoot, 'src')
    const declared = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => readFileSync(join(source, name), 'utf8'))
      .flatMap((text): (RegExpExecArray | string[])[] => [
        ...text.matchAll(
          /(?:surface: '(auth|api|stream)',\s+method: '(get|post|put|delete)'|listEndpoint\(\{),?\s+path: '([^']+)'/g,
        ),
        ...[...text.matchAll(/contentRoutes\(\{\s+path: '([^']+)',([^]*?)\n {4}\}\)/g)].flatMap(
          ([, path = '', rest = '']) =>
            [...rest.matchAll(/^ {6}(get|put|delete): \{/gm)].map(([, method = '']) => [
              '',
              'api',
              method,
              `${path}/:ref_or_id`,
            ]),
        ),
      ])
      // The expression gives the path, and the others unless it is a list.
      .map(
        ([, surface = 'api', method = 'get', path]) =>
          `${method} ${prefixes[surface as 'api']}${path === '/' ? '' : String(path).replace(/[:*](\w+)/g, '{$1}')}`,
      )
    expect(declared.length).toBeGreaterThan(20)
    expect(
      operations()
        .map(([method, path]) => `${method} ${path}`)
        .toSorted(),
    ).toEqual([...declared, 'get /healthz', 'get /readyz'].toSorted())
  })

  it('openapi: a listed method is answered by its route, any other on the same path with 405', async () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of ['get', 'post', 'put', 'delete']) {
        const isListed = method in item
        // A stream that is refused for its Last-Event-ID has been reached too, and does not stay open.
        const answer = await send(server.urls.api, { method: method.toUpperCase(), path: filled(path) })
        const code =
          answer.headers['content-type']?.includes('json') === true && (JSON.parse(answer.text) as ErrorAnswer).code
        expect([method, path, answer.status === 405, code === 'ROUTE_UNKNOWN']).toEqual([
          method,
          path,
          !isListed,
          false,
        ])
      }
    }
  })
})

const action = {
  name: 'listed',
  pack: 'listed',
  runner_type: 'noop',
  data_files: [{ file_path: 'listed.txt', content: 'For the document.' }],
}
const rule = {
  name: 'listed',
  description: 'For the document.',
  trigger: { type: 'core.svc.generic.inquiry' },
  criteria: { 'trigger.id': { type: 'eq', pattern: 'i' } },
  action: { ref: 'core.noop' },
}
const alias = { name: 'listed', action_ref: 'core.echo', formats: ['list {{ message }}'] }
const policy = {
  name: 'listed',
  resource_ref: 'listed.none',
  policy_type: 'action.concurrency.attr',
  parameters: { threshold: 1, attributes: ['cmd'] },
}
const never = { 'trigger.id': { type: 'eq', pattern: 'j' } }
const event = { trigger: 'core.svc.generic.inquiry', payload: { id: 'i', route: 'r' } }

/** A request for each operation, with what it is answered: method, path of the document, the rest. */
const samples: [
  string,
  string,
  { path?: () => string; body?: unknown; status?: number; headers?: () => Record<string, string> },
][] = [
  ['post', '/auth/v1/tokens', { body: { ttl: 60 }, status: 201, headers: () => ({ Authorization: basic() }) }],
  ['post', '/auth/v1/tokens', { body: { ttl: 'x' }, status: 400, headers: () => ({ Authorization: basic() }) }],
  ['post', '/auth/v1/tokens/validate', { body: {}, status: 400 }],
  ['post', '/auth/v1/tokens/validate', { body: { token: 'x' } }],
  ['delete', '/auth/v1/tokens/{token}', { path: () => `/auth/v1/tokens/${unknownId}`, status: 404 }],
  ['delete', '/auth/v1/tokens', { path: () => '/auth/v1/tokens?user=nobody' }],
  ['get', '/v1/user', {}],
  ['post', '/v1/users', { body: { name: 'listed', password: 'x', nicknames: { chat: 'l' } }, status: 201 }],
  ['post', '/v1/users', { body: { name: 'listed' }, status: 409 }],
  ['post', '/v1/users', { body: { name: 'a:b' }, status: 400 }],
  ['get', '/v1/users', {}],
  ['get', '/v1/users', { path: () => '/v1/users?limit=0', status: 400 }],
  ['get', '/v1/users/{name}', { path: () => '/v1/users/listed' }],
  ['get', '/v1/users/{name}', { path: () => '/v1/users/nobody', status: 404 }],
  ['put', '/v1/users/{name}', { path: () => '/v1/users/listed', body: { is_service: true } }],
  ['put', '/v1/users/{name}', { path: () => '/v1/users/admin', body: { is_disabled: true }, status: 400 }],
  ['delete', '/v1/users/{name}', { path: () => '/v1/users/admin', status: 400 }],
  ['delete', '/v1/users/{name}', { path: () => '/v1/users/listed', status: 204 }],
  ['post', '/v1/apikeys', { body: { scopes: [{ permission_types: ['action_list'] }] }, status: 201 }],
  ['post', '/v1/apikeys', { body: { key_hash: 'x' }, status: 400 }],
  ['get', '/v1/apikeys', {}],
  ['get', '/v1/apikeys', { path: () => '/v1/apikeys?limit=0', status: 400 }],
  ['get', '/v1/apikeys/{id_or_key}', { status: 404 }],
  ['put', '/v1/apikeys/{id_or_key}', { body: {}, status: 404 }],
  ['delete', '/v1/apikeys/{id_or_key}', { status: 404 }],
  // What these answer with access control is held to the document in `11-rbac`.
  ['get', '/v1/rbac/permission_types', {}],
  ['get', '/v1/rbac/permission_types/{type}', { path: () => '/v1/rbac/permission_types/action' }],
  ['get', '/v1/rbac/permission_types/{type}', { path: () => '/v1/rbac/permission_types/car', status: 404 }],
  ['get', '/v1/rbac/roles', {}],
  ['get', '/v1/rbac/roles/{name_or_id}', { path: () => '/v1/rbac/roles/admin', status: 404 }],
  ['get', '/v1/rbac/role_assignments', {}],
  ['get', '/v1/rbac/role_assignments/{id}', { path: () => `/v1/rbac/role_assignments/${unknownId}`, status: 404 }],
  ['post', '/v1/rbac/definitions/apply', { status: 400 }],
  [
    'post',
    '/v1/executions/import',
    {
      body: {
        executions: [
          {
            id: '5a1f0c2e4b0a1d2c3e4f5070',
            status: 'succeeded',
            start_timestamp: '2026-01-31T12:00:00Z',
            action: { ref: 'core.local', runner_type: 'local-shell-cmd' },
          },
        ],
        dry_run: true,
      },
    },
  ],
  ['post', '/v1/executions/import', { body: { executions: [{}] }, status: 400 }],
  [
    'post',
    '/v1/executions/output/import',
    {
      body: {
        output: [
          {
            id: '5a1f0c2e4b0a1d2c3e4f5074',
            execution_id: '5a1f0c2e4b0a1d2c3e4f5070',
            output_type: 'stdout',
            data: 'hello',
            timestamp: '2026-01-31T12:00:00Z',
          },
        ],
        dry_run: true,
      },
    },
  ],
  ['post', '/v1/executions/output/import', { body: { output: [{}] }, status: 400 }],
  [
    'post',
    '/v1/traces/import',
    {
      body: {
        traces: [{ id: '5a1f0c2e4b0a1d2c3e4f5071', trace_tag: 'a', start_timestamp: '2026-01-31T12:00:00Z' }],
        dry_run: true,
      },
    },
  ],
  ['post', '/v1/traces/import', { body: { traces: [{}] }, status: 400 }],
  [
    'post',
    '/v1/triggerinstances/import',
    {
      body: {
        trigger_instances: [
          { id: '5a1f0c2e4b0a1d2c3e4f5072', trigger: 'shop.order', occurrence_time: '2026-01-31T12:00:00Z' },
        ],
        dry_run: true,
      },
    },
  ],
  ['post', '/v1/triggerinstances/import', { body: { trigger_instances: [{}] }, status: 400 }],
  [
    'post',
    '/v1/ruleenforcements/import',
    {
      body: {
        rule_enforcements: [
          {
            id: '5a1f0c2e4b0a1d2c3e4f5073',
            trigger_instance_id: '5a1f0c2e4b0a1d2c3e4f5072',
            rule: { ref: 'shop.on_order' },
            enforced_at: '2026-01-31T12:00:00Z',
          },
        ],
        dry_run: true,
      },
    },
  ],
  ['post', '/v1/ruleenforcements/import', { body: { rule_enforcements: [{}] }, status: 400 }],
  ['get', '/v1/notifications', {}],
  ['get', '/v1/notifications', { path: () => '/v1/notifications?status=lost', status: 400 }],
  ['get', '/v1/notifications/{id}', { path: () => `/v1/notifications/${notification}` }],
  ['get', '/v1/notifications/{id}', { status: 404 }],
  ['get', '/v1/notifications/destinations', {}],
  ['get', '/v1/notifications/destinations/{name}', { path: () => '/v1/notifications/destinations/dead' }],
  ['get', '/v1/notifications/destinations/{name}', { status: 404 }],
  ['post', '/v1/notifications/destinations/{name}/test', { path: () => '/v1/notifications/destinations/dead/test' }],
  ['post', '/v1/notifications/destinations/{name}/test', { status: 404 }],
  ['post', '/v1/notifications/{id}/replay', { path: () => `/v1/notifications/${notification}/replay` }],
  ['post', '/v1/notifications/{id}/replay', { status: 404 }],
  ['post', '/v1/backups', { status: 201 }],
  ['get', '/v1/backups', {}],
  ['post', '/v1/purge/{kind}', { path: () => '/v1/purge/output', body: { before: '2020-01-01T00:00:00Z' } }],
  [
    'post',
    '/v1/purge/{kind}',
    { path: () => '/v1/purge/rules', body: { before: '2020-01-01T00:00:00Z' }, status: 404 },
  ],
  ['post', '/v1/purge/{kind}', { path: () => '/v1/purge/output', body: { before: 'yesterday' }, status: 400 }],
  ['get', '/v1/actions', {}],
  ['get', '/v1/actions', { path: () => '/v1/actions?include_attributes=name&limit=1' }],
  ['get', '/v1/actions/{ref_or_id}', {}],
  ['get', '/v1/actions/views/parameters/{id}', { path: () => '/v1/actions/views/parameters/core.local' }],
  ['get', '/v1/actions/views/overview', {}],
  ['get', '/v1/actions/views/overview/{ref_or_id}', {}],
  // No action of this release has an entry point.
  ['get', '/v1/actions/views/entry_point/{ref_or_id}', { status: 404 }],
  ['get', '/v1/packs', {}],
  ['get', '/v1/packs', { path: () => '/v1/packs?include_attributes=ref&limit=1' }],
  ['get', '/auth/v1/sso', {}],
  ['get', '/auth/v1/sso/request', { status: 404 }],
  ['post', '/auth/v1/sso/callback', { status: 404 }],
  ['get', '/v1/service_registry/groups', {}],
  ['get', '/v1/service_registry/groups/{group_id}/members', { path: () => '/v1/service_registry/groups/api/members' }],
  [
    'get',
    '/v1/service_registry/groups/{group_id}/members',
    { path: () => '/v1/service_registry/groups/none/members', status: 404 },
  ],
  ['get', '/v1/packs/index', {}],
  ['post', '/v1/packs/index/search', { body: { query: 'x' } }],
  ['post', '/v1/packs/index/search', { body: {}, status: 400 }],
  ['get', '/v1/packs/index/health', {}],
  ['get', '/v1/packs/{ref_or_id}', { path: () => '/v1/packs/core' }],
  ['get', '/v1/packs/{ref_or_id}', { status: 404 }],
  ['post', '/v1/packs/register', { body: { packs: ['core'] } }],
  ['post', '/v1/packs/register', { body: { packs: ['none'] }, status: 400 }],
  ['post', '/v1/packs/install', { body: { packs: ['none'] }, status: 202 }],
  ['post', '/v1/packs/install', { body: {}, status: 400 }],
  ['post', '/v1/packs/uninstall', { body: { packs: ['none'] }, status: 202 }],
  ['post', '/v1/packs/uninstall', { body: {}, status: 400 }],
  ['get', '/v1/packs/views/files/{ref}', { path: () => '/v1/packs/views/files/core' }],
  ['get', '/v1/packs/views/file/{ref}/icon.png', { path: () => '/v1/packs/views/file/none/icon.png', status: 404 }],
  ['get', '/v1/packs/views/file/{ref}/{file_path}', { path: () => '/v1/packs/views/file/core/none', status: 404 }],
  ['get', '/v1/config_schemas', {}],
  ['get', '/v1/config_schemas/{pack}', { status: 404 }],
  ['put', '/v1/configs/{pack}', { path: () => '/v1/configs/core', body: { a: 1 } }],
  ['put', '/v1/configs/{pack}', { body: {}, status: 404 }],
  ['get', '/v1/configs', {}],
  ['get', '/v1/configs/{pack}', { path: () => '/v1/configs/core' }],
  ['get', '/v1/configs/{pack}', { status: 404 }],
  ['get', '/v1/sensortypes', {}],
  ['get', '/v1/sensortypes', { path: () => '/v1/sensortypes?include_attributes=enabled&limit=1' }],
  ['get', '/v1/sensortypes', { path: () => '/v1/sensortypes?limit=0', status: 400 }],
  ['get', '/v1/sensortypes/{ref_or_id}', { path: () => '/v1/sensortypes/listed.Watch' }],
  ['get', '/v1/sensortypes/{ref_or_id}', { status: 404 }],
  ['get', '/v1/sensortypes/{ref_or_id}/output', { path: () => '/v1/sensortypes/listed.Watch/output' }],
  [
    'get',
    '/v1/sensortypes/{ref_or_id}/output',
    { path: () => '/v1/sensortypes/listed.Watch/output?limit=0', status: 400 },
  ],
  ['get', '/v1/sensortypes/{ref_or_id}/output', { status: 404 }],
  ['put', '/v1/sensortypes/{ref_or_id}', { path: () => '/v1/sensortypes/listed.Watch', body: { enabled: false } }],
  ['put', '/v1/sensortypes/{ref_or_id}', { path: () => '/v1/sensortypes/listed.Watch', body: {}, status: 400 }],
  ['put', '/v1/sensortypes/{ref_or_id}', { body: { enabled: false }, status: 404 }],
  ['get', '/v1/actionalias', {}],
  ['post', '/v1/actionalias', { body: alias, status: 201 }],
  ['post', '/v1/actionalias', { body: alias, status: 409 }],
  ['post', '/v1/actionalias', { body: { ...alias, formats: [1] }, status: 400 }],
  ['post', '/v1/actionalias/match', { body: { command: 'list it' } }],
  ['post', '/v1/actionalias/match', { body: { command: 'nothing' }, status: 400 }],
  ['get', '/v1/actionalias/help', {}],
  ['get', '/v1/actionalias/help', { path: () => '/v1/actionalias/help?filter=(', status: 400 }],
  [
    'post',
    '/v1/aliasexecution',
    {
      body: { name: 'listed', format: 'list {{ message }}', command: 'list it', user: 'ann', source_channel: 'ops' },
      status: 201,
    },
  ],
  ['post', '/v1/aliasexecution', { body: {}, status: 400 }],
  [
    'post',
    '/v1/aliasexecution/match_and_execute',
    { body: { command: 'list it', user: 'ann', source_channel: 'ops' }, status: 201 },
  ],
  ['post', '/v1/aliasexecution/match_and_execute', { body: {}, status: 400 }],
  ['get', '/v1/aliasexecution/{id}/reply', {}],
  ['get', '/v1/aliasexecution/{id}/reply', { path: () => '/v1/aliasexecution/none/reply', status: 404 }],
  ['get', '/v1/actionalias/{ref_or_id}', { path: () => '/v1/actionalias/default.listed' }],
  ['get', '/v1/actionalias/{ref_or_id}', { status: 404 }],
  ['put', '/v1/actionalias/{ref_or_id}', { path: () => '/v1/actionalias/default.listed', body: alias }],
  ['put', '/v1/actionalias/{ref_or_id}', { body: alias, status: 404 }],
  ['delete', '/v1/actionalias/{ref_or_id}', { path: () => '/v1/actionalias/default.listed', status: 204 }],
  ['delete', '/v1/actionalias/{ref_or_id}', { status: 404 }],
  ['get', '/v1/runnertypes', {}],
  ['get', '/v1/runnertypes/{name_or_id}', { path: () => '/v1/runnertypes/noop' }],
  ['put', '/v1/runnertypes/{name_or_id}', { path: () => '/v1/runnertypes/noop', body: { enabled: true } }],
  ['put', '/v1/runnertypes/{name_or_id}', { path: () => '/v1/runnertypes/noop', body: { enabled: 1 }, status: 400 }],
  ['post', '/v1/executions', { body: { action: 'core.noop' }, status: 201 }],
  ['post', '/v1/executions', { body: { action: 'core.unheard_of' }, status: 400 }],
  ['get', '/v1/executions', {}],
  ['get', '/v1/executions', { path: () => '/v1/executions?include_attributes=id,action.ref,result' }],
  ['get', '/v1/executions', { path: () => '/v1/executions?exclude_attributes=status,result' }],
  ['get', '/v1/executions', { path: () => '/v1/executions?output=o&include_matches=2' }],
  ['get', '/v1/executions', { path: () => '/v1/executions?output=o&sort=id', status: 400 }],
  ['get', '/v1/executions/views/filters', {}],
  ['get', '/v1/executions/{id}', {}],
  ['get', '/v1/executions/{id}', { path: () => '/v1/executions/last?include_attributes=log' }],
  ['delete', '/v1/executions/{id}', {}],
  ['put', '/v1/executions/{id}', { body: { status: 'failed' }, status: 400 }],
  ['get', '/v1/executions/{id}/output', {}],
  ['get', '/v1/executions/{id}/output/lines', {}],
  ['get', '/v1/executions/{id}/output/lines', { path: () => `/v1/executions/${execution}/output/lines?from=-1` }],
  [
    'get',
    '/v1/executions/{id}/output/lines',
    { path: () => `/v1/executions/${execution}/output/lines?from=0`, status: 400 },
  ],
  ['get', '/v1/executions/{id}/output/search', { path: () => `/v1/executions/${execution}/output/search?query=i` }],
  [
    'get',
    '/v1/executions/{id}/output/search',
    { path: () => `/v1/executions/${execution}/output/search?query=(&is_pattern=1`, status: 400 },
  ],
  ['get', '/v1/executions/{id}/result', {}],
  ['get', '/v1/executions/{id}/attribute/{name}', { path: () => `/v1/executions/${execution}/attribute/result` }],
  ['get', '/v1/executions/{id}/attribute/{name}', { path: () => `/v1/executions/${execution}/attribute/status` }],
  [
    'get',
    '/v1/executions/{id}/attribute/{name}',
    { path: () => `/v1/executions/${execution}/attribute/x`, status: 400 },
  ],
  ['get', '/v1/executions/{id}/children', {}],
  ['get', '/v1/executions/{id}/workflow', { path: () => `/v1/executions/${workflow}/workflow` }],
  ['get', '/v1/executions/{id}/workflow', { path: () => `/v1/executions/${workflow}/workflow?limit=0`, status: 400 }],
  ['get', '/v1/executions/{id}/workflow', { status: 404 }],
  ['get', '/v1/executions/{id}/workflow/graph', { path: () => `/v1/executions/${workflow}/workflow/graph` }],
  ['get', '/v1/executions/{id}/workflow/graph', { status: 404 }],
  ['get', '/v1/executions/{id}/workflow/explain', { path: () => `/v1/executions/${workflow}/workflow/explain` }],
  ['get', '/v1/executions/{id}/workflow/explain', { status: 404 }],
  ['post', '/v1/executions/{id}/re_run', { body: {}, status: 201 }],
  ['get', '/stream/v1/executions/{id}/output', {}],
  ['post', '/v1/triggertypes', { body: { name: 'listed', payload_schema: { type: 'object' } }, status: 201 }],
  ['post', '/v1/triggertypes', { body: { name: 'listed' }, status: 409 }],
  ['post', '/v1/triggertypes', { body: { name: 'x', pack: 'core' }, status: 400 }],
  ['get', '/v1/triggertypes', {}],
  ['get', '/v1/triggertypes', { path: () => '/v1/triggertypes?include_attributes=name&limit=1' }],
  ['get', '/v1/triggertypes/{ref_or_id}', { path: () => '/v1/triggertypes/core.svc.webhook' }],
  ['get', '/v1/triggertypes/{ref_or_id}', { status: 404 }],
  ['put', '/v1/triggertypes/{ref_or_id}', { path: () => '/v1/triggertypes/default.listed', body: {} }],
  ['put', '/v1/triggertypes/{ref_or_id}', { path: () => '/v1/triggertypes/core.svc.webhook', body: {}, status: 400 }],
  ['delete', '/v1/triggertypes/{ref_or_id}', { path: () => '/v1/triggertypes/default.listed', status: 204 }],
  ['get', '/v1/triggers', {}],
  ['post', '/v1/triggers', { body: { type: 'core.svc.webhook', parameters: { url: 'listed' } }, status: 201 }],
  ['post', '/v1/triggers', { body: { type: 'core.svc.webhook' }, status: 400 }],
  [
    'post',
    '/v1/triggers',
    {
      body: { name: 'weekly', type: 'core.svc.IntervalTimer', parameters: { unit: 'weeks', delta: 1 } },
      status: 201,
    },
  ],
  ['get', '/v1/webhooks', {}],
  ['get', '/v1/webhooks/{hook}', { path: () => '/v1/webhooks/listed' }],
  ['get', '/v1/webhooks/{hook}', { path: () => '/v1/webhooks/not/listed', status: 404 }],
  ['post', '/v1/webhooks/{hook}', { path: () => '/v1/webhooks/listed', body: [{ a: 1 }], status: 202 }],
  [
    'post',
    '/v1/webhooks/{hook}',
    { path: () => '/v1/webhooks/listed', body: {}, headers: () => ({ Prefer: 'wait=5' }) },
  ],
  ['post', '/v1/webhooks/{hook}', { path: () => '/v1/webhooks/listed', body: 'x', status: 400 }],
  ['post', '/v1/webhooks/{hook}', { path: () => '/v1/webhooks/not/listed', body: {}, status: 404 }],
  ['get', '/v1/timers', {}],
  ['get', '/v1/timers', { path: () => '/v1/timers?timer_type=x', status: 400 }],
  ['get', '/v1/timers/{ref_or_id}', { path: () => '/v1/timers/core.weekly' }],
  ['get', '/v1/timers/{ref_or_id}', { status: 404 }],
  ['get', '/v1/timers/{ref_or_id}', { path: () => '/v1/timers/core.weekly?next_runs=99', status: 400 }],
  ['post', '/v1/timers/preview', { body: { type: 'core.svc.CronTimer', parameters: { cron: '@daily' } } }],
  ['post', '/v1/timers/preview', { body: { type: 'core.svc.CronTimer', parameters: { cron: 'x' } }, status: 400 }],
  ['get', '/v1/triggers/{id}', { status: 404 }],
  ['put', '/v1/triggers/{id}', { body: {}, status: 404 }],
  ['delete', '/v1/triggers/{id}', { status: 404 }],
  ['get', '/v1/triggerinstances', {}],
  ['get', '/v1/triggerinstances', { path: () => '/v1/triggerinstances?include_attributes=status&limit=1' }],
  ['get', '/v1/triggerinstances', { path: () => '/v1/triggerinstances?timestamp_gt=x', status: 400 }],
  ['get', '/v1/triggerinstances/{id}', { status: 404 }],
  ['post', '/v1/triggerinstances/{id}/re_emit', { status: 404 }],
  ['post', '/v1/actions', { body: action, status: 201 }],
  ['post', '/v1/actions', { body: action, status: 409 }],
  ['post', '/v1/actions', { body: { ...action, pack: 'core' }, status: 400 }],
  [
    'post',
    '/v1/actions/{ref_or_id}/clone',
    { path: () => '/v1/actions/listed.listed/clone', body: { dest_pack: 'listed', dest_action: 'copy' }, status: 201 },
  ],
  [
    'post',
    '/v1/actions/{ref_or_id}/clone',
    { path: () => '/v1/actions/listed.none/clone', body: { dest_pack: 'listed', dest_action: 'x' }, status: 404 },
  ],
  ['put', '/v1/actions/{ref_or_id}', { path: () => '/v1/actions/listed.listed', body: action }],
  ['put', '/v1/actions/{ref_or_id}', { path: () => '/v1/actions/listed.listed', body: {}, status: 400 }],
  ['put', '/v1/actions/{ref_or_id}', { path: () => '/v1/actions/listed.none', body: action, status: 404 }],
  [
    'put',
    '/v1/actions/{ref_or_id}',
    { path: () => '/v1/actions/listed.listed', body: action, headers: () => ({ 'If-Match': '"x"' }), status: 412 },
  ],
  [
    'delete',
    '/v1/actions/{ref_or_id}',
    { path: () => '/v1/actions/listed.listed', body: { remove_files: true }, status: 204 },
  ],
  ['delete', '/v1/actions/{ref_or_id}', { path: () => '/v1/actions/listed.none', status: 404 }],
  ['get', '/v1/inquiries', {}],
  ['get', '/v1/inquiries', { path: () => '/v1/inquiries?limit=0', status: 400 }],
  ['get', '/v1/inquiries/{id}', { path: () => `/v1/inquiries/${inquiry}` }],
  ['get', '/v1/inquiries/{id}', { status: 400 }],
  ['get', '/v1/inquiries/{id}', { path: () => `/v1/inquiries/${unknownId}`, status: 404 }],
  ['put', '/v1/inquiries/{id}', { body: { response: {} }, status: 400 }],
  ['put', '/v1/inquiries/{id}', { path: () => `/v1/inquiries/${unknownId}`, body: { response: {} }, status: 404 }],
  ['put', '/v1/inquiries/{id}', { path: () => `/v1/inquiries/${inquiry}`, body: { response: { continue: true } } }],
  ['post', '/v1/rules', { body: rule, status: 201 }],
  ['post', '/v1/rules', { body: rule, status: 409 }],
  ['post', '/v1/rules', { body: { ...rule, criteria: { a: { type: 'eq' } } }, status: 400 }],
  ['get', '/v1/rules', {}],
  ['get', '/v1/rules', { path: () => '/v1/rules?exclude_attributes=criteria&limit=1' }],
  ['get', '/v1/rules', { path: () => '/v1/rules?include_attributes=action.ref,trigger.type' }],
  ['get', '/v1/rules', { path: () => '/v1/rules?limit=0', status: 400 }],
  ['get', '/v1/rules/views', {}],
  ['get', '/v1/rules/{ref_or_id}', { path: () => '/v1/rules/default.listed' }],
  ['get', '/v1/rules/{ref_or_id}', { status: 404 }],
  ['get', '/v1/rules/views/{ref_or_id}', { path: () => '/v1/rules/views/default.listed' }],
  ['get', '/v1/rules/views/{ref_or_id}', { status: 404 }],
  ['get', '/v1/jobs', {}],
  ['get', '/v1/jobs/{ref_or_id}', { path: () => '/v1/jobs/default.listed' }],
  ['get', '/v1/jobs/{ref_or_id}', { status: 404 }],
  ['put', '/v1/rules/{ref_or_id}', { path: () => '/v1/rules/default.listed', body: { ...rule, tags: [] } }],
  ['put', '/v1/rules/{ref_or_id}', { path: () => '/v1/rules/default.listed', body: {}, status: 400 }],
  ['put', '/v1/rules/{ref_or_id}', { body: rule, status: 404 }],
  ['post', '/v1/rules/test', { body: { rule_ref: 'default.listed', trigger_instance: event } }],
  ['post', '/v1/rules/test', { body: { rule: { ...rule, criteria: never }, trigger_instance: event } }],
  [
    'post',
    '/v1/workflows/inspect',
    { path: () => '/v1/workflows/inspect?hints=true', body: { tasks: { first: { next: [{ do: 'firsd' }] } } } },
  ],
  [
    'post',
    '/v1/workflows/graph',
    { body: { tasks: { a: { next: [{ publish: [{ x: 1 }], do: 'b' }] }, b: { join: 1 } } } },
  ],
  ['post', '/v1/workflows/graph', { body: { chain: [{ name: 'a', ref: 'core.noop', 'on-failure': 'a' }] } }],
  ['post', '/v1/workflows/graph', { body: { tasks: 1 }, status: 400 }],
  ['post', '/v1/workflows/inspect', { body: { tasks: { a: { action: '<% ctx(x) %>' } } } }],
  ['post', '/v1/workflows/inspect', { path: () => '/v1/workflows/inspect?action=a.b', body: {}, status: 400 }],
  ['post', '/v1/rules/test', { body: {}, status: 400 }],
  ['post', '/v1/rules/test', { body: { rule_ref: 'a.b', trigger_instance: event }, status: 404 }],
  ['delete', '/v1/rules/{ref_or_id}', { path: () => '/v1/rules/default.listed', status: 204 }],
  ['delete', '/v1/rules/{ref_or_id}', { status: 404 }],
  ['get', '/v1/criteriaoperators', {}],
  ['get', '/v1/ruletypes', {}],
  ['get', '/v1/ruletypes/{id}', { path: () => '/v1/ruletypes/standard' }],
  ['get', '/v1/ruletypes/{id}', { status: 404 }],
  ['get', '/v1/ruleenforcements', { path: () => '/v1/ruleenforcements?enforced_at_gt=x', status: 400 }],
  ['get', '/v1/ruleenforcements/{id}', { status: 404 }],
  ['get', '/v1/ruleenforcements/views/{id}', { status: 404 }],
  ['get', '/v1/triggerinstances/{id}/explain', { status: 404 }],
  ['post', '/v1/policies', { body: policy, status: 201 }],
  ['post', '/v1/policies', { body: policy, status: 409 }],
  ['post', '/v1/policies', { body: { ...policy, policy_type: 'action.none' }, status: 400 }],
  ['get', '/v1/policies', {}],
  ['get', '/v1/policies', { path: () => '/v1/policies?include_attributes=resource_ref&limit=1' }],
  ['get', '/v1/policies', { path: () => '/v1/policies?limit=0', status: 400 }],
  ['get', '/v1/policies/{ref_or_id}', { path: () => '/v1/policies/default.listed' }],
  ['get', '/v1/policies/{ref_or_id}', { status: 404 }],
  ['put', '/v1/policies/{ref_or_id}', { path: () => '/v1/policies/default.listed', body: policy }],
  ['put', '/v1/policies/{ref_or_id}', { path: () => '/v1/policies/default.listed', body: {}, status: 400 }],
  ['put', '/v1/policies/{ref_or_id}', { body: policy, status: 404 }],
  ['delete', '/v1/policies/{ref_or_id}', { path: () => '/v1/policies/default.listed', status: 204 }],
  ['delete', '/v1/policies/{ref_or_id}', { status: 404 }],
  ['get', '/v1/policytypes', {}],
  ['get', '/v1/policytypes', { path: () => '/v1/policytypes?exclude_attributes=parameters&sort=-name' }],
  ['get', '/v1/policytypes/{ref_or_id}', { path: () => '/v1/policytypes/action.concurrency.attr' }],
  ['get', '/v1/policytypes/{ref_or_id}', { status: 404 }],
  ['get', '/v1', {}],
  ['get', '/healthz', {}],
  ['get', '/readyz', {}],
  ['get', '/v1/status', {}],
  ['get', '/v1/status/history', {}],
  ['get', '/v1/status/history', { path: () => '/v1/status/history?step=0', status: 400 }],
  ['get', '/v1/openapi.json', {}],
  ['get', '/v1/metrics', {}],
  ['get', '/v1/docs', {}],
]

describe('recorded answers fit the document', () => {
  const seen = new Set<string>()

  it.each(samples)('openapi: %s %s %j', async (method, path, sample) => {
    const operation = document.paths[path]?.[method]
    expect(operation).toBeDefined()
    if (operation === undefined) return
    const answer = await request(method, sample.path?.() ?? filled(path), sample.body, sample.headers?.())
    expect([answer.text.slice(0, 300), answer.status]).toEqual([expect.any(String), sample.status ?? 200])
    holdToDocument(operation, answer)
    seen.add(`${method} ${path}`)
  })

  it('openapi: a trace fits, in a list and alone, whole and in part', async () => {
    const list = document.paths['/v1/traces']?.['get']
    const one = document.paths['/v1/traces/{id}']?.['get']
    const members = document.paths['/v1/traces/{id}/components']?.['get']
    if (list === undefined || one === undefined || members === undefined) throw new Error('not listed')
    const found = await request('get', `/v1/traces?execution=${execution}`)
    const [trace] = JSON.parse(found.text) as { id: string }[]
    expect(trace).toBeDefined()
    holdToDocument(list, found)
    for (const query of ['?include_attributes=rules', '?limit=0']) {
      holdToDocument(list, await request('get', `/v1/traces${query}`))
    }
    for (const rest of [
      trace?.id,
      `${trace?.id}?exclude_attributes=uid`,
      `${trace?.id}?include_attributes=x`,
      unknownId,
    ]) {
      holdToDocument(one, await request('get', `/v1/traces/${rest}`))
    }
    for (const query of ['', '?limit=1', '?sort_desc=1', '?limit=0']) {
      holdToDocument(members, await request('get', `/v1/traces/${trace?.id}/components${query}`))
    }
    holdToDocument(members, await request('get', '/v1/traces/none/components'))
    seen.add('get /v1/traces').add('get /v1/traces/{id}').add('get /v1/traces/{id}/components')
  })

  it('openapi: answers that change something fit too', async () => {
    const waiting = await request('post', '/v1/executions', { action: 'core.noop', delay: 60_000 })
    const { id } = JSON.parse(waiting.text) as { id: string }
    const put = document.paths['/v1/executions/{id}']?.['put']
    const remove = document.paths['/v1/executions/{id}']?.['delete']
    if (put === undefined || remove === undefined) throw new Error('not listed')
    holdToDocument(put, await request('put', `/v1/executions/${id}`, { status: 'canceled' }))
    holdToDocument(remove, await request('delete', `/v1/executions/${id}`))

    const revoke = document.paths['/auth/v1/tokens/{token}']?.['delete']
    const signOut = document.paths['/auth/v1/tokens/current']?.['delete']
    if (revoke === undefined || signOut === undefined) throw new Error('not listed')
    const spare = JSON.parse((await login()).text) as { id: string }
    const answer = await request('delete', `/auth/v1/tokens/${spare.id}`)
    expect(answer.status).toBe(204)
    holdToDocument(revoke, answer)

    const { token } = JSON.parse((await login()).text) as { token: string }
    const headers = { 'X-Auth-Token': token }
    const signedOut = await send(server.urls.api, { method: 'DELETE', path: '/auth/v1/tokens/current', headers })
    expect(signedOut.status).toBe(204)
    holdToDocument(signOut, signedOut)
    seen.add('delete /auth/v1/tokens/current')
  })

  it('openapi: an API key from its making to its end', async () => {
    const made = await request('post', '/v1/apikeys', { expires_at: '2100-01-01T00:00:00Z' })
    const { id, key } = JSON.parse(made.text) as { id: string; key: string }
    const operationsOnOne = document.paths['/v1/apikeys/{id_or_key}'] ?? {}
    for (const [method, name, status, body] of [
      ['get', key, 200],
      ['put', id, 200, { enabled: false }],
      ['put', id, 400, { key_hash: 'x' }],
      ['delete', id, 204],
    ] as const) {
      const operation = operationsOnOne[method]
      if (operation === undefined) throw new Error('not listed')
      const answer = await request(method, `/v1/apikeys/${name}`, body)
      expect([method, answer.status]).toEqual([method, status])
      holdToDocument(operation, answer)
    }
  })

  it('openapi: a trigger and a trigger instance from their making to their end', async () => {
    const at = (path: string, method: string): Operation => {
      const operation = document.paths[path]?.[method]
      if (operation === undefined) throw new Error('not listed')
      return operation
    }
    const made = await request('post', '/v1/triggers', { type: 'core.svc.webhook', parameters: { url: 'shortly' } })
    const { id } = JSON.parse(made.text) as { id: string }
    const listed = await request('get', '/v1/triggerinstances?limit=1')
    const [instance] = JSON.parse(listed.text) as [{ id: string }]
    for (const [path, method, of, status, body] of [
      ['/v1/triggers/{id}', 'get', id, 200],
      ['/v1/triggers/{id}', 'put', id, 200, { description: 'new' }],
      ['/v1/triggers/{id}', 'put', id, 400, { parameters: {} }],
      ['/v1/triggers/{id}', 'delete', id, 204],
      ['/v1/triggerinstances/{id}', 'get', instance.id, 200],
      ['/v1/triggerinstances/{id}/re_emit', 'post', instance.id, 200],
    ] as const) {
      const answer = await request(method, path.replace('{id}', of), body)
      expect([method, path, answer.status]).toEqual([method, path, status])
      holdToDocument(at(path, method), answer)
    }
  })

  it('openapi: the headers of a webhook, and those of its answers', async () => {
    const operation = document.paths['/v1/webhooks/{hook}']?.['post']
    if (operation === undefined) throw new Error('not listed')
    const made = await request('post', '/v1/triggers', { type: 'core.svc.webhook', parameters: { url: 'headers' } })
    const used = { 'Svc-Trace-Tag': 'of-the-document', Prefer: 'wait=5', 'Idempotency-Key': 'of-the-document' }
    expect(operation.parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name)).toEqual(
      expect.arrayContaining(Object.keys(used)),
    )
    await request('post', '/v1/webhooks/headers', {}, used)
    const answer = await request('post', '/v1/webhooks/headers', {}, used)
    const [trace] = JSON.parse((await request('get', '/v1/traces?trace_tag=of-the-document')).text) as [{ id: string }]
    expect(answer.headers['svc-trace-id']).toBe(trace.id)
    const declared = Object.keys(declaredAnswer(operation, answer.status)?.headers ?? {})
    expect(declared.map((name) => name.toLowerCase()).toSorted()).toEqual(
      Object.keys(answer.headers)
        .filter((name) => /^(svc-|location$|idempotent-|preference-)/.test(name))
        .toSorted(),
    )
    await request('delete', `/v1/triggers/${(JSON.parse(made.text) as { id: string }).id}`)
  })

  it('openapi: an enforced rule, a failed one, and why', async () => {
    for (const [name, ref] of [
      ['good', 'core.noop'],
      ['bad', 'core.nope'],
    ]) {
      await request('post', '/v1/rules', { ...rule, name, enabled: true, action: { ref } })
    }
    await request('post', '/v1/webhooks/svc', event)
    const enforced = await waitFor('the enforcements', async () => {
      const { text } = await request('get', '/v1/ruleenforcements?sort=rule_ref')
      const found = JSON.parse(text) as { id: string; trigger_instance_id: string }[]
      return found.length === 2 && found
    })
    const [bad, good] = enforced
    if (bad === undefined || good === undefined) throw new Error('too few')
    for (const [path, address] of [
      ['/v1/ruleenforcements', '/v1/ruleenforcements'],
      ['/v1/ruleenforcements', '/v1/ruleenforcements?include_attributes=rule.ref'],
      ['/v1/ruleenforcements/views', '/v1/ruleenforcements/views'],
      ['/v1/ruleenforcements/{id}', `/v1/ruleenforcements/${bad.id}`],
      ['/v1/ruleenforcements/{id}', `/v1/ruleenforcements/${good.id}`],
      ['/v1/ruleenforcements/views/{id}', `/v1/ruleenforcements/views/${bad.id}`],
      ['/v1/ruleenforcements/views/{id}', `/v1/ruleenforcements/views/${good.id}`],
      ['/v1/triggerinstances/{id}/explain', `/v1/triggerinstances/${good.trigger_instance_id}/explain`],
    ] as const) {
      const operation = document.paths[path]?.['get']
      if (operation === undefined) throw new Error('not listed')
      const answer = await request('get', address)
      expect([address, answer.status]).toEqual([address, 200])
      holdToDocument(operation, answer)
      seen.add(`get ${path}`)
    }
  })

  it('openapi: a key of the datastore from its making to its end', async () => {
    const one = '/v1/keys/{name}'
    const body = { name: 'k', value: 'x' }
    for (const [path, method, query, status, sent] of [
      [one, 'put', '', 200, { ...body, secret: true, ttl: 1000, description: 'for the document' }],
      [one, 'put', '', 400, { ...body, value: 5 }],
      [one, 'put', '', 403, { ...body, scope: 'user', user: 'somebody' }],
      [one, 'get', '?decrypt=true', 200],
      [one, 'get', '?scope=galaxy', 400],
      ['/v1/keys', 'get', '', 200],
      ['/v1/keys', 'get', '?scope=galaxy', 400],
      [one, 'delete', '', 204],
      [one, 'delete', '', 404],
      [one, 'get', '', 404],
      [one, 'put', '?scope=user', 200, body],
      ['/v1/keys', 'get', '?scope=all', 200],
    ] as const) {
      const operation = document.paths[path]?.[method]
      if (operation === undefined) throw new Error('not listed')
      const answer = await request(method, `${path.replace('{name}', 'k')}${query}`, sent)
      expect([path, method, answer.status]).toEqual([path, method, status])
      holdToDocument(operation, answer)
      seen.add(`${method} ${path}`)
    }
  })

  it('openapi: both event streams', async () => {
    const ended = await request('get', `/stream/v1/executions/${execution}/output`)
    expect(ended.text).toContain('EOF')
    const controller = new AbortController()
    const response = await fetch(`${server.urls.api}/stream/v1/stream`, {
      headers: { 'X-Auth-Token': token },
      signal: controller.signal,
    })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=UTF-8'])
    controller.abort()
    seen.add('get /stream/v1/stream')
  })

  it('openapi: the documentation page, its content security policy and its files', async () => {
    const operation = document.paths['/v1/docs/{file}']?.['get']
    if (operation === undefined) throw new Error('not listed')
    // No credential: a browser has none here.
    const page = await send(server.urls.api, { path: '/v1/docs' })
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=UTF-8'])
    const policy = String(page.headers['content-security-policy'])
    expect(policy).toMatch(/default-src 'none'.*script-src 'self'/)
    expect(policy).not.toMatch(/script-src[^;]*unsafe/)
    const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
    expect(files.length).toBeGreaterThan(1)
    for (const path of files) {
      const file = await send(server.urls.api, { path })
      expect([path, file.status]).toEqual([path, 200])
      expect(file.headers['content-type']).toMatch(path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/)
      expect(file.bytes.length).toBeGreaterThan(50)
    }
    expect(page.text).not.toMatch(/<script>|https?:\/\//)
    for (const name of ['nothing.js', '..%2fcli.js', '__proto__', 'LICENSE']) {
      const answer = await send(server.urls.api, { path: `/v1/docs/${name}` })
      expect([name, answer.status]).toEqual([name, 404])
      holdToDocument(operation, answer)
    }
    seen.add('get /v1/docs/{file}')
  })

  it('openapi: the files of the web client', async () => {
    const operation = document.paths['/v1/ui/{file}']?.['get']
    if (operation === undefined) throw new Error('not listed')
    for (const [name, status] of [
      ['index.html', 200],
      ['nothing.js', 404],
    ] as const) {
      const answer = await send(server.urls.api, { path: `/v1/ui/${name}` })
      expect([name, answer.status]).toEqual([name, status])
      holdToDocument(operation, answer)
    }
    seen.add('get /v1/ui/{file}')
  })

  it('openapi: without a credential every route that is not public answers 401 as declared', async () => {
    for (const [method, path, operation] of operations()) {
      if (isPublic(operation)) continue
      const answer = await send(server.urls.api, { method: method.toUpperCase(), path: filled(path) })
      expect([method, path, answer.status]).toEqual([method, path, 401])
      holdToDocument(operation, answer)
    }
  })

  it('openapi: numbers and booleans of the query are checked as declared', async () => {
    let checked = 0
    for (const [method, path, operation] of operations()) {
      const required = operation.parameters.filter(
        ({ in: place, required: isRequired }) => place === 'query' && isRequired,
      )
      const needed = required.map(({ name }) => `${name}=x&`).join('')
      for (const { name, in: place, schema } of operation.parameters) {
        if (place !== 'query' || !['integer', 'number', 'boolean'].includes(schema.type)) continue
        const answer = await request(
          method,
          `${filled(path)}?${needed}${name}=wrong`,
          operation.requestBody && { action: 'x', status: 'failed' },
        )
        expect([method, path, name, answer.status]).toEqual([method, path, name, 400])
        expect((JSON.parse(answer.text) as ErrorAnswer).faultstring).toContain(`"${name}"`)
        holdToDocument(operation, answer)
        checked += 1
      }
    }
    expect(checked).toBeGreaterThan(10)
  })

  it('openapi: bodies that are too large or no JSON are refused as declared', async () => {
    for (const [method, path, operation] of operations()) {
      if (operation.requestBody === undefined) continue
      const credential =
        operation.security?.some((requirement) => 'basic' in requirement) === true ? { Authorization: basic() } : {}
      for (const [body, status] of [
        [' '.repeat(20_001), 413],
        ['{', 400],
      ] as const) {
        const answer = await request(method, filled(path), body, credential)
        expect([method, path, answer.status]).toEqual([method, path, status])
        holdToDocument(operation, answer)
      }
    }
  })

  it('openapi: no operation was left out', () => {
    expect(
      operations()
        .map(([method, path]) => `${method} ${path}`)
        .filter((name) => !seen.has(name)),
    ).toEqual([])
  })
})
