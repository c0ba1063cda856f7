/** Endpoints of rule enforcements (contract 05, 5.7). */
import { isolationDenied, resourceNotFound } from '../../../core/errors.ts'
import {
  listEndpoint,
  route,
  type ApiRequest,
  type AttributeOptions,
  type Found,
  type ListRequest,
  type QueryValue,
  type Rights,
  type Route,
} from '../../../http/index.ts'
import { ImportOutcomes } from '../../../core/import-outcomes.ts'
import { isId } from '../../../core/ids.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Executions } from '../../executions/index.ts'
import { visiblePayload, type Triggers } from '../../triggers/index.ts'
import type { ImportEnforcements } from './import.ts'
import { enforcementFilters, enforcementSortNames, parseEnforcementQuery, type EnforcementSortName } from './list.ts'
import { isIsolated } from '../service.ts'
import type { RuleStore } from '../store.ts'
import {
  enforcementAttributes,
  enforcementViewAttributes,
  PartialRuleEnforcement,
  PartialRuleEnforcementView,
  RuleEnforcement,
  RuleEnforcementImport,
  RuleEnforcementView,
} from '../types.ts'
import {
  executionResource,
  ruleEnforcementResource,
  triggerResource,
  type Resource,
} from '../../../core/permissions.ts'
import type { ReasonFor } from './reason.ts'
import type { EnforcementStore } from './store.ts'
import { inOrder } from '../in-order.ts'

const DEFAULT_LIMIT = 50

/** Attributes of the execution in a view of an enforcement. */
const executionParts = ['id', 'runner', 'parameters', 'status'] as const

export function createEnforcementRoutes(deps: {
  store: EnforcementStore
  rules: RuleStore
  executions: Pick<Executions, 'find' | 'record'>
  triggers: Triggers
  readonly importEnforcements: ImportEnforcements
  readonly reasonFor: ReasonFor
  maxPageSize: number
}): Route[] {
  const { store, rules, executions, triggers, reasonFor, maxPageSize } = deps

  /** @throws RESOURCE_NOT_FOUND; PERMISSION_DENIED under isolation unless the caller owns the rule */
  function getEnforcement({
    params: { id },
    principal,
    rights,
  }: Pick<ApiRequest, 'principal' | 'rights'> & { params: { id: string } }): RuleEnforcement {
    const enforcement = isId(id) ? store.find(id) : undefined
    if (enforcement === undefined) throw resourceNotFound(id)
    const { rule } = enforcement
    if (isIsolated(rules, enforcement, rights)) throw isolationDenied(principal.user, rule.uid)
    return reasonFor(enforcement, rights)
  }

  /**
   * Adds the parts of the trigger instance and execution that the caller can view.
   *
   * @param needed attributes to read; undefined: all, including payloads of megabytes
   */
  function toEnforcementView(
    enforcement: RuleEnforcement,
    { rights }: Pick<ApiRequest, 'rights'>,
    needed?: ReadonlySet<string>,
  ): RuleEnforcementView {
    const { trigger_instance_id: instanceId, execution_id: executionId } = enforcement
    const reads = (part: string): boolean => needed?.has(part) !== false
    const instance = reads('trigger_instance') ? triggers.findInstance(instanceId) : undefined
    const execution = executionId !== undefined && reads('execution') ? executions.find(executionId) : undefined
    const view: RuleEnforcementView = { ...enforcement }
    if (instance !== undefined && rights.may('trigger_view', triggerResource(instance.trigger_type))) {
      const { id, trigger, occurrence_time, status } = instance
      const { payload, withheld } = visiblePayload(rights, instance)
      view.trigger_instance = {
        id,
        trigger,
        payload,
        ...(withheld === undefined ? {} : { payload_reduced: withheld.reason }),
        occurrence_time,
        status,
      }
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

  type Request = Pick<
    ListRequest<Readonly<Record<string, QueryValue>>, {}, EnforcementSortName>,
    'query' | 'rights' | 'page' | 'projection' | 'sort'
  >

  async function findEnforcements<T extends RuleEnforcement>(
    request: Request,
    present: (enforcement: RuleEnforcement, request: Request, needed: ReadonlySet<string> | undefined) => T,
  ): Promise<Found<T>> {
    const { query, rights, page, projection } = request
    const { filter, sort } = parseEnforcementQuery(query, request.sort)
    const within = await visibleRefs(store, rules, rights)
    if (within !== undefined) filter.within = within
    const [ids, total] = await Promise.all([store.page(filter, sort, page), store.count(filter)])
    function* records(): Generator<T> {
      for (const enforcement of inOrder(ids, (some) => store.findByIds(some))) {
        if (!rights.may('rule_enforcement_view', enforcementResource(enforcement))) continue
        // An earlier rule with the same name had another owner.
        if (isIsolated(rules, enforcement, rights)) continue
        yield present(reasonFor(enforcement, rights), request, projection.needed)
      }
    }
    return { records: records(), total }
  }

  const shared = {
    permission: 'rule_enforcement_list',
    query: enforcementFilters,
    page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
    sort: enforcementSortNames,
  } as const

  return [
    listEndpoint({
      path: '/ruleenforcements',
      ...shared,
      summary: 'Lists enforcements of the rules that the caller can view, newest first.',
      record: PartialRuleEnforcement,
      attributes: attributesOf(enforcementAttributes),
      find: (request) => findEnforcements(request, (enforcement) => enforcement),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/ruleenforcements/import',
      permission: 'administrator',
      summary: 'Takes over rule enforcements of another server, to read them here. Nothing follows from them.',
      body: RuleEnforcementImport,
      response: ImportOutcomes,
      failures: [400, 503],
      handler: (request) => deps.importEnforcements(request, request.body),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/:id',
      permission: 'rule_enforcement_view',
      resource: (request) => enforcementResource(getEnforcement(request)),
      summary: 'Gets one rule enforcement.',
      response: RuleEnforcement,
      failures: [404],
      handler: getEnforcement,
    }),
    listEndpoint({
      path: '/ruleenforcements/views',
      ...shared,
      summary: 'Lists enforcements with their trigger instances and parts of their executions.',
      record: PartialRuleEnforcementView,
      attributes: attributesOf(enforcementViewAttributes),
      find: (request) => findEnforcements(request, toEnforcementView),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/views/:id',
      permission: 'rule_enforcement_view',
      resource: (request) => enforcementResource(getEnforcement(request)),
      summary: 'Gets one enforcement with its trigger instance and parts of its execution.',
      response: RuleEnforcementView,
      failures: [404],
      handler: (request) => toEnforcementView(getEnforcement(request), request),
    }),
  ]
}

function attributesOf(known: readonly string[]): AttributeOptions {
  return { known, excludable: known.filter((name) => name !== 'id'), always: ['id'] }
}

function enforcementResource({ id, rule }: RuleEnforcement): Resource {
  return ruleEnforcementResource({ id, rule_ref: rule.ref })
}

/** References of rules whose enforcements the caller can view; undefined: all. Under isolation: only own rules. */
async function visibleRefs(store: EnforcementStore, rules: RuleStore, rights: Rights): Promise<string[] | undefined> {
  const user = rights.onlyOf
  if (user === undefined && rights.may('rule_enforcement_view')) return undefined
  const own = user === undefined ? undefined : new Set((await rules.keys({ user })).map(({ ref }) => ref))
  return store
    .enforcedRefs()
    .filter((ref) => own?.has(ref) !== false)
    .filter((ref) => rights.may('rule_enforcement_view', ruleEnforcementResource({ id: '', rule_ref: ref })))
}
