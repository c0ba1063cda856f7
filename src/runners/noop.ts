import type { Runner } from './runner.ts'

/** Does nothing, successfully (contract 03, 3.9). */
export function createNoop(): Runner {
  return {
    definition: {
      name: 'noop',
      description: 'Does nothing and succeeds.',
      enabled: true,
      runner_package: 'noop_runner',
      runner_module: 'noop_runner',
      runner_parameters: {},
    },
    run: () => Promise.resolve({ status: 'succeeded', result: { failed: false, succeeded: true, return_code: 0 } }),
  }
}
