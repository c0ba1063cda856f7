import type { LogFields } from '../lib/log/index.ts'
import type { ApiRequest } from './route.ts'

/** Of a request: who is calling, from where. */
export type Caller = Pick<ApiRequest, 'principal' | 'requestId' | 'remoteAddress'>

/** As audit lines tell it. */
export function aboutCaller({ principal, requestId, remoteAddress }: Caller): LogFields {
  return { user: principal.user, remote_address: remoteAddress, request_id: requestId }
}
