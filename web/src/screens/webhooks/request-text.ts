/** Requests to webhooks as their trigger instances keep them, in short texts. */
import type { TriggerInstanceRecord } from '../../api/records.ts'
import { formatBytes } from '../../components/size.ts'
import { isObject, writeJson } from '../../json.ts'

/** A larger payload is loaded when somebody opens it. */
export const MAX_LISTED_BYTES = 4096

const MAX_LENGTH = 300

/** The body on one line; the whole payload where it is none of a webhook. */
export function excerptOf({
  payload,
  payload_size: size,
}: Pick<TriggerInstanceRecord, 'payload' | 'payload_size'>): string {
  if (payload === undefined) return size === undefined ? '' : formatBytes(size)
  const text = writeJson(partsOf(payload).body)
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text
}

export interface RequestParts {
  headers: readonly (readonly [name: string, value: string])[]
  body: unknown
  /** Id of the trigger instance that this one repeats. */
  original: string | undefined
}

export function partsOf(payload: unknown): RequestParts {
  if (!isObject(payload)) return { headers: [], body: payload, original: undefined }
  const { headers, body, __context: context } = payload
  const original = isObject(context) ? context['original_id'] : undefined
  return {
    headers: isObject(headers) ? Object.entries(headers).map(([name, value]) => [name, textOf(value)] as const) : [],
    body: isObject(headers) && 'body' in payload ? body : payload,
    original: typeof original === 'string' ? original : undefined,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value)
}
