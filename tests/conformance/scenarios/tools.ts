/** What the client does alone: help, completion, the manual, versions. */
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestServer } from '../../helpers/server.ts'

export function toolScenarios(_server: TestServer): Scenario[] {
  return []
}
