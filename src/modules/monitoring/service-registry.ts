/** The service registry: which process does the work of which service (contract 10, 10.6). In svc it is one for all. */
import { hostname } from 'node:os'
import { components } from '../../core/components.ts'
import { namedNotFound, starting } from '../../core/errors.ts'
import { route, type Route } from '../../http/index.ts'
import { stateOf } from './status.ts'
import { ServiceGroups, ServiceMembers, type ServerFacts, type ServiceMember } from './types.ts'

/** Services that StackStorm's registry does not call by the name of their program. */
const otherNames: Readonly<Record<string, string>> = {
  svctimersengine: 'timer_engine',
  svcworkflowengine: 'workflow_engine',
}

/** @param facts undefined until the server knows its modules */
export function createServiceRegistryRoutes(facts: () => ServerFacts | undefined): Route[] {
  function server(): ServerFacts {
    const known = facts()
    if (known === undefined) throw starting()
    return known
  }

  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/service_registry/groups',
      permission: 'administrator',
      summary: 'Lists the services that run.',
      response: ServiceGroups,
      handler: () => ({ groups: groupsOf(server()) }),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/service_registry/groups/:group_id/members',
      permission: 'administrator',
      summary: 'Lists the processes of a service.',
      response: ServiceMembers,
      failures: [404],
      handler({ params: { group_id: group } }) {
        const running = server()
        if (!groupsOf(running).includes(group)) throw namedNotFound(group)
        return { members: [memberOf(group, running)] }
      },
    }),
  ]
}

function groupsOf(server: ServerFacts): string[] {
  return components
    .filter(({ module }) => stateOf(module, server) === 'running')
    .map(({ name }) => otherNames[name] ?? name.replace(/^svc/, ''))
    .toSorted((a, b) => (a < b ? -1 : 1))
}

function memberOf(group: string, server: ServerFacts): ServiceMember {
  const { pid } = process
  const urls: Readonly<Record<string, string>> = server.urls()
  const url = Object.hasOwn(urls, group) ? urls[group] : undefined
  return {
    group_id: group,
    member_id: `${hostname()}_${pid}`,
    capabilities: { hostname: hostname(), pid, ...(url === undefined ? {} : { url }) },
  }
}
