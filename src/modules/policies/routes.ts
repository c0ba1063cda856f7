/** Endpoints of contract 02, 2.11. */
import { contentNotFound } from '../../core/errors.ts'
import { policyResource, policyTypeResource } from '../../core/permissions.ts'
import {
  arrange,
  contentRoutes,
  idQuery,
  listEndpoint,
  route,
  textFilter,
  type AttributeOptions,
  type QueryParameter,
  type Route,
} from '../../http/index.ts'
import { findPolicyType, policyTypes } from './policy-types.ts'
import type { PolicyService } from './service.ts'
import type { PolicyStore } from './store.ts'
import { PartialPolicy, PartialPolicyType, PolicyRecord, PolicyRequest, PolicyTypeRecord } from './types.ts'

const policyAttributes: AttributeOptions = {
  known: Object.keys(PolicyRecord.properties),
  excludable: ['description', 'parameters'],
  always: ['id', 'ref', 'pack', 'name'],
}
const policyTypeAttributes: AttributeOptions = {
  known: Object.keys(PolicyTypeRecord.properties),
  excludable: ['description', 'parameters'],
  always: ['id', 'ref', 'name'],
}

const filters = {
  pack: { type: 'string', description: 'Only policies of this pack.' },
  name: { type: 'string', description: 'Only policies of this name.' },
  resource_ref: { type: 'string', description: 'Only policies of the action with this reference.' },
  policy_type: { type: 'string', description: 'Only policies of the policy type with this reference.' },
} as const satisfies Record<string, QueryParameter>

interface PolicyRoutesDeps {
  service: PolicyService
  store: Pick<PolicyStore, 'list' | 'count'>
  maxPageSize: number
}

export function createPolicyRoutes(deps: PolicyRoutesDeps): Route[] {
  return [...policyRoutes(deps), ...policyTypeRoutes(deps.maxPageSize)]
}

function policyRoutes({ service, store, maxPageSize }: PolicyRoutesDeps): Route[] {
  return [
    listEndpoint({
      path: '/policies',
      permission: 'policy_list',
      summary: 'Lists policies in the order of pack and name.',
      record: PartialPolicy,
      query: filters,
      page: { defaultLimit: undefined, maxPageSize },
      attributes: policyAttributes,
      async find({ query, page }) {
        const filter = {
          pack: textFilter(query, 'pack'),
          name: textFilter(query, 'name'),
          resource_ref: textFilter(query, 'resource_ref'),
          policy_type: textFilter(query, 'policy_type'),
        }
        const total = store.count(filter)
        const policies = await store.list(filter, page)
        return { records: policies.map((policy) => service.record(policy)), total }
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/policies',
      permission: 'policy_create',
      summary: 'Creates a policy; it takes effect at once.',
      body: PolicyRequest,
      status: 201,
      response: PolicyRecord,
      failures: [400, 403, 409, 503],
      handler: async (request) => service.record(await service.create(request, request.body)),
      answerAgain: (_, id = '') => service.record(service.get(id)),
    }),
    ...contentRoutes({
      path: '/policies',
      record: PolicyRecord,
      request: PolicyRequest,
      resourceOf: policyResource,
      service,
      toRecord: (policy) => service.record(policy),
      get: { permission: 'policy_view', summary: 'Gets one policy.' },
      put: {
        permission: 'policy_modify',
        summary: 'Replaces a policy; it takes effect at once, also for executions that wait because of it.',
      },
      delete: {
        permission: 'policy_delete',
        summary: 'Deletes a policy; executions that wait because of it continue.',
      },
    }),
  ]
}

function policyTypeRoutes(maxPageSize: number): Route[] {
  /** @throws CONTENT_NOT_FOUND */
  function getType({ params }: { params: { ref_or_id: string } }): PolicyTypeRecord {
    const type = findPolicyType(params.ref_or_id)
    if (type === undefined) throw contentNotFound(params.ref_or_id)
    return type.record
  }

  return [
    listEndpoint({
      path: '/policytypes',
      permission: 'policy_type_list',
      summary: 'Lists policy types.',
      record: PartialPolicyType,
      query: {
        resource_type: { type: 'string', description: 'Only policy types for this kind of resource: `action`.' },
        name: { type: 'string', description: 'Only policy types with this name.' },
        ...idQuery,
      },
      page: { defaultLimit: undefined, maxPageSize },
      attributes: policyTypeAttributes,
      sort: ['id', 'name', 'resource_type'],
      find(request) {
        const resourceType = textFilter(request.query, 'resource_type')
        const name = textFilter(request.query, 'name')
        const matching = policyTypes
          .map(({ record }) => record)
          .filter(
            (type) => (resourceType ?? type.resource_type) === type.resource_type && (name ?? type.name) === type.name,
          )
        return arrange(matching, request)
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/policytypes/:ref_or_id',
      permission: 'policy_type_view',
      resource: (request) => policyTypeResource(getType(request).uid),
      summary: 'Gets one policy type.',
      response: PolicyTypeRecord,
      failures: [404],
      handler: getType,
    }),
  ]
}
