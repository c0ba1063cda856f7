/** Tells of the tasks of a workflow while svc waits for its end. */
import { once } from 'node:events'
import { segment } from '../connection/client.ts'
import { listIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { readEvents } from '../connection/server-events.ts'
import { readJson } from '../../lib/json/index.ts'
import { attributeOf, printable, type Json } from '../output/print.ts'
import type { Session } from '../session.ts'
import { isFinalRecord, recordStatusOf, shownId, waitingStatuses } from './calls.ts'
import { inquiryAdvice, isOpenInquiry, taskAttributes, taskLabel } from './tasks.ts'

/** A workflow can have 100,000 tasks, and a screen has few lines. */
const MAX_LINES = 200
/** Tasks that may have started before svc follows them. */
const MAX_EARLIER = 50
/** Tasks under way that svc tells apart. */
const MAX_OPEN = 10_000

/**
 * Prints a line on standard error for each start and each end of a task, as long as the stream lasts. It only informs: when
 * the server has no stream for this user, there are no lines.
 *
 * @param id of the workflow's execution
 * @returns ends it
 */
export function followTasks(session: Session, id: string): { stop(): void } {
  const over = new AbortController()
  const teller = createTeller(session, id)
  const follow = async (): Promise<void> => {
    const query = {
      events: 'svc.execution__create,svc.execution__update',
      parent_ids: id,
      include_attributes: taskAttributes,
    }
    const stream = await session.client.openStream('/stream', query, {})
    over.signal.addEventListener('abort', () => stream.destroy())
    if (over.signal.aborted) return void stream.destroy()
    // From its first byte on no event is missed.
    await once(stream, 'readable', { signal: over.signal })
    const earlier = { depth: 1, limit: MAX_EARLIER, include_attributes: taskAttributes }
    const children = await session.client.call('GET', `/executions/${segment(id)}/children`, { query: earlier })
    for (const child of listIn(children)) teller.tell(child)
    for await (const { data } of readEvents(stream)) if (!over.signal.aborted) teller.tell(toObject(readJson(data)))
  }
  follow().catch(() => undefined)
  return { stop: () => over.abort() }
}

/** What has been said of a task last. */
type Said = 'started' | 'waits' | 'ended'

function createTeller(session: Session, workflow: string): { tell(child: Json): void } {
  const said = new Map<string, Said>()
  let lines = 0

  function print(text: string): void {
    lines += 1
    if (lines <= MAX_LINES) session.note(`${text}\n`)
    else if (lines === MAX_LINES + 1)
      session.note(`Further tasks are not shown. To see them, execute:\n svc execution get ${shownId(workflow)}\n`)
  }

  return {
    tell(child) {
      const id = textOrEmpty(child['id'])
      // An older server does not know the filter.
      if (id === '' || textOrEmpty(child['parent']) !== workflow) return
      const status = recordStatusOf(child)
      const label = printable(taskLabel(child) || textOrEmpty(attributeOf(child, 'action.ref')))
      const before = said.get(id)
      if (isFinalRecord(status)) {
        if (before === 'ended') return
        said.delete(id)
        // Only those that the first list has can come a second time.
        if (said.size < MAX_OPEN) said.set(id, 'ended')
        const elapsed = Number(child['elapsed_seconds'] ?? 0)
        print(`Task ${label}: ${status} after ${elapsed.toFixed(1)} s (${id})`)
      } else if (isOpenInquiry(child)) {
        if (before === 'waits') return
        said.set(id, 'waits')
        print(inquiryAdvice(child).trimEnd())
      } else if (before === undefined && !waitingStatuses.has(status) && said.size < MAX_OPEN) {
        said.set(id, 'started')
        print(`Task ${label}: started (${id})`)
      }
    },
  }
}
