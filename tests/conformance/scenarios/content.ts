/** Actions, packs and what else is registered. */
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestServer } from '../../helpers/server.ts'

export function contentScenarios(_server: TestServer): Scenario[] {
  return [
    { command: 'action list', args: () => ['action', 'list', '-p', 'core', '-a', 'ref', 'runner_type'] },
    { command: 'action list', about: 'nothing', args: () => ['action', 'list', '-p', 'nope'] },
    { command: 'action get', args: () => ['action', 'get', 'core.noop'] },
    { command: 'action get', about: 'unknown', args: () => ['action', 'get', 'core.nope', 'core.noop', '-a', 'ref'] },
  ]
}
