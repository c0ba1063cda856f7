/** Which execution a request names. */
import { isId } from '../../core/ids.ts'
import { resourceNotFound } from '../../core/errors.ts'
import type { ApiRequest } from '../../http/index.ts'

/** An id, or the word `last`. */
export function idOrLastOf(request: Pick<ApiRequest, 'params'>): string {
  return request.params['id'] ?? ''
}

/** Requests that change an execution name it by its id. @throws RESOURCE_NOT_FOUND */
export function idOf(request: Pick<ApiRequest, 'params'>): string {
  const id = idOrLastOf(request)
  if (!isId(id)) throw resourceNotFound(id)
  return id
}
