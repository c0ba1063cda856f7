/** Endpoints that install and uninstall packs (contract 02, 2.8): each starts an execution and returns its id. */
import { route, type ApiRequest, type Route } from '../../http/index.ts'
import type { Static } from '../../lib/schema/index.ts'
import { PackExecution, PackInstallRequest, PackUninstallRequest } from './types.ts'

/** Port: starts an execution for the caller, who needs no permission for the action. `app.ts` fills it. */
export type StartExecution = (
  caller: Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>,
  request: { action: string; parameters: Record<string, unknown> },
) => Promise<{ id: string }>

export function createInstallRoutes(start: StartExecution): Route[] {
  async function execute(
    caller: Parameters<StartExecution>[0],
    action: string,
    given: Record<string, unknown>,
  ): Promise<Static<typeof PackExecution>> {
    const parameters = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const { id } = await start(caller, { action, parameters })
    return { execution_id: id }
  }

  const answerAgain = (_: unknown, id = ''): Static<typeof PackExecution> => ({ execution_id: id })

  return [
    route({
      surface: 'api',
      method: 'post',
      path: '/packs/install',
      permission: 'pack_install',
      summary: 'Starts an execution that installs packs, or other versions of them.',
      body: PackInstallRequest,
      status: 202,
      response: PackExecution,
      failures: [400, 503],
      handler(request) {
        const { packs, force, skip_dependencies } = request.body
        return execute(request, 'packs.install', { packs, force, skip_dependencies })
      },
      answerAgain,
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/packs/uninstall',
      permission: 'pack_uninstall',
      summary: 'Starts an execution that uninstalls packs.',
      body: PackUninstallRequest,
      status: 202,
      response: PackExecution,
      failures: [400, 503],
      handler: (request) => execute(request, 'packs.uninstall', { packs: request.body.packs }),
      answerAgain,
    }),
  ]
}
