/** Endpoints that explain a trigger instance and test a rule. */
import { route, type Route } from '../../../http/index.ts'
import type { Explain } from './explain.ts'
import { Explanation, RuleTestRequest, RuleTestResult } from '../types.ts'
import { triggerResource } from '../../../core/permissions.ts'

export function createExplainRoutes({ explain }: { explain: Explain }): Route[] {
  return [
    route({
      surface: 'api',
      method: 'post',
      path: '/rules/test',
      // The service checks permissions: rule_view for a stored rule, else rule_create; trigger_view for a stored instance.
      permission: 'authenticated',
      summary: 'Tests a rule with a trigger instance and returns the parameters of its action. Runs nothing.',
      body: RuleTestRequest,
      response: RuleTestResult,
      failures: [400, 403, 404],
      changesNothing: true,
      handler: (request) => explain.test(request, request.body),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/triggerinstances/:id/explain',
      permission: 'trigger_view',
      resource: ({ params }) => triggerResource(explain.instance(params.id).trigger_type),
      summary: 'Explains for each rule of the trigger why svc enforced it, or did not.',
      response: Explanation,
      failures: [400, 404],
      handler: (request) => explain.explain(request, request.params.id),
    }),
  ]
}
