/** What operators of the server's own machine use. */
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestServer } from '../../helpers/server.ts'

/** By the control socket. */
const here = { SVC_API_URL: '' }

export function serverScenarios(server: TestServer): Scenario[] {
  return [...statusScenarios(server)]
}

function statusScenarios(server: TestServer): Scenario[] {
  const figures = [
    [/(?<=^version +)\S+/gm, '0.0.0'],
    [/(?<=^pid +)\d+/gm, '4711'],
    [/(?<=^started .* UTC, ).*(?= ago$)/gm, '5 s'],
    [/(?<=^(?:event loop|memory|database|disk|last clean-up) +).*/gm, '…'],
    [/^last clean-up .*\n/gm, ''],
    [/(?<=The last warnings and errors:\n)(?:  .*\n?)*/g, '  …\n'],
  ] as const
  return [
    { command: 'status', args: () => ['status'], unstable: figures },
    {
      command: 'status',
      about: 'by the control socket',
      args: () => ['status', '--config-file', server.configFile],
      env: here,
      unstable: figures,
    },
    {
      command: 'status',
      about: 'no server',
      args: () => ['status', '--config-file', '/dev/null'],
      env: { ...here, SVC_SYSTEM__BASE_PATH: '/nowhere' },
    },
    {
      command: 'status',
      about: 'as JSON',
      args: () => ['status', '-j'],
      // Everything but what it consists of.
      unstable: [
        [/(?<=": )(?:-?\d[\d.e+-]*)/g, '0'],
        [/(?<="version": )".*"/g, '"0.0.0"'],
        [/(?<="problems": \[\n)[^]*?(?=\n    \])/g, '        …'],
        [/(?<="gauges": \{\n)[^}]*?(?=\n    \})/g, '        …'],
      ],
    },
  ]
}
