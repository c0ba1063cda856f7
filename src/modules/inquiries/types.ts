/** Wire record of contract 08, 8.15. */
import type { JsonSchema } from '../../lib/schema/index.ts'

/** A question that an execution waits with. */
export interface InquiryRecord {
  /** Of its execution. */
  id: string
  /** Of the response. */
  schema: JsonSchema
  /** Who responds needs one of these; empty: none. */
  roles: string[]
  /** Who may respond; empty: everybody. */
  users: string[]
  route: string
  /** Minutes; 0: for ever. */
  ttl: number
}
