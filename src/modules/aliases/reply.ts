/** What a chat is told when the execution that it asked for has ended: `result` of the alias, rendered (contract 02, 2.13). */
import { isAppError } from '../../core/errors.ts'
import type { TemplateThread } from '../../core/rendering/index.ts'
import { createPatientRenderer, findTemplates } from '../../core/template-values.ts'
import { writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { cutText } from '../../lib/text/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Execution, ExecutionRecord } from '../executions/types.ts'
import { aliasIdIn } from './execution.ts'
import type { AliasStore } from './store.ts'
import type { ReplyRecord } from './execution-types.ts'
import type { AliasRecord } from './types.ts'

/** UTF-16 units of a result in a reply without a template; the rest is in the execution. */
const MAX_RESULT_CHARS = 3_000
/** Of a rendered template: more than any chat shows. */
const MAX_MESSAGE_CHARS = 100_000

export interface Replies {
  /** @param reader who reads it: renderings take turns @throws QUEUE_FULL, SHUTTING_DOWN */
  of(execution: Execution, reader: string): Promise<ReplyRecord>
}

export function createReplies({
  store,
  executions,
  thread,
}: {
  store: Pick<AliasStore, 'find'>
  executions: Pick<Executions, 'findWithResult' | 'record'>
  thread: TemplateThread
}): Replies {
  return {
    async of(execution, reader) {
      const record = executions.record(executions.findWithResult(execution.id) ?? execution)
      const { action_alias_ref: reference, api_user: user, source_channel: channel } = execution.context
      const aliasId = aliasIdIn(reference)
      const alias = aliasId === undefined ? undefined : store.find(aliasId)
      const { message, extra } = await render(record, alias, thread, reader)
      return {
        execution_id: execution.id,
        status: execution.status,
        enabled: alias?.result['enabled'] !== false,
        message,
        ...(extra === undefined ? {} : { extra }),
        user: typeof user === 'string' ? user : null,
        source_channel: typeof channel === 'string' ? channel : null,
      }
    },
  }
}

async function render(
  execution: ExecutionRecord,
  alias: AliasRecord | undefined,
  thread: TemplateThread,
  caller: string,
): Promise<{ message: string; extra?: unknown }> {
  const { format, extra } = alias?.result ?? {}
  const plain = typeof format === 'string' ? format : withoutTemplate(execution)
  const templates = findTemplates([typeof format === 'string' ? format : '', extra])
  if (templates === undefined) return { message: plain, ...(isObject(extra) ? { extra } : {}) }
  const renderer = createPatientRenderer(thread, { caller, isRequest: true }, templates)
  const variables = new Map<string, unknown>([
    ['execution', { ...execution, result: execution.result ?? {} }],
    ['actionalias', alias],
  ])
  const rendered = async (field: string, value: unknown): Promise<unknown> => {
    try {
      return await renderer.render(`result.${field}`, value, variables)
    } catch (error) {
      if (!isAppError(error) || error.code !== 'TEMPLATE_FAILED') throw error
      return `Cannot render "${field}" in field "result" for alias. ${error.message}`
    }
  }
  let message = plain
  if (typeof format === 'string') {
    const value = await rendered('format', format)
    message = cut(
      typeof value === 'string' ? value : String(await renderer.print('result.format', value)),
      MAX_MESSAGE_CHARS,
    )
  }
  return { message, ...(isObject(extra) ? { extra: await rendered('extra', extra) } : {}) }
}

/** Of an alias that says nothing about it. */
function withoutTemplate({ status, action, result, web_url: url }: ExecutionRecord): string {
  const about = `Action ${action.ref} is ${status}.`
  const text = cut(textOfResult(result).trim(), MAX_RESULT_CHARS)
  const lines = [about, ...(text === '' ? [] : ['```', text, '```']), ...(url === undefined ? [] : [url])]
  return lines.join('\n')
}

function textOfResult(result: unknown): string {
  if (!isObject(result)) return result === undefined || result === null ? '' : writeJson(result, 2)
  const { stdout, stderr, error } = result
  const texts = [stdout, stderr, error].filter((part) => typeof part === 'string' && part.trim() !== '')
  if (texts.length > 0) return texts.join('\n')
  const value = result['result'] ?? result['output'] ?? result
  if (typeof value === 'string') return value
  return isObject(value) && Object.keys(value).length === 0 ? '' : writeJson(value, 2)
}

/** At a character boundary. */
function cut(text: string, most: number): string {
  if (text.length <= most) return text
  return `${cutText(text, most)}…`
}
