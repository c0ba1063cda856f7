/** Calls that the check and the import both make. */
import type { FileProblem } from '../../lib/text/index.ts'
import { listIn, textOrEmpty, toObject } from '../connection/responses.ts'
import type { Json } from '../output/print.ts'
import type { Session } from '../session.ts'

/** Registering one pack. */
export const REGISTER_MS = 600_000
const PAGE_SIZE = 100

/** Every record of a list, page by page. */
export async function allRecords(session: Session, path: string, query: Record<string, string>): Promise<Json[]> {
  const records: Json[] = []
  for (;;) {
    const answer = await session.client.call('GET', path, {
      query: { ...query, limit: PAGE_SIZE, offset: records.length },
    })
    const page = listIn(answer)
    records.push(...page.map(toObject))
    if (page.length < PAGE_SIZE) return records
  }
}

/** A problem in the answer to a registration. */
export function toProblem({ file, line, key, message }: Json): FileProblem {
  return {
    file: textOrEmpty(file),
    ...(typeof line === 'number' ? { line } : {}),
    ...(typeof key === 'string' ? { key } : {}),
    message: textOrEmpty(message),
  }
}
