/** In whose name the templates of an execution read the datastore (contract 02, 2.6). */
import type { Scope } from './permissions.ts'

/** @param author who wrote the templates; absent: whoever made the action, who has no rights to be looked at */
export function readerOf(
  { id, context, user }: { id: string; context: Record<string, unknown>; user: string },
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

/** In whose name templates read the datastore. */
export interface TemplateReader {
  /** Who must be allowed to view each item; `svckv.user` holds this user's own. */
  user: string
  /** What the credential behind it is limited to. */
  scopes?: readonly Scope[]
  /** Who wrote the template, when that is somebody else: this user must be allowed as well. */
  author?: string
  /** For which execution, if for one: for the audit log. */
  executionId?: string
}
