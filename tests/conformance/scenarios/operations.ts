/** What operators do: purging. Each asks a server by its address; the control socket is in `10-control-socket`. */
import type { Scenario } from '../../helpers/scenarios.ts'
import { runToEnd, type TestServer } from '../../helpers/server.ts'

export function operationScenarios(server: TestServer): Scenario[] {
  return purgeScenarios(server)
}

function purgeScenarios(server: TestServer): Scenario[] {
  const command = 'purge'
  const old = '--before=2020-01-01T00:00:00Z'
  const runTwo = async (): Promise<void> => {
    for (const cmd of ['true', 'echo two']) await runToEnd(server, { cmd })
  }
  const unstable = [[/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2030-01-01T00:00:00.000000Z']] as const
  return [
    { command, about: 'nothing is that old', args: () => ['purge', 'executions', old] },
    {
      command,
      about: 'everything of an action',
      before: runTwo,
      args: () => ['purge', 'executions', '--older-than', '0s', '--action-ref', 'core.local'],
      unstable,
    },
    {
      command,
      about: 'only counted, as JSON',
      before: () => runToEnd(server, { cmd: 'true' }),
      args: () => ['purge', 'executions', old, '--dry-run', '-j'],
    },
    {
      command,
      about: 'with those that have not ended',
      args: () => ['purge', 'executions', old, '--purge-incomplete'],
    },
    { command, about: 'no time at all', args: () => ['purge', 'executions'] },
    { command, about: 'two times', args: () => ['purge', 'traces', old, '--older-than', '1d'] },
    { command, about: 'no time', args: () => ['purge', 'output', '--before', 'yesterday'] },
    { command, about: 'no duration', args: () => ['purge', 'tokens', '--older-than', '3 days'] },
    { command, about: 'unknown kind', args: () => ['purge', 'rules', old] },
    {
      command,
      about: 'an action for what has none',
      args: () => ['purge', 'traces', old, '--action-ref', 'core.local'],
    },
  ]
}
