import { compileSecrets, maskSecrets } from '../lib/secrets/index.ts'
import { programStartFailure } from './process/run-command.ts'
import type { Runner } from './runner.ts'

/** Publishes a message on the event stream (contract 03, 3.6 and 3.9; 04, 4.2). */
export function createAnnouncement(): Runner {
  return {
    definition: {
      name: 'announcement',
      description: 'Publishes a message on the event stream.',
      enabled: true,
      runner_package: 'announcement_runner',
      runner_module: 'announcement_runner',
      runner_parameters: {
        experimental: {
          type: 'boolean',
          required: true,
          default: false,
          description: 'Ignored; actions for other versions set it.',
        },
        route: {
          type: 'string',
          default: 'general',
          minLength: 1,
          maxLength: 255,
          description: 'The event is named svc.announcement__<route>.',
        },
      },
    },
    run(context) {
      const { runnerParameters, actionParameters, parameterSchemas } = context
      const route = runnerParameters['route'] ?? 'general'
      // The route becomes part of a line of the stream.
      if (typeof route !== 'string' || !/^[^\s\p{C}]{1,255}$/u.test(route)) {
        return Promise.resolve(
          programStartFailure(
            'The parameter "route" must be 1 to 255 characters without white space and control characters.',
          ),
        )
      }
      const message = maskSecrets(actionParameters, compileSecrets({ properties: parameterSchemas }))
      context.announce(route, message)
      return Promise.resolve({ status: 'succeeded', result: { ...message, output: message } })
    },
  }
}
