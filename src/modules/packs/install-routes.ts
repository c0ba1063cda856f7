/** Endpoints that begin to install and to remove packs (contract 02, 2.8): each starts an execution and answers with its id. */
import type { ApiRequest, Route } from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'

/**
 * Port: starts an execution in the name of the caller, who needs no right on the action; whoever knows executions provides
 * it.
 */
export type StartExecution = (
  caller: Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>,
  request: { action: string; parameters: Record<string, unknown> },
) => Promise<{ id: string }>

const packs: JsonSchema = {
  type: 'array',
  minItems: 1,
  maxItems: 100,
  items: { type: 'string', minLength: 1, maxLength: 4_096 },
}

const installSchema: JsonSchema = {
  title: 'PackInstallRequest',
  type: 'object',
  required: ['packs'],
  properties: {
    packs: {
      ...packs,
      description:
        'Each the name of a pack that comes with the program, the path of a folder or archive on the machine of the ' +
        'server, or the address of a git repository; then, after `=`, a version, branch, tag or commit.',
    },
    force: {
      type: 'boolean',
      description: 'Install what is made for other versions, and what has problems as far as it can be used.',
    },
    skip_dependencies: { type: 'boolean', description: 'Install without the packs that it needs.' },
  },
}

const uninstallSchema: JsonSchema = {
  title: 'PackUninstallRequest',
  type: 'object',
  required: ['packs'],
  properties: { packs: { ...packs, description: 'References of packs.' } },
}

const answerSchema: JsonSchema = {
  type: 'object',
  required: ['execution_id'],
  properties: { execution_id: { type: 'string', description: 'Of the execution that does it.' } },
}

export function createInstallRoutes(start: StartExecution): Route[] {
  async function answer(request: ApiRequest, action: string, names: readonly string[]): Promise<object> {
    const body = request.body as Record<string, unknown> // has passed its schema
    const given = names.filter((name) => body[name] !== undefined)
    const { id } = await start(request, {
      action,
      parameters: Object.fromEntries(given.map((name) => [name, body[name]])),
    })
    return { execution_id: id }
  }

  return [
    {
      surface: 'api',
      method: 'post',
      path: '/packs/install',
      permission: 'pack_install',
      summary: 'Begins to install packs, or other versions of them.',
      body: installSchema,
      status: 202,
      response: answerSchema,
      failures: [400, 503],
      handler: (request) => answer(request, 'packs.install', ['packs', 'force', 'skip_dependencies']),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/packs/uninstall',
      permission: 'pack_uninstall',
      summary: 'Begins to remove packs.',
      body: uninstallSchema,
      status: 202,
      response: answerSchema,
      failures: [400, 503],
      handler: (request) => answer(request, 'packs.uninstall', ['packs']),
    },
  ]
}
