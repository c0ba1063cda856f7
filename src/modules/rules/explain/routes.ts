/** Endpoints that explain a trigger instance and test a rule. */
import type { Route } from '../../../http/index.ts'
import type { Explain } from './explain.ts'
import { explanationSchema, testRequestSchema, testResultSchema } from '../schemas.ts'
import type { TestRequest } from '../types.ts'
import { triggerResource } from '../../../core/permissions.ts'

export function createExplainRoutes({ explain }: { explain: Explain }): Route[] {
  return [
    {
      surface: 'api',
      method: 'post',
      path: '/rules/test',
      // What is needed depends on which of them are stored: rule_view or rule_create, and trigger_view.
      permission: 'authenticated',
      summary: 'Says whether a rule would match a trigger instance, and with which parameters; runs nothing.',
      body: testRequestSchema,
      response: testResultSchema,
      failures: [400, 403, 404],
      handler: (request) => explain.test(request, request.body as TestRequest), // fits the schema
    },
    {
      surface: 'api',
      method: 'get',
      path: '/triggerinstances/:id/explain',
      permission: 'trigger_view',
      resource: ({ params }) => triggerResource(explain.instance(params['id'] ?? '').trigger_type),
      summary: 'Says for each rule of the trigger why it was enforced, or was not.',
      response: explanationSchema,
      failures: [404],
      handler: (request) => explain.explain(request, request.params['id'] ?? ''),
    },
  ]
}
