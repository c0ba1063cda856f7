/** Endpoints of contract 02, 2.11. */
import { contentNotFound } from '../../core/errors.ts'
import {
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parsePage,
  parseSort,
  slicePage,
  textFilter,
  type ApiRequest,
  type QueryParameter,
  type Route,
} from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { policyRequestSchema } from './definition.ts'
import { findPolicyType, policyTypes } from './policy-types.ts'
import type { PolicyService } from './service.ts'
import type { PolicyStore } from './store.ts'
import type { PolicyDefinition, PolicyTypeRecord } from './types.ts'
import { policyResource, policyTypeResource, type Resource } from '../../core/permissions.ts'

const text: JsonSchema = { type: 'string' }
const object: JsonSchema = { type: 'object' }

const policyProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  pack: text,
  description: text,
  enabled: { type: 'boolean' },
  resource_ref: { ...text, description: 'Reference of the action that it is about.' },
  policy_type: text,
  parameters: object,
  metadata_file: { ...text, description: 'Of a policy that comes with a pack.' },
}

const policySchema: JsonSchema = {
  title: 'Policy',
  type: 'object',
  required: Object.keys(policyProperties).filter((name) => name !== 'metadata_file'),
  properties: policyProperties,
}

const policyTypeProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  resource_type: text,
  description: text,
  enabled: { type: 'boolean' },
  module: text,
  parameters: { type: 'object', additionalProperties: object },
}

const policyTypeSchema: JsonSchema = {
  title: 'PolicyType',
  type: 'object',
  required: Object.keys(policyTypeProperties),
  properties: policyTypeProperties,
}

/** `include_attributes` and `exclude_attributes` leave parts out. */
function listOf(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'array', items: { type: 'object', required: ['id', 'ref'], properties } }
}

const policyAttributes = {
  known: Object.keys(policyProperties),
  excludable: ['description', 'parameters'],
  always: ['id', 'ref', 'pack', 'name'],
}
const policyTypeAttributes = {
  known: Object.keys(policyTypeProperties),
  excludable: ['description', 'parameters'],
  always: ['id', 'ref', 'name'],
}

const filters = {
  pack: { type: 'string', description: 'Only policies of this pack.' },
  name: { type: 'string', description: 'Only policies of this name.' },
  resource_ref: { type: 'string', description: 'Only policies about this action, by its reference.' },
  policy_type: { type: 'string', description: 'Only policies of this type, by its reference.' },
} satisfies Record<string, QueryParameter>

export function createRoutes(deps: {
  service: PolicyService
  store: Pick<PolicyStore, 'list' | 'count'>
  maxPageSize: number
}): Route[] {
  const { service, store, maxPageSize } = deps

  const refOrId = ({ params }: Pick<ApiRequest, 'params'>): string => params['ref_or_id'] ?? ''
  const resourceAt = (request: Pick<ApiRequest, 'params'>): Resource =>
    policyResource(service.get(refOrId(request)).ref)

  function getType(request: Pick<ApiRequest, 'params'>): PolicyTypeRecord {
    const type = findPolicyType(refOrId(request))
    if (type === undefined) throw contentNotFound(refOrId(request))
    return type.record
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/policies',
      permission: 'policy_list',
      summary: 'Lists policies in the order of pack and name.',
      query: { ...filters, ...pageQuery, ...attributeQuery },
      response: listOf(policyProperties),
      failures: [400, 403, 503],
      async handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: undefined, maxPageSize })
        const projection = parseAttributes(query, policyAttributes)
        const filter = {
          pack: textFilter(query, 'pack'),
          name: textFilter(query, 'name'),
          resource_ref: textFilter(query, 'resource_ref'),
          policy_type: textFilter(query, 'policy_type'),
        }
        const total = store.count(filter)
        const policies = await store.list(filter, page)
        const records = policies.map((policy) => projection.apply({ ...service.record(policy) }))
        return listReply(records, pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'post',
      path: '/policies',
      permission: 'policy_create',
      summary: 'Makes a policy; it takes effect at once.',
      body: policyRequestSchema,
      status: 201,
      response: policySchema,
      failures: [400, 403, 409, 503],
      async handler(request) {
        return service.record(await service.create(request, request.body as PolicyDefinition)) // fits the schema
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/policies/:ref_or_id',
      permission: 'policy_view',
      resource: resourceAt,
      summary: 'Gets one policy.',
      response: policySchema,
      failures: [404],
      handler: (request) => service.record(service.get(refOrId(request))),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/policies/:ref_or_id',
      permission: 'policy_modify',
      resource: resourceAt,
      summary: 'Replaces a policy; it takes effect at once, also for executions that wait because of it.',
      body: policyRequestSchema,
      response: policySchema,
      failures: [400, 403, 404, 409, 503],
      async handler(request) {
        const body = request.body as PolicyDefinition // fits the schema
        return service.record(await service.update(request, refOrId(request), body))
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/policies/:ref_or_id',
      permission: 'policy_delete',
      resource: resourceAt,
      summary: 'Deletes a policy; executions that wait because of it go on.',
      status: 204,
      response: {},
      failures: [400, 404, 409, 503],
      async handler(request) {
        await service.delete(request, refOrId(request))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/policytypes',
      permission: 'policy_type_list',
      summary: 'Lists the types of policies.',
      query: {
        resource_type: { type: 'string', description: 'Only types of policies about this kind of resource: `action`.' },
        sort: { type: 'array', description: 'Field names, `-` before a name for descending. Default: `name`.' },
        ...pageQuery,
        ...attributeQuery,
      },
      response: listOf(policyTypeProperties),
      failures: [400, 403],
      handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: undefined, maxPageSize })
        const projection = parseAttributes(query, policyTypeAttributes)
        const resourceType = textFilter(query, 'resource_type')
        const [sort] = parseSort(query['sort'], ['id', 'name', 'resource_type'])
        const matching = policyTypes
          .map(({ record }) => record)
          .filter(({ resource_type: type }) => resourceType === undefined || type === resourceType)
          .sort((a, b) =>
            sort === undefined || a[sort.name] === b[sort.name] ? 0 : a[sort.name] < b[sort.name] ? -1 : 1,
          )
        const inOrder = sort?.descending === true ? matching.toReversed() : matching
        const records = slicePage(inOrder, page).map((record) => projection.apply({ ...record }))
        return listReply(records, pageHeaders(page, matching.length))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/policytypes/:ref_or_id',
      permission: 'policy_type_view',
      resource: (request) => policyTypeResource(getType(request).uid),
      summary: 'Gets one type of policies.',
      response: policyTypeSchema,
      failures: [404],
      handler: getType,
    },
  ]
}
