/** Templates inside parameter values (contract 02, 2.6). What a template gives is data and is never rendered again. */
import { templateFailed } from '../../errors.ts'
import { isObject } from '../../schema.ts'
import { isTemplate, references, render, TemplateError } from '../../template.ts'

/**
 * Free names of all templates in a value, at any depth; undefined when there is no template in it. Text that looks like
 * a template but is not valid as one is plain text.
 */
export function namesInTemplates(value: unknown): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined
  const walk = (inner: unknown): void => {
    if (typeof inner === 'string') {
      const found = namesOf(inner)
      if (found === undefined) return
      names ??= new Set()
      for (const name of found) names.add(name)
    } else if (typeof inner === 'object' && inner !== null) {
      for (const [key, item] of Object.entries(inner)) {
        if (!Array.isArray(inner)) walk(key)
        walk(item)
      }
    }
  }
  walk(value)
  return names
}

function namesOf(text: string): readonly string[] | undefined {
  if (!isTemplate(text)) return undefined
  try {
    return references(text).names
  } catch (error) {
    if (error instanceof TemplateError) return undefined
    throw error
  }
}

/** A copy of the value with every template in it replaced by what it gives. @throws TEMPLATE_FAILED */
export function renderValue(parameter: string, value: unknown, variables: Record<string, unknown>): unknown {
  const walk = (inner: unknown): unknown => {
    if (typeof inner === 'string') return namesOf(inner) === undefined ? inner : render(inner, variables)
    if (Array.isArray(inner)) return inner.map(walk)
    if (!isObject(inner)) return inner
    return Object.fromEntries(Object.entries(inner).map(([key, item]) => [walkKey(key), walk(item)]))
  }
  const walkKey = (key: string): string => {
    const rendered = walk(key)
    if (typeof rendered !== 'string' || rendered === '__proto__') {
      throw templateFailed(parameter, 'a key of an object has to give text, and not "__proto__"')
    }
    return rendered
  }
  try {
    return walk(value)
  } catch (error) {
    if (error instanceof TemplateError) throw templateFailed(parameter, error.message)
    throw error
  }
}

/** A value as it would be printed inside text. */
export function printValue(parameter: string, value: unknown): unknown {
  return renderValue(parameter, "{{ value }}{{ '' }}", { value })
}
