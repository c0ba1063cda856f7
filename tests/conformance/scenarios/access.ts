/** Logging in, API keys, users and roles: on a server with access control. */
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestServer } from '../../helpers/server.ts'

/** Accounts and roles, and the credential of an administrator. */
export function prepareAccess(_basePath: string): Promise<Record<string, string>> {
  return Promise.resolve({})
}

export function accessScenarios(_server: TestServer): Scenario[] {
  return []
}
