/** In whose name the templates of an execution read the datastore (contract 02, 2.6). */
import type { TemplateReader } from './modules/datastore/types.ts'
import type { Execution } from './modules/executions/types.ts'

/** @param author who wrote the templates; absent: whoever made the action, who has no rights to be looked at */
export function readerOf(
  { id, context, user }: Pick<Execution, 'id' | 'context' | 'user'>,
  author?: string,
): TemplateReader {
  const { api_user: apiUser, scopes } = context
  return {
    user: typeof apiUser === 'string' ? apiUser : user,
    executionId: id,
    ...(author === undefined ? {} : { author }),
    // Only the server sets them.
    ...(Array.isArray(scopes) ? { scopes: scopes as NonNullable<TemplateReader['scopes']> } : {}),
  }
}
