import { checkDraft4 } from '../lib/schema/index.ts'
import type { Runner, RunResult } from './runner.ts'

export const inquirerName = 'inquirer'

/** A hundred years, in minutes. */
const MAX_TTL = 52_560_000

const defaultSchema = {
  title: 'response_data',
  type: 'object',
  properties: {
    continue: { type: 'boolean', description: 'Whether to go on.', required: true },
  },
}

/** Asks a question and waits for the response without holding a slot (contract 08, 8.15; 03, 3.6 and 3.9). */
export function createInquirer(): Runner {
  return {
    definition: {
      name: inquirerName,
      description: 'Asks a question. The execution stays pending until a user responds or it times out.',
      enabled: true,
      runner_package: 'inquirer_runner',
      runner_module: 'inquirer_runner',
      runner_parameters: {
        schema: {
          type: 'object',
          description: 'JSON schema of the response.',
          required: true,
          default: defaultSchema,
        },
        roles: {
          type: 'array',
          description: 'Roles that can respond. Empty: every role. Without access control everybody can respond.',
          items: { type: 'string' },
          required: false,
          default: [],
        },
        users: {
          type: 'array',
          description: 'Users that can respond. Empty: all users. With "roles" as well, a user must match both.',
          items: { type: 'string' },
          required: false,
          default: [],
        },
        route: {
          type: 'string',
          description: 'Copied to the trigger core.svc.generic.inquiry, so that rules can choose whom to ask.',
          required: false,
          default: '',
        },
        ttl: {
          type: 'integer',
          description: 'Minutes until the inquiry times out. 0 disables the limit.',
          required: true,
          default: 1440,
          minimum: 0,
          maximum: MAX_TTL,
        },
      },
    },
    run: ({ runnerParameters }) => Promise.resolve(ask(runnerParameters)),
  }
}

function ask({ schema, roles, users, route, ttl }: Record<string, unknown>): RunResult {
  const problem = checkDraft4(schema)
  if (problem !== undefined) {
    const error = `The schema of the response is invalid: ${problem}`
    return { status: 'failed', result: { error, traceback: error } }
  }
  return {
    status: 'pending',
    result: { schema, roles: roles ?? [], users: users ?? [], route: route ?? '', ttl },
    // The parameter schema guarantees an integer.
    ...(typeof ttl === 'number' && ttl > 0 ? { ttlSeconds: ttl * 60 } : {}),
  }
}
