/** Endpoints of rule enforcements (contract 05, 5.7). */
import { isolationDenied, resourceNotFound } from '../../../core/errors.ts'
import {
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parsePage,
  type Projection,
  Reply,
  type ApiRequest,
  type Rights,
  type Route,
} from '../../../http/index.ts'
import { isId } from '../../../core/ids.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Executions } from '../../executions/index.ts'
import type { Triggers } from '../../triggers/index.ts'
import { enforcementFilters, parseEnforcementQuery } from './list.ts'
import {
  enforcementAttributes,
  enforcementListSchema,
  enforcementSchema,
  enforcementViewAttributes,
  enforcementViewListSchema,
  enforcementViewSchema,
} from '../schemas.ts'
import { isIsolated } from '../service.ts'
import type { RuleStore } from '../store.ts'
import type { RuleEnforcement, RuleEnforcementView } from '../types.ts'
import {
  executionResource,
  ruleEnforcementResource,
  triggerResource,
  type Resource,
} from '../../../core/permissions.ts'
import type { EnforcementStore } from './store.ts'
import { inOrder } from '../in-order.ts'

const ENFORCEMENTS_LIMIT = 50

/** What views of enforcements show of an execution. */
const executionParts = ['id', 'runner', 'parameters', 'status'] as const

export function createEnforcementRoutes(deps: {
  store: EnforcementStore
  rules: RuleStore
  executions: Pick<Executions, 'find' | 'record'>
  triggers: Triggers
  maxPageSize: number
}): Route[] {
  const { store, rules, executions, triggers, maxPageSize } = deps

  /** @throws RESOURCE_NOT_FOUND; PERMISSION_DENIED with isolation, when its rule is not of the caller */
  function getEnforcement({ params, principal, rights }: Omit<ApiRequest, 'body'>): RuleEnforcement {
    const id = params['id'] ?? ''
    const enforcement = isId(id) ? store.find(id) : undefined
    if (enforcement === undefined) throw resourceNotFound(id)
    const { rule } = enforcement
    if (isIsolated(rules, enforcement, rights)) throw isolationDenied(principal.user, rule.uid)
    return enforcement
  }

  /**
   * With the parts of what it is about that the caller may view.
   *
   * @param needed what of it is read; undefined: all, payloads of megabytes too
   */
  function toEnforcementView(
    enforcement: RuleEnforcement,
    { rights }: ApiRequest,
    needed?: ReadonlySet<string>,
  ): RuleEnforcementView {
    const { trigger_instance_id: instanceId, execution_id: executionId } = enforcement
    const reads = (part: string): boolean => needed?.has(part) !== false
    const instance = reads('trigger_instance') ? triggers.findInstance(instanceId) : undefined
    const execution = executionId !== undefined && reads('execution') ? executions.find(executionId) : undefined
    const view: RuleEnforcementView = { ...enforcement }
    if (instance !== undefined && rights.may('trigger_view', triggerResource(instance.trigger_type))) {
      const { id, trigger, payload, occurrence_time, status } = instance
      view.trigger_instance = { id, trigger, payload, occurrence_time, status }
    }
    if (execution !== undefined && rights.may('execution_view', executionResource(execution))) {
      const record = executions.record(execution)
      const { action } = record
      view.execution = {
        ...Object.fromEntries(executionParts.filter((name) => name in record).map((name) => [name, record[name]])),
        action: isObject(action) ? { ref: action['ref'], parameters: action['parameters'] } : {},
      }
    }
    return view
  }

  async function listEnforcements(
    request: ApiRequest,
    known: readonly string[],
    present: (
      enforcement: RuleEnforcement,
      request: ApiRequest,
      needed: ReadonlySet<string> | undefined,
    ) => RuleEnforcement,
  ): Promise<Reply> {
    const { query, principal, rights } = request
    const page = parsePage(query, principal, { defaultLimit: ENFORCEMENTS_LIMIT, maxPageSize })
    const excludable = known.filter((name) => name !== 'id')
    const projection: Projection = parseAttributes(query, { known, excludable, always: ['id'] })
    const { filter, sort } = parseEnforcementQuery(query)
    const within = await visibleRefs(store, rules, rights)
    if (within !== undefined) filter.within = within
    const [ids, total] = await Promise.all([store.page(filter, sort, page), store.count(filter)])
    function* records(): Generator<Record<string, unknown>> {
      for (const enforcement of inOrder(ids, (some) => store.findByIds(some))) {
        if (!rights.may('rule_enforcement_view', enforcementResource(enforcement))) continue
        // A rule of somebody else had the same name before.
        if (isIsolated(rules, enforcement, rights)) continue
        yield projection.apply({ ...present(enforcement, request, projection.needed) })
      }
    }
    return listReply(records(), pageHeaders(page, total))
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements',
      permission: 'rule_enforcement_list',
      summary: 'Lists enforcements of the rules that the caller may view, newest first.',
      query: { ...enforcementFilters, ...pageQuery, ...attributeQuery },
      response: enforcementListSchema,
      failures: [400, 403, 503],
      handler: (request) => listEnforcements(request, enforcementAttributes, (enforcement) => ({ ...enforcement })),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/:id',
      permission: 'rule_enforcement_view',
      resource: (request) => enforcementResource(getEnforcement(request)),
      summary: 'Gets one rule enforcement.',
      response: enforcementSchema,
      failures: [404],
      handler: getEnforcement,
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/views',
      permission: 'rule_enforcement_list',
      summary: 'Lists enforcements with their trigger instances and parts of their executions.',
      query: { ...enforcementFilters, ...pageQuery, ...attributeQuery },
      response: enforcementViewListSchema,
      failures: [400, 403, 503],
      handler: (request) => listEnforcements(request, enforcementViewAttributes, toEnforcementView),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/views/:id',
      permission: 'rule_enforcement_view',
      resource: (request) => enforcementResource(getEnforcement(request)),
      summary: 'Gets one enforcement with its trigger instance and parts of its execution.',
      response: enforcementViewSchema,
      failures: [404],
      handler: (request) => toEnforcementView(getEnforcement(request), request),
    },
  ]
}

function enforcementResource({ id, rule }: RuleEnforcement): Resource {
  return ruleEnforcementResource({ id, rule_ref: rule.ref })
}

/** Undefined: of all rules. With isolation everybody has those of own rules alone. */
async function visibleRefs(store: EnforcementStore, rules: RuleStore, rights: Rights): Promise<string[] | undefined> {
  const user = rights.onlyOf
  if (user === undefined && rights.may('rule_enforcement_view')) return undefined
  const own = user === undefined ? undefined : new Set((await rules.keys({ user })).map(({ ref }) => ref))
  return store
    .enforcedRefs()
    .filter((ref) => own?.has(ref) !== false)
    .filter((ref) => rights.may('rule_enforcement_view', ruleEnforcementResource({ id: '', rule_ref: ref })))
}
