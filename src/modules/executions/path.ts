/** Which execution a request names. */
import { isId } from '../../core/ids.ts'
import { resourceNotFound } from '../../core/errors.ts'

/** Requests that change an execution name it by its id; only readers may say `last`. @throws RESOURCE_NOT_FOUND */
export function idOf({ params: { id } }: { params: { id: string } }): string {
  if (!isId(id)) throw resourceNotFound(id)
  return id
}
