/** Inquiries: executions that wait for somebody to respond (contract 08, 8.15). They are rows of executions. */
import type { Log } from '../../log.ts'
import type { Module } from '../../module.ts'
import type { Executions } from '../executions/index.ts'
import { createRoutes } from './routes.ts'
import { createInquiryService } from './service.ts'

export interface InquiriesDeps {
  executions: Pick<Executions, 'find' | 'findWithResult' | 'pending' | 'respond'>
  log: Log
  /** Names of the roles of a user; undefined: access control is off, and everybody counts as an administrator. */
  rolesOf: ((user: string) => string[]) | undefined
  settings: {
    /** `api.max_page_size` */
    maxPageSize: number
    /** `garbagecollector.purge_inquiries` */
    expires: boolean
  }
}

export function createInquiries({ executions, log, rolesOf, settings }: InquiriesDeps): Module {
  const service = createInquiryService({ executions, log, rolesOf, expires: settings.expires })
  return { name: 'inquiries', routes: createRoutes({ service, maxPageSize: settings.maxPageSize }) }
}
