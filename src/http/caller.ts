import type { LogFields } from '../lib/log/index.ts'
import type { ApiRequest } from './route.ts'

/** Who sends a request, and from where. */
export type Caller = Pick<ApiRequest, 'principal' | 'requestId' | 'remoteAddress'>

/** The caller as log fields of an audit message. */
export function aboutCaller({ principal, requestId, remoteAddress }: Caller): LogFields {
  return { user: principal.user, remote_address: remoteAddress, request_id: requestId }
}
