/** The user with whose permissions templates of an execution read the datastore (contract 02, 2.6). */
import type { Scope } from './permissions.ts'

/** @param author user who wrote the templates; absent: the author of the action, who needs no permissions */
export function readerOf(
  { id, context, user }: { id: string; context: Record<string, unknown>; user: string },
  author?: string,
): TemplateReader {
  const { api_user: apiUser, datastore_user: instead, scopes } = context
  return {
    // Only the server sets it: for a chat user in whose name the caller may not act.
    user: typeof instead === 'string' ? instead : typeof apiUser === 'string' ? apiUser : user,
    executionId: id,
    ...(author === undefined ? {} : { author }),
    // Only the server sets them.
    ...(Array.isArray(scopes) ? { scopes: scopes as NonNullable<TemplateReader['scopes']> } : {}),
  }
}

/** The user with whose permissions templates read the datastore. */
export interface TemplateReader {
  /** Needs the permission to view each item; `svckv.user` holds this user's items. */
  user: string
  /** Scopes of the credential. */
  scopes?: readonly Scope[]
  /** Author of the template, if another user: needs the same permissions. */
  author?: string
  /** For the audit log. */
  executionId?: string
}
