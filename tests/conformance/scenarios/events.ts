/** Rules, triggers, webhooks, timers, traces and the datastore. */
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestServer } from '../../helpers/server.ts'

export function eventScenarios(_server: TestServer): Scenario[] {
  return []
}
