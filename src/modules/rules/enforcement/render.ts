/** Renders the action parameters of a rule for one trigger instance (contract 05, 5.7), once: results stay data. */
import { createRenderer, type Templates } from '../../../core/template-values.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'

/**
 * Returns a copy with every template rendered.
 *
 * @param templates compiled templates of all or some parameters
 * @throws TEMPLATE_FAILED
 */
export function renderRuleParameters(
  parameters: Record<string, unknown>,
  templates: Templates | undefined,
  { variables, filters }: TemplateScope,
): Record<string, unknown> {
  if (templates === undefined) return parameters
  const renderer = createRenderer(templates, { filters })
  const named = new Map(Object.entries(variables))
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, renderer.render(name, value, named)]),
  )
}
