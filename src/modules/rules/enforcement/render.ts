/** Renders the action parameters of a rule for one trigger instance (contract 05, 5.7), once: results stay data. */
import { createPatientRenderer, type Templates } from '../../../core/template-values.ts'
import type { TemplateThread, Turn } from '../../../core/rendering/index.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'

/**
 * Returns a copy with every template rendered.
 *
 * @param templates compiled templates of all or some parameters
 * @param turn on whose behalf
 * @throws TEMPLATE_FAILED, QUEUE_FULL, SHUTTING_DOWN
 */
export async function renderRuleParameters(
  thread: TemplateThread,
  turn: Turn,
  parameters: Record<string, unknown>,
  templates: Templates | undefined,
  { variables, filters }: TemplateScope,
): Promise<Record<string, unknown>> {
  if (templates === undefined) return parameters
  const renderer = createPatientRenderer(thread, turn, templates, { filters })
  const named = new Map(Object.entries(variables))
  const rendered: [string, unknown][] = []
  for (const [name, value] of Object.entries(parameters)) {
    rendered.push([name, await renderer.render(name, value, named)])
  }
  return Object.fromEntries(rendered)
}
