/** Running actions, and what became of that. */
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestServer } from '../../helpers/server.ts'

export function runScenarios(_server: TestServer): Scenario[] {
  return []
}
