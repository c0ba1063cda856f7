import type { Module } from '../../core/module.ts'
import { createInquiryRoutes } from './routes.ts'
import { createInquiryService } from './service.ts'
import type { InquiriesDeps } from './service.ts'

export function createInquiries({ executions, log, rolesOf, settings }: InquiriesDeps): Module {
  const service = createInquiryService({ executions, log, rolesOf, expires: settings.expires })
  return { name: 'inquiries', routes: createInquiryRoutes({ service, maxPageSize: settings.maxPageSize }) }
}

export { inquiriesSettings } from './service.ts'
